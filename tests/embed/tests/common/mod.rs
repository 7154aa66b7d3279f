//! A server in this process, and what is put into it and read from it by hand.

use std::time::Duration;

use steersman_apiserver::front::{Options, Server};
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::config::{self, Config, FileError, Loader};
use steersman_core::object::ObjectMeta;

/// Long enough for a machine that is busy with other things.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn server() -> (Server, Config) {
    let server = Server::start(Options::default()).expect("a server on loopback");
    let options = config::Options { path: Some("embedded".into()), ..config::Options::default() };
    let file = |path: &str| match path {
        "embedded" => Ok(server.kubeconfig().into_bytes()),
        _ => Err(FileError::NotFound),
    };
    let config = Loader::new(options).run(|_| None, file).expect("its own kubeconfig");
    (server, config)
}

pub(crate) fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta::named("default", name).label("mirror", "true"),
        data: [("key".to_string(), value.to_string())].into(),
        ..ConfigMap::default()
    }
}

pub(crate) fn mirrors(secret: &Secret, value: &str) -> bool {
    secret.data.len() == 1 && secret.data["key"].0 == value.as_bytes()
}
