//! Mirrors ConfigMaps as Secrets with kube-rs, as the controller in `tests/mirror` does with steersman: those labelled `mirror=true`,
//! owned by the ConfigMap, repaired whatever happens to them; a Secret that belongs to somebody else is never touched.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, future::ready};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};
use tokio::runtime::Builder;

const MIRROR: &str = "mirror";
const MIRROR_OF: &str = "mirror-of";
const FIELD_MANAGER: &str = "configmap-mirror";

fn main() -> Result<(), Box<dyn Error>> {
    Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let client = Client::try_default().await?;
        let (maps, secrets) = (Api::<ConfigMap>::all(client.clone()), Api::<Secret>::all(client.clone()));
        Controller::new(maps, watcher::Config::default())
            .owns(secrets.clone(), watcher::Config::default())
            .watches(secrets, watcher::Config::default(), namesake)
            .shutdown_on_signal()
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(client))
            .for_each(|_| ready(()))
            .await;
        Ok(())
    })
}

/// The ConfigMap of the same name, unless an owner leads there already.
fn namesake(secret: Secret) -> Option<ObjectRef<ConfigMap>> {
    let owned = secret.owner_references().iter().any(|o| o.controller == Some(true) && o.kind == "ConfigMap");
    (!owned).then(|| ObjectRef::new(&secret.name_any()).within(&secret.namespace().unwrap_or_default()))
}

async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let wait = Ok(Action::await_change());
    if map.metadata.deletion_timestamp.is_some() {
        return wait;
    }
    let name = map.name_any();
    let api = Api::<Secret>::namespaced((*client).clone(), &map.namespace().unwrap_or_default());
    let asked = map.labels().get(MIRROR).is_some_and(|value| value == "true");
    match api.get_opt(&name).await? {
        None if asked => create(&api, &map).await?,
        Some(secret) if secret.metadata.deletion_timestamp.is_none() && ours(&secret, &map) => {
            if asked {
                repair(&api, &map, &secret).await?
            } else {
                delete(&api, &secret).await?
            }
        }
        // A Secret that goes leads here again; one of somebody else is left alone.
        _ => {}
    }
    wait
}

fn ours(secret: &Secret, map: &ConfigMap) -> bool {
    match secret.owner_references().iter().find(|owner| owner.controller == Some(true)) {
        Some(owner) => Some(&owner.uid) == map.metadata.uid.as_ref(),
        None => secret.labels().get(MIRROR_OF) == map.metadata.uid.as_ref(),
    }
}

fn wanted(map: &ConfigMap) -> BTreeMap<String, ByteString> {
    let text =
        map.data.iter().flatten().map(|(key, text)| (key.clone(), ByteString(text.clone().into_bytes())));
    text.chain(map.binary_data.iter().flatten().map(|(key, bytes)| (key.clone(), bytes.clone()))).collect()
}

async fn create(api: &Api<Secret>, map: &ConfigMap) -> Result<(), kube::Error> {
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(map.name_any()),
            labels: Some([(MIRROR_OF.to_owned(), map.uid().unwrap_or_default())].into()),
            owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(wanted(map)),
        ..Secret::default()
    };
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    api.create(&params, &secret).await.map(drop)
}

async fn delete(api: &Api<Secret>, secret: &Secret) -> Result<(), kube::Error> {
    let only = Preconditions { uid: secret.uid(), resource_version: secret.resource_version() };
    let params = DeleteParams { preconditions: Some(only), ..DeleteParams::background() };
    api.delete(&secret.name_any(), &params).await.map(drop)
}

/// Writes what differs, and nothing if nothing does.
async fn repair(api: &Api<Secret>, map: &ConfigMap, secret: &Secret) -> Result<(), kube::Error> {
    let (wanted, empty) = (wanted(map), BTreeMap::new());
    let found = secret.data.as_ref().unwrap_or(&empty);
    let mut data = Map::new();
    for (key, bytes) in wanted.iter().filter(|(key, bytes)| found.get(*key) != Some(bytes)) {
        data.insert(key.clone(), json!(bytes));
    }
    data.extend(found.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
    if !data.is_empty() && secret.immutable == Some(true) {
        return delete(api, secret).await;
    }
    let mut metadata = Map::new();
    if secret.labels().get(MIRROR_OF) != map.metadata.uid.as_ref() {
        metadata.insert("labels".to_owned(), json!({ MIRROR_OF: map.uid() }));
    }
    if !secret.owner_references().iter().any(|owner| owner.controller == Some(true)) {
        let mut owners = secret.owner_references().to_vec();
        owners.retain(|owner| Some(&owner.uid) != map.metadata.uid.as_ref());
        owners.extend(map.controller_owner_ref(&()));
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    if data.is_empty() && metadata.is_empty() {
        return Ok(());
    }
    metadata.insert("uid".to_owned(), json!(secret.uid()));
    metadata.insert("resourceVersion".to_owned(), json!(secret.resource_version()));
    let patch = json!({ "metadata": metadata, "data": data });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&secret.name_any(), &params, &Patch::Merge(patch)).await.map(drop)
}
