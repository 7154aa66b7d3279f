//! Mirrors ConfigMaps as Secrets on plain threads, until it is told to end: the controller of the example `configmap_mirror` as a
//! program of its own.

use std::error::Error;
use std::sync::Arc;

use steersman_mirror::{Mirror, plan};
use steersman_threads::{Client, Manager};

fn main() -> Result<(), Box<dyn Error>> {
    let controller = plan::controller(None).run(Arc::new(Mirror));
    println!("{}", Manager::new(Client::try_default()?).controller(controller).run()?);
    Ok(())
}
