//! Gives every namespace with a label `team` a ConfigMap `team-defaults`, and keeps it so: an `fn` on plain threads.

use std::sync::Arc;

use steersman_threads::api::kinds::{ConfigMap, Namespace};
use steersman_threads::api::{Api, Patch, PatchParams};
use steersman_threads::core::client::Error;
use steersman_threads::core::object::{ObjectMeta, controller_owner_reference};
use steersman_threads::{Action, Client, Context, Controller, Manager};

fn reconcile(namespace: Arc<Namespace>, cx: &Context) -> Result<Action, Error> {
    let Some(team) = namespace.metadata.labels.get("team") else {
        return Ok(Action::await_change());
    };
    let (api, client) = (Api::<ConfigMap>::namespaced(&namespace.metadata.name), cx.client());
    let wanted = ConfigMap {
        metadata: ObjectMeta::named(&namespace.metadata.name, "team-defaults")
            .owner(controller_owner_reference(cx.object())),
        data: [("team".to_string(), team.clone())].into(),
        ..ConfigMap::default()
    };
    match client.send(api.get_opt("team-defaults"))? {
        None => drop(client.send(api.create(&wanted))?),
        Some(found) if found.data == wanted.data => {}
        Some(_) => {
            drop(client.send(api.patch("team-defaults", &Patch::Merge(&wanted), &PatchParams::default()))?)
        }
    }
    Ok(Action::await_change())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let controller =
        Controller::new(Api::<Namespace>::all()).owns(Api::<ConfigMap>::all()).concurrency(4).run(reconcile);
    println!("{}", Manager::new(Client::try_default()?).controller(controller).run()?);
    Ok(())
}
