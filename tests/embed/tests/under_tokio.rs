//! The smol executor, as it is, on tokio's threads.

mod common;

use std::sync::Arc;

use common::{LIMIT, map, mirrors, server};
use futures_lite::FutureExt;
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::api::{Api, DeleteParams, Patch, PatchParams};
use steersman_core::manager::ExitReason;
use steersman_mirror::{Mirror, plan};
use steersman_smol::{Action, Client, Context, Controller, Manager, Spawner};

/// Asks again and again until the Secret is as it should be, each time after something ran.
async fn until(client: &Client, name: &str, value: &str, ran: &async_channel::Receiver<()>) {
    let right = async {
        loop {
            let secret = client.send(Api::<Secret>::namespaced("default").get_opt(name)).await.unwrap();
            if secret.is_some_and(|s| mirrors(&s, value)) {
                return true;
            }
            // Whatever changes a Secret runs the second controller afterwards.
            ran.recv().await.unwrap();
        }
    };
    let late = async {
        tokio::time::sleep(LIMIT).await;
        false
    };
    assert!(right.or(late).await, "{name} is not right in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smol_executor_runs_under_tokio() {
    let (_server, config) = server();
    let client = Client::new(config).unwrap();
    let runtime = tokio::runtime::Handle::current();
    let spawner = Spawner::new(move |task| drop(runtime.spawn(task)));
    let (tell, ran) = async_channel::unbounded();
    let watcher = move |_: Arc<Secret>, _: Context| {
        let tell = tell.clone();
        async move {
            let _ = tell.send(()).await;
            Ok::<_, std::convert::Infallible>(Action::await_change())
        }
    };
    let handle = Manager::new(client.clone(), spawner)
        .controller(plan::controller(None).run(Arc::new(Mirror)))
        .controller(Controller::new(Api::<Secret>::all()).run(watcher))
        .start()
        .unwrap();

    let maps = Api::<ConfigMap>::namespaced("default");
    for n in 0..20 {
        client.send(maps.create(&map(&format!("map-{n}"), "one"))).await.unwrap();
    }
    for n in 0..20 {
        until(&client, &format!("map-{n}"), "one", &ran).await;
    }
    client
        .send(maps.patch("map-3", &Patch::Merge(map("map-3", "two")), &PatchParams::default()))
        .await
        .unwrap();
    until(&client, "map-3", "two", &ran).await;
    client
        .send(Api::<Secret>::namespaced("default").delete("map-4", &DeleteParams::default()))
        .await
        .unwrap();
    until(&client, "map-4", "one", &ran).await;

    let status = handle.status();
    assert_eq!(status.ready(), Ok(()));
    // Both controllers look at Secrets through one watch.
    assert_eq!(status.sources.len(), 2, "{:?}", status.sources);
    handle.stop();
    assert_eq!(handle.wait().await, ExitReason::Stopped);
}
