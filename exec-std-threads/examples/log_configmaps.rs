//! The smallest controller: a reconcile as a plain function on a thread. `cargo run --example log_configmaps`

use std::sync::Arc;
use std::time::Duration;

use steersman_threads::api::kinds::ConfigMap;
use steersman_threads::{Action, Api, Client, Context, Controller, Manager};

fn reconcile(map: Arc<ConfigMap>, cx: &Context) -> Result<Action, std::convert::Infallible> {
    println!("{} has {} keys", cx.key(), map.data.len());
    Ok(Action::requeue(Duration::from_secs(300)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default()?;
    let controller = Controller::new(Api::<ConfigMap>::all()).concurrency(4).run(reconcile);
    println!("{}", Manager::new(client).controller(controller).run()?);
    Ok(())
}
