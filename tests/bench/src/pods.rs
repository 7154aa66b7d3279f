//! Pods as a cluster has them, made from a seed as bytes.
//!
//! A few templates, one a workload, are rendered whole; a pod is a copy of one with the digits of its own patched in, at the
//! cost of a copy. What a cluster compresses badly (names, uids, image and container ids, addresses, tokens) is random here too.

use std::fmt::Write as _;

use steersman_core::rng::Rng;

use crate::contestant::{EVENT, SENT};

/// How many workloads there are; pods of one follow each other in tens, as replicas do.
const WORKLOADS: u64 = 24;
/// Replicas that follow each other.
const REPLICAS: u64 = 10;
/// Versions begin here, so that they are all of ten digits.
const FIRST_VERSION: u64 = 1_000_000_000;

/// N pods, each of the same number of bytes.
#[derive(Debug)]
pub(crate) struct Pods {
    seed: u64,
    count: u64,
    size: usize,
    templates: Vec<Template>,
}

#[derive(Debug)]
struct Template {
    json: Vec<u8>,
    slots: Vec<(usize, Slot)>,
    managed: usize,
    /// Where the metadata end.
    metadata: usize,
}

/// How much of a pod is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of it.
    Whole,
    /// As `PartialObjectMetadata`.
    Metadata,
}

impl Form {
    /// `kind` and `apiVersion`.
    pub(crate) const fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Whole => ("Pod", "v1"),
            Self::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1"),
        }
    }
}

/// A place in a template and what belongs there, always of the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Namespace,
    Name,
    Uid,
    Version,
    Node,
    Ip,
    Container,
    Token,
    Event,
    Sent,
}

const SLOTS: [(&str, Slot, usize); 10] = [
    ("namespace", Slot::Namespace, 8),
    ("name", Slot::Name, 18),
    ("uid", Slot::Uid, 36),
    ("version", Slot::Version, 10),
    ("node", Slot::Node, 4),
    ("ip", Slot::Ip, 14),
    ("container", Slot::Container, 64),
    ("token", Slot::Token, 5),
    ("event", Slot::Event, 9),
    ("sent", Slot::Sent, 19),
];

/// One change of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The number of the event, from 1; 0 for the state that a list holds.
    pub event: u64,
    /// When it is sent, in nanoseconds since 1970.
    pub sent: u64,
}

impl Pods {
    /// `count` pods; the JSON of each, as it stands in the `items` of a list, is `size` bytes long, `managedFields` included.
    ///
    /// # Errors
    /// If a pod cannot be so small.
    pub(crate) fn new(count: u64, size: usize, seed: u64) -> Result<Self, String> {
        let templates = (0..WORKLOADS)
            .map(|n| Template::new(n, size, &mut Rng::new(seed ^ n << 32)))
            .collect::<Result<_, _>>()?;
        Ok(Self { seed, count, size, templates })
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of the JSON of a pod, on average.
    pub(crate) fn size(&self, form: Form) -> usize {
        match form {
            Form::Whole => self.size,
            Form::Metadata => self.average(|t| t.metadata + 1),
        }
    }

    /// Bytes of a pod that are `managedFields`, on average.
    pub(crate) fn managed_fields(&self) -> usize {
        self.average(|t| t.managed)
    }

    fn average(&self, of: impl Fn(&Template) -> usize) -> usize {
        self.templates.iter().map(of).sum::<usize>() / self.templates.len()
    }

    /// The version of a list.
    pub(crate) const fn list_version(&self) -> u64 {
        FIRST_VERSION + self.count
    }

    /// Which pod an event is about: all in turn, but not one after the other.
    pub(crate) const fn of_event(&self, event: u64) -> u64 {
        (event * 7_919) % self.count
    }

    /// The version after an event.
    pub(crate) const fn event_version(&self, event: u64) -> u64 {
        self.list_version() + event
    }

    /// Appends pod number `n` as an item of a list: whole ones do not say what they are, partial ones do.
    pub(crate) fn item(&self, form: Form, n: u64, state: State, out: &mut Vec<u8>) {
        out.push(b'{');
        if form == Form::Metadata {
            typed(form, out);
        }
        self.members(form, n, state, out);
    }

    /// Appends a frame of a watch, with its newline.
    pub(crate) fn frame(&self, form: Form, kind: &str, n: u64, state: State, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"object\":{");
        typed(form, out);
        self.members(form, n, state, out);
        out.extend_from_slice(b"}\n");
    }

    /// A pod without its first brace.
    fn members(&self, form: Form, n: u64, state: State, out: &mut Vec<u8>) {
        let template = &self.templates[(n / REPLICAS % WORKLOADS) as usize];
        let at = out.len();
        match form {
            Form::Whole => out.extend_from_slice(&template.json[1..]),
            Form::Metadata => {
                out.extend_from_slice(&template.json[1..template.metadata]);
                out.push(b'}');
            }
        }
        let pod = &mut out[at..];
        let mut rng = Rng::new(self.seed ^ (n + 1).wrapping_mul(0x9e37_79b9));
        let (uid, token) = ([rng.next_u64(), rng.next_u64()], rng.next_u64());
        let container = [rng.next_u64(), rng.next_u64(), rng.next_u64(), rng.next_u64()];
        let version = if state.event == 0 { FIRST_VERSION + n } else { self.event_version(state.event) };
        for &(place, slot) in &template.slots {
            if form == Form::Metadata && place >= template.metadata {
                break;
            }
            let place = &mut pod[place - 1..];
            match slot {
                Slot::Namespace => decimal(n / 1_000, &mut place[..8]),
                Slot::Name => {
                    // In the order of the list, as a server sends it.
                    decimal(n / REPLICAS % 100_000_000, &mut place[..8]);
                    place[8..12].copy_from_slice(b"-5d8");
                    place[12] = b'-';
                    decimal(n % REPLICAS, &mut place[13..14]);
                    letters(token, &mut place[14..18]);
                }
                Slot::Uid => {
                    hex(uid[0], &mut place[..8]);
                    hex(uid[0] >> 32, &mut place[9..13]);
                    hex(uid[0] >> 48, &mut place[14..18]);
                    hex(uid[1], &mut place[19..23]);
                    hex(uid[1] >> 16, &mut place[24..36]);
                    for dash in [8, 13, 18, 23] {
                        place[dash] = b'-';
                    }
                }
                Slot::Version => decimal(version, &mut place[..10]),
                Slot::Node => decimal(n % 997, &mut place[..4]),
                Slot::Ip => {
                    place[..14].copy_from_slice(b"10.100.000.000");
                    decimal(100 + n / 900 % 100, &mut place[7..10]);
                    decimal(100 + n % 100, &mut place[11..14]);
                }
                Slot::Container => (0..4).for_each(|i| hex(container[i], &mut place[16 * i..16 * i + 16])),
                Slot::Token => letters(token >> 20, &mut place[..5]),
                Slot::Event => decimal(state.event, &mut place[..9]),
                Slot::Sent => decimal(state.sent, &mut place[..19]),
            }
        }
    }
}

fn typed(form: Form, out: &mut Vec<u8>) {
    let (kind, api_version) = form.kind();
    for part in ["\"kind\":\"", kind, "\",\"apiVersion\":\"", api_version, "\","] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn decimal(mut n: u64, to: &mut [u8]) {
    for digit in to.iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

fn hex(mut n: u64, to: &mut [u8]) {
    for digit in to.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(n & 15) as usize];
        n >>= 4;
    }
}

fn letters(mut n: u64, to: &mut [u8]) {
    // What Kubernetes makes random names of.
    for letter in to.iter_mut() {
        *letter = b"bcdfghjklmnpqrstvwxz2456789"[(n % 27) as usize];
        n /= 27;
    }
}

impl Template {
    fn new(workload: u64, size: usize, rng: &mut Rng) -> Result<Self, String> {
        let bare = Self::cut(&render(workload, 0, 0, &mut rng.clone()));
        let one = Self::cut(&render(workload, 1, 0, &mut rng.clone())).json.len() - bare.json.len();
        let room = size.checked_sub(bare.json.len()).ok_or_else(|| {
            format!("a pod of {size} bytes is too small: {} are the least", bare.json.len() + 64)
        })?;
        // Larger pods have more variables, each with its managed field; the rest is in an annotation.
        let variables = (room / one).min(999);
        let left = size - Self::cut(&render(workload, variables, 0, &mut rng.clone())).json.len();
        let template = Self::cut(&render(workload, variables, left, rng));
        debug_assert_eq!(template.json.len(), size);
        Ok(template)
    }

    /// Takes the marks `@{slot}` out of a text and remembers their places.
    fn cut(text: &str) -> Self {
        let (mut json, mut slots, mut rest) = (String::new(), Vec::new(), text);
        while let Some((before, after)) = rest.split_once("@{") {
            let (name, after) = after.split_once('}').expect("a mark ends");
            let (_, slot, width) = SLOTS.into_iter().find(|s| s.0 == name).expect("a slot is known");
            json.push_str(before);
            slots.push((json.len(), slot));
            json.extend(std::iter::repeat_n('0', width));
            rest = after;
        }
        json.push_str(rest);
        let managed = json.find("\"managedFields\":").map_or(0, |at| {
            let end = json.find("]},\"spec\":").expect("the spec follows");
            end + 1 - at
        });
        let metadata = json.find(",\"spec\":").expect("the spec follows");
        Self { json: json.into_bytes(), slots, managed, metadata }
    }
}

fn random(rng: &mut Rng, of: &[u8], n: usize) -> String {
    (0..n).map(|_| char::from(of[rng.below(of.len() as u64) as usize])).collect()
}

/// A pod of a Deployment as kube-controller-manager, the scheduler and a kubelet leave it.
fn render(workload: u64, variables: usize, padding: usize, rng: &mut Rng) -> String {
    const HEX: &[u8] = b"0123456789abcdef";
    const TEXT: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let app = format!("app{workload:02}-{}", random(rng, b"abcdefghijklmnopqrstuvwxyz", 8));
    let (owner, image) = (random(rng, HEX, 12), random(rng, HEX, 64));
    let second = workload % 60;
    let (mut env, mut env_fields) = (String::new(), String::new());
    for n in 0..variables {
        let value = random(rng, TEXT, 28);
        let _ = write!(env, r#"{{"name":"SETTING_{n:03}","value":"{value}"}},"#);
        let _ = write!(
            env_fields,
            r#""k:{{\"name\":\"SETTING_{n:03}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}},"#
        );
    }
    let padding = random(rng, TEXT, padding);
    let condition = |kind: &str| {
        format!(
            r#"{{"type":"{kind}","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-01T12:00:{second:02}Z"}}"#
        )
    };
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition).join(",");
    let condition_fields = |kind: &str| {
        format!(
            r#""k:{{\"type\":\"{kind}\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}}"#
        )
    };
    let condition_fields = ["ContainersReady", "Initialized", "Ready"].map(condition_fields).join(",");
    let metadata = format!(
        r#"{{"name":"svc-@{{name}}","generateName":"svc-5d8-","namespace":"team-@{{namespace}}","uid":"@{{uid}}","resourceVersion":"@{{version}}","generation":1,"creationTimestamp":"2026-03-01T12:00:{second:02}Z","labels":{{"app.kubernetes.io/name":"{app}","app.kubernetes.io/part-of":"shop","pod-template-hash":"5d8","tier":"backend"}},"annotations":{{"{EVENT}":"@{{event}}","{SENT}":"@{{sent}}","padding":"{padding}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}-5d8","uid":"0c1f6a52-77aa-4b6f-9f3e-{owner}","controller":true,"blockOwnerDeletion":true}}]"#
    );
    let controller_fields = format!(
        r#"{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-03-01T12:00:{second:02}Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:generateName":{{}},"f:labels":{{".":{{}},"f:app.kubernetes.io/name":{{}},"f:app.kubernetes.io/part-of":{{}},"f:pod-template-hash":{{}},"f:tier":{{}}}},"f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"0c1f6a52-77aa-4b6f-9f3e-{owner}\"}}":{{}}}}}},"f:spec":{{"f:containers":{{"k:{{\"name\":\"main\"}}":{{".":{{}},"f:env":{{{env_fields}".":{{}}}},"f:image":{{}},"f:imagePullPolicy":{{}},"f:name":{{}},"f:ports":{{".":{{}},"k:{{\"containerPort\":8080,\"protocol\":\"TCP\"}}":{{".":{{}},"f:containerPort":{{}},"f:protocol":{{}}}}}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:memory":{{}}}},"f:requests":{{".":{{}},"f:cpu":{{}},"f:memory":{{}}}}}},"f:terminationMessagePath":{{}},"f:terminationMessagePolicy":{{}}}}}},"f:dnsPolicy":{{}},"f:enableServiceLinks":{{}},"f:restartPolicy":{{}},"f:schedulerName":{{}},"f:securityContext":{{}},"f:terminationGracePeriodSeconds":{{}}}}}}}}"#
    );
    let kubelet_fields = format!(
        r#"{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-03-01T12:00:{second:02}Z","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{{condition_fields}}},"f:containerStatuses":{{}},"f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:podIPs":{{".":{{}},"k:{{\"ip\":\"@{{ip}}\"}}":{{".":{{}},"f:ip":{{}}}}}},"f:startTime":{{}}}}}},"subresource":"status"}}"#
    );
    let spec = format!(
        r#"{{"volumes":[{{"name":"kube-api-access-@{{token}}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}],"defaultMode":420}}}}],"containers":[{{"name":"main","image":"registry.example/shop/{app}:1.{workload}.0","ports":[{{"containerPort":8080,"protocol":"TCP"}}],"env":[{env}{{"name":"NODE_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"spec.nodeName"}}}}}}],"resources":{{"limits":{{"memory":"512Mi"}},"requests":{{"cpu":"100m","memory":"256Mi"}}}},"volumeMounts":[{{"name":"kube-api-access-@{{token}}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"node-@{{node}}","securityContext":{{}},"schedulerName":"default-scheduler","priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}}"#
    );
    let status = format!(
        r#"{{"observedGeneration":1,"phase":"Running","conditions":[{conditions}],"hostIP":"10.0.1.7","podIP":"@{{ip}}","podIPs":[{{"ip":"@{{ip}}"}}],"startTime":"2026-03-01T12:00:{second:02}Z","containerStatuses":[{{"name":"main","state":{{"running":{{"startedAt":"2026-03-01T12:00:{second:02}Z"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"registry.example/shop/{app}:1.{workload}.0","imageID":"registry.example/shop/{app}@sha256:{image}","containerID":"containerd://@{{container}}","started":true}}],"qosClass":"Burstable"}}"#
    );
    format!(
        r#"{{"metadata":{metadata},"managedFields":[{controller_fields},{kubelet_fields}]}},"spec":{spec},"status":{status}}}"#
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use steersman_core::object::Object;

    use super::*;

    #[test]
    fn a_pod_has_its_size_and_is_the_same_for_the_same_seed() {
        for size in [4_600, 5_000, 20_000] {
            let (pods, again) = (Pods::new(100, size, 7).unwrap(), Pods::new(100, size, 7).unwrap());
            let state = State { event: 0, sent: 0 };
            for n in 0..100 {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                pods.item(Form::Whole, n, state, &mut a);
                again.item(Form::Whole, n, state, &mut b);
                assert_eq!(a, b);
                assert_eq!(a.len(), size);
                let pod: Value = serde_json::from_slice(&a).unwrap();
                assert!(pod["metadata"]["managedFields"][1]["fieldsV1"]["f:status"].is_object());
                assert_eq!(pod["spec"]["containers"][0]["name"], "main");
            }
            assert!(pods.managed_fields() * 5 > size, "{}", pods.managed_fields());
        }
    }

    #[test]
    fn pods_differ_and_come_in_the_order_of_their_keys() {
        let pods = Pods::new(5_000, 5_000, 1).unwrap();
        let mut keys = Vec::new();
        for n in (0..5_000).step_by(7) {
            let mut json = Vec::new();
            pods.item(Form::Whole, n, State::default(), &mut json);
            let pod: Value = serde_json::from_slice(&json).unwrap();
            let text = |name: &str| pod["metadata"][name].as_str().unwrap().to_owned();
            keys.push((text("namespace"), text("uid"), text("name")));
        }
        assert!(keys.is_sorted_by(|a, b| a.0 <= b.0 && a.1 != b.1 && a.2 != b.2));
    }

    #[test]
    fn a_frame_is_an_object_with_its_event() {
        let pods = Pods::new(10, 5_000, 1).unwrap();
        let mut frame = Vec::new();
        pods.frame(Form::Whole, "MODIFIED", pods.of_event(3), State { event: 3, sent: 17 }, &mut frame);
        let frame: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(frame["type"], "MODIFIED");
        let object = Object::from_json(frame["object"].to_string().as_bytes()).unwrap();
        assert_eq!(object.resource_version(), pods.event_version(3).to_string());
        assert_eq!(object.annotation(EVENT).as_deref(), Some("000000003"));
        assert_eq!(object.annotation(SENT).as_deref(), Some("0000000000000000017"));
    }

    #[test]
    fn a_partial_pod_is_its_metadata() {
        let pods = Pods::new(10, 5_000, 1).unwrap();
        let (mut whole, mut partial) = (Vec::new(), Vec::new());
        pods.item(Form::Whole, 3, State::default(), &mut whole);
        pods.item(Form::Metadata, 3, State::default(), &mut partial);
        let [whole, partial] = [whole, partial].map(|json| serde_json::from_slice::<Value>(&json).unwrap());
        assert_eq!(partial["metadata"], whole["metadata"]);
        assert_eq!((&partial["kind"], partial.get("spec")), (&Value::from("PartialObjectMetadata"), None));
    }

    #[test]
    fn too_small_a_pod_is_refused() {
        assert!(Pods::new(1, 500, 1).unwrap_err().contains("too small"));
    }
}
