//! Pods of 5 KB as a Deployment, the scheduler and a kubelet leave them; the same ones each time.

use steersman_core::api::{ResourceType, Scope};
use steersman_core::object::{Object, ObjectOptions};
use steersman_core::rng::Rng;

pub(crate) const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
/// Bytes of one as JSON; a third of them are `managedFields`.
pub(crate) const SIZE: usize = 5_000;
/// Versions have ten digits.
pub(crate) const FIRST_VERSION: u64 = 1_000_000_000;

/// The `n`th pod as an element of a list, which has neither `kind` nor `apiVersion`. Its version is the first of all and
/// can be changed in place.
pub(crate) fn item(n: usize) -> Text {
    Text::new(format!("{{{}", members(n)))
}

/// The same as an event.
pub(crate) fn frame(kind: &str, n: usize) -> Text {
    Text::new(
        format!(r#"{{"type":"{kind}","object":{{"kind":"Pod","apiVersion":"v1",{}}}"#, members(n)) + "\n",
    )
}

/// The same as a source reads it.
pub(crate) fn object(n: usize, version: u64) -> Object {
    read(item(n), version)
}

/// The same without `managedFields`, spec and status, for whom size is nothing: it is soon made.
pub(crate) fn small(n: usize, version: u64) -> Object {
    let members = members(n);
    let end = members.find(",\"managedFields\"").expect("a pod has managed fields");
    read(Text::new(format!("{{{}}}}}", &members[..end])), version)
}

fn read(mut item: Text, version: u64) -> Object {
    item.set_version(version);
    Object::from_json_with(item.bytes(), &options()).expect("a pod is an object")
}

/// How a source reads them.
pub(crate) fn options() -> ObjectOptions {
    ObjectOptions::of(&PODS)
}

/// JSON in which the version can be changed.
pub(crate) struct Text {
    bytes: Vec<u8>,
    version: usize,
}

impl Text {
    fn new(text: String) -> Self {
        let mark = "\"resourceVersion\":\"";
        let version = text.find(mark).expect("a pod has a version") + mark.len();
        Self { bytes: text.into_bytes(), version }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn set_version(&mut self, version: u64) {
        digits(version, &mut self.bytes[self.version..self.version + 10]);
    }

    /// As a chunk of an HTTP body.
    pub(crate) fn in_a_chunk(self) -> Self {
        let head = format!("{:x}\r\n", self.bytes.len());
        let version = head.len() + self.version;
        Self { bytes: [head.as_bytes(), &self.bytes, b"\r\n"].concat(), version }
    }
}

/// Writes a number with leading zeros.
pub(crate) fn digits(mut n: u64, to: &mut [u8]) {
    for digit in to.iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

fn hex(rng: &mut Rng, n: usize) -> String {
    let mut text = String::with_capacity(n + 15);
    while text.len() < n {
        text += &format!("{:016x}", rng.next_u64());
    }
    text.truncate(n);
    text
}

/// A pod from behind its first brace on.
fn members(n: usize) -> String {
    let mut text = render(n);
    let room = (SIZE - 1).checked_sub(text.len()).expect("a pod is not longer than it shall be");
    let mark = "checksum\":\"";
    let at = text.find(mark).expect("a pod has an annotation") + mark.len();
    text.insert_str(at, &hex(&mut Rng::new(n as u64), room));
    text
}

/// The same without what fills it up.
fn render(n: usize) -> String {
    let mut rng = Rng::new(!(n as u64));
    let mut uid = || {
        let part = [8, 4, 4, 4, 12].map(|n| hex(&mut rng, n));
        part.join("-")
    };
    let (uid, owner, container) = (uid(), uid(), uid().replace('-', "").repeat(2));
    let (app, node, second) = (format!("shop-{:02}", n % 24), n % 300, n % 60);
    let (ip, time) = (
        format!("10.{}.{}.{}", n / 60_000, n / 250 % 250, n % 250 + 1),
        format!("2026-03-01T12:00:{second:02}Z"),
    );
    let (mut env, mut env_fields, mut conditions, mut condition_fields) =
        (String::new(), String::new(), Vec::new(), Vec::new());
    for name in ["DATABASE_HOST", "DATABASE_NAME", "LISTEN_ADDRESS", "LOG_LEVEL", "TRACE_ENDPOINT"] {
        env += &format!(r#"{{"name":"{name}","value":"value-of-{app}-{name}"}},"#);
        env_fields += &format!(r#""k:{{\"name\":\"{name}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}},"#);
    }
    for kind in ["Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        conditions.push(format!(
            r#"{{"type":"{kind}","status":"True","lastProbeTime":null,"lastTransitionTime":"{time}"}}"#
        ));
        condition_fields.push(format!(
            r#""k:{{\"type\":\"{kind}\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}}"#
        ));
    }
    let (conditions, condition_fields) = (conditions.join(","), condition_fields.join(","));
    let managed = format!(
        r#"[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"{time}","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:shop.example/checksum":{{}}}},"f:generateName":{{}},"f:labels":{{".":{{}},"f:app.kubernetes.io/name":{{}},"f:app.kubernetes.io/part-of":{{}},"f:pod-template-hash":{{}}}},"f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"{owner}\"}}":{{}}}}}},"f:spec":{{"f:containers":{{"k:{{\"name\":\"main\"}}":{{".":{{}},"f:env":{{{env_fields}".":{{}}}},"f:image":{{}},"f:imagePullPolicy":{{}},"f:name":{{}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:memory":{{}}}}}},"f:terminationMessagePath":{{}},"f:terminationMessagePolicy":{{}}}}}},"f:dnsPolicy":{{}},"f:restartPolicy":{{}},"f:schedulerName":{{}},"f:terminationGracePeriodSeconds":{{}}}}}}}},{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{time}","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{{condition_fields}}},"f:containerStatuses":{{}},"f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:startTime":{{}}}}}},"subresource":"status"}}]"#
    );
    let metadata = format!(
        r#"{{"name":"{app}-5d8c7-{n:07}","generateName":"{app}-5d8c7-","namespace":"team-{:03}","uid":"{uid}","resourceVersion":"{FIRST_VERSION}","creationTimestamp":"{time}","labels":{{"app.kubernetes.io/name":"{app}","app.kubernetes.io/part-of":"shop","pod-template-hash":"5d8c7"}},"annotations":{{"shop.example/checksum":""}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}-5d8c7","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],"managedFields":{managed}}}"#,
        n % 100
    );
    let spec = format!(
        r#"{{"volumes":[{{"name":"kube-api-access","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"containers":[{{"name":"main","image":"registry.example/{app}:1.0","env":[{env}{{"name":"NODE_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"spec.nodeName"}}}}}}],"resources":{{"limits":{{"memory":"512Mi"}}}},"volumeMounts":[{{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","nodeName":"node-{node:03}","schedulerName":"default-scheduler"}}"#
    );
    format!(
        r#""metadata":{metadata},"spec":{spec},"status":{{"phase":"Running","conditions":[{conditions}],"hostIP":"10.0.1.7","podIP":"{ip}","startTime":"{time}","containerStatuses":[{{"name":"main","state":{{"running":{{"startedAt":"{time}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"registry.example/{app}:1.0","containerID":"containerd://{container}","started":true}}],"qosClass":"Burstable"}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use steersman_core::object::Resource as _;

    use super::*;

    #[test]
    fn a_pod_is_5_kb_a_third_of_it_managed_fields_and_has_a_key_of_its_own() {
        let mut keys = std::collections::BTreeSet::new();
        for n in [0, 1, 99, 1_000, 9_999, 999_999] {
            let mut item = item(n);
            assert_eq!(item.bytes().len(), SIZE);
            item.set_version(FIRST_VERSION + 17);
            let whole = Object::from_json_with(item.bytes(), &ObjectOptions::whole()).unwrap();
            assert_eq!(whole.resource_version(), "1000000017");
            assert_eq!(whole.label("app.kubernetes.io/part-of"), Some("shop"));
            let mut owners = 0;
            whole.each_owner(&mut |owner| owners += usize::from(owner.kind == "ReplicaSet"));
            assert_eq!(owners, 1);
            let managed = SIZE - object(n, FIRST_VERSION).json().len();
            assert!((SIZE / 4..SIZE / 2).contains(&managed), "{managed}");
            assert!(keys.insert(whole.key()));
            let small = small(n, FIRST_VERSION + 17);
            assert_eq!(
                (small.key(), small.uid(), small.resource_version()),
                (whole.key(), whole.uid(), whole.resource_version())
            );
            assert!(frame("ADDED", n).in_a_chunk().bytes().starts_with(b"13"), "as long as a frame of 5 KB");
        }
    }
}
