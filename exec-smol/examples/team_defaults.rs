//! Gives every namespace with a label `team` a ConfigMap `team-defaults`, and keeps it so: an `async fn` on smol.

use std::sync::Arc;

use steersman_smol::api::kinds::{ConfigMap, Namespace};
use steersman_smol::api::{Api, Patch, PatchParams};
use steersman_smol::core::client::Error;
use steersman_smol::core::object::{ObjectMeta, controller_owner_reference};
use steersman_smol::{Action, Client, Context, Controller, Manager, Spawner};

async fn reconcile(namespace: Arc<Namespace>, cx: Context) -> Result<Action, Error> {
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
    match client.send(api.get_opt("team-defaults")).await? {
        None => drop(client.send(api.create(&wanted)).await?),
        Some(found) if found.data == wanted.data => {}
        Some(_) => {
            let patch = api.patch("team-defaults", &Patch::Merge(&wanted), &PatchParams::default());
            drop(client.send(patch).await?);
        }
    }
    Ok(Action::await_change())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let controller =
        Controller::new(Api::<Namespace>::all()).owns(Api::<ConfigMap>::all()).concurrency(4).run(reconcile);
    let spawner = Spawner::new(|task| smol::spawn(task).detach());
    println!(
        "{}",
        smol::block_on(Manager::new(Client::try_default()?, spawner).controller(controller).run())?
    );
    Ok(())
}
