//! The mirror controller of `tests/mirror`, a cluster for it, and what must come of it.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steersman_core::api::kinds::{ByteString, ConfigMap, Secret};
use steersman_core::api::{Api, DeleteParams, Patch, PatchParams};
use steersman_core::controller::{Builder, WatchSpec};
use steersman_core::object::ObjectMeta;
use steersman_mirror::plan::{MIRROR, MIRROR_OF};
use steersman_mirror::{Mirror, plan};
use steersman_sim::{Cluster, Replica, Sim};

/// The program under test, in the pure form.
pub(crate) fn program(m: Replica) -> Replica {
    m.controller(plan::controller(None).run(Arc::new(Mirror)))
}

/// The same with a selector of fields on its watch of the Secrets. Nobody here can tell what such a watch leaves out, so the
/// controller does not wait for what it wrote: what comes and goes while the watch is broken is missed for ever.
pub(crate) fn trusting(m: Replica) -> Replica {
    let secrets = WatchSpec::from(Api::<Secret>::all()).fields("metadata.namespace=default");
    let controller = Builder::new(Api::<ConfigMap>::all()).named("configmap-mirror").owns(secrets);
    m.controller(controller.run(Arc::new(Mirror)))
}

pub(crate) fn map(name: &str, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta::named("default", name).label(MIRROR, "true"),
        data: [("text".to_owned(), text.to_owned())].into(),
        ..ConfigMap::default()
    }
}

/// Three ConfigMaps at first; one changes, one goes, one comes, one Secret is spoilt, one is deleted.
pub(crate) fn sim(program: impl Fn(Replica) -> Replica + Send + Sync + 'static) -> Sim {
    let merge = |patch| Patch::Merge(patch);
    Sim::new()
        .replica(program)
        .given(|c| ["a", "b", "c"].iter().for_each(|name| c.put(&map(name, "one"))))
        .change(Duration::from_secs(2), |c| c.put(&map("a", "two")))
        .change(Duration::from_secs(3), |c| {
            let api = Api::<ConfigMap>::namespaced("default");
            c.send(api.delete("b", &DeleteParams::background())).expect("it is there");
        })
        .change(Duration::from_secs(4), move |c| {
            let spoil = merge(serde_json::json!({"data": {"text": "d3Jvbmc=", "more": "AAAA"}}));
            // It may not have been made yet.
            drop(c.send(Api::<Secret>::namespaced("default").patch("c", &spoil, &PatchParams::default())));
        })
        .change(Duration::from_secs(5), |c| c.put(&map("d", "one")))
        .change(Duration::from_secs(6), |c| {
            drop(c.send(Api::<Secret>::namespaced("default").delete("a", &DeleteParams::background())));
        })
        .converges_to(mirrored)
        .only_writes(|r| r.path_and_query.starts_with("/api/v1/namespaces/default/secrets"))
}

/// Every ConfigMap has its Secret, and there are no others.
pub(crate) fn mirrored(cluster: &Cluster<'_>) -> Result<(), String> {
    let secrets: BTreeMap<String, Secret> =
        cluster.list::<Secret>().into_iter().map(|s| (s.metadata.name.clone(), s)).collect();
    let maps = cluster.list::<ConfigMap>();
    for map in &maps {
        let name = &map.metadata.name;
        let secret = secrets.get(name).ok_or_else(|| format!("{name} has no mirror"))?;
        if secret.metadata.labels.get(MIRROR_OF) != Some(&map.metadata.uid) {
            return Err(format!("{name} has somebody else's mirror"));
        }
        let wanted: BTreeMap<String, ByteString> =
            map.data.iter().map(|(k, v)| (k.clone(), ByteString(v.clone().into_bytes()))).collect();
        if secret.data != wanted {
            return Err(format!("the mirror of {name} holds something else"));
        }
    }
    match secrets.keys().find(|name| !maps.iter().any(|m| m.metadata.name == **name)) {
        Some(name) => Err(format!("{name} is a mirror of nothing")),
        None => Ok(()),
    }
}
