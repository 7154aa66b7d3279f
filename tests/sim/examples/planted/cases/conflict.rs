//! Forgets to try again after a conflict.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use steersman_core::api::Api;
use steersman_core::api::kinds::ConfigMap;
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{ObjectMeta, controller_owner_reference};
use steersman_sim::Sim;
use steersman_smol::Context;

use super::kinds::{App, AppSpec, NS, Release, ReleaseSpec, Site, SiteSpec};
use super::{Adversary, Case, api, cluster, merge, millis};

pub(super) const ROUTES: Case = Case {
    class: "forgets to requeue on conflict",
    name: "routing table",
    mistake: "\"somebody has changed it, so we will be called\": but nobody watches the table",
    subtle: false,
    adversary: Adversary::Conflict,
    oracle: "converges",
    moment: &["asks: replace configmaps default/routes"],
    buggy: routes::<false>,
    fixed: routes::<true>,
};

/// Keeps the line of each site in a table that all share.
async fn route<const FIXED: bool>(site: Arc<Site>, cx: Context) -> Result<Action, Error> {
    let mut table = cx.client().send(api::<ConfigMap>().get("routes")).await?;
    // The view may be older than the line.
    let Some(site) = cx.client().send(api::<Site>().get_opt(&site.metadata.name)).await? else {
        return Ok(Action::await_change());
    };
    if table.data.get(&site.metadata.name) == Some(&site.spec.host) {
        return Ok(Action::await_change());
    }
    table.data.insert(site.metadata.name.clone(), site.spec.host.clone());
    match cx.client().send(api::<ConfigMap>().replace("routes", &table)).await {
        Err(e) if !FIXED && e.is_conflict() => Ok(Action::await_change()),
        Err(e) => Err(e),
        Ok(_) => Ok(Action::await_change()),
    }
}

fn routes<const FIXED: bool>() -> Sim {
    let site = |name: &str| Site::new(name, SiteSpec { host: format!("{name}.example") });
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<Site>::all()).run(route::<FIXED>)))
        .given(move |c| {
            c.put(&ConfigMap { metadata: ObjectMeta::named(NS, "routes"), ..ConfigMap::default() });
            c.put(&site("a"));
        })
        .change(millis(1_000), move |c| c.put(&site("b")))
        .change(millis(2_000), |c| merge::<Site>(c, "a", json!({"spec": {"host": "www.example"}})))
        .converges_to(|c| {
            let table = c.get::<ConfigMap>(NS, "routes").unwrap_or_default().data;
            match c.list::<Site>().iter().find(|s| table.get(&s.metadata.name) != Some(&s.spec.host)) {
                Some(site) => Err(format!("{} is not reached under {}", site.metadata.name, site.spec.host)),
                None => Ok(()),
            }
        })
}

pub(super) const ROLLOUT: Case = Case {
    class: "forgets to requeue on conflict",
    name: "rollout",
    mistake: "a generation counts as done before the second of its two updates, whose conflict comes to nothing",
    subtle: true,
    adversary: Adversary::Conflict,
    oracle: "converges",
    moment: &["asks: replace apps/status default/a"],
    buggy: rollout::<false>,
    fixed: rollout::<true>,
};

/// By uid: the generation that was rolled out, so that nothing is asked twice.
type Done = Mutex<BTreeMap<String, i64>>;

/// Brings the release to the image that is wanted, and tells so.
async fn roll<const FIXED: bool>(app: Arc<App>, cx: Context, done: Arc<Done>) -> Result<Action, Error> {
    let ObjectMeta { name, uid, generation, .. } = &app.metadata;
    let generation = generation.unwrap_or(0);
    let mark = || done.lock().map(|mut d| d.insert(uid.clone(), generation));
    if done.lock().is_ok_and(|d| d.get(uid).is_some_and(|g| *g >= generation)) {
        return Ok(Action::await_change());
    }
    match cx.client().send(api::<Release>().get_opt(name)).await? {
        None => {
            let metadata = ObjectMeta::named(NS, name).owner(controller_owner_reference(cx.object()));
            let spec = ReleaseSpec { image: app.spec.image.clone() };
            let release = Release { metadata, spec, ..Release::default() };
            drop(cx.client().send(api::<Release>().create(&release)).await?);
        }
        Some(mut release) => {
            release.spec.image.clone_from(&app.spec.image);
            drop(cx.client().send(api::<Release>().replace(name, &release)).await?);
        }
    }
    if !FIXED {
        drop(mark());
    }
    let mut app = App::clone(&app);
    app.status.image.clone_from(&app.spec.image);
    drop(cx.client().send(api::<App>().replace_status(name, &app)).await?);
    if FIXED {
        drop(mark());
    }
    Ok(Action::await_change())
}

fn rollout<const FIXED: bool>() -> Sim {
    cluster()
        .replica(|m| {
            let done: Arc<Done> = Arc::default();
            let roll = move |app: Arc<App>, cx: Context| roll::<FIXED>(app, cx, Arc::clone(&done));
            m.controller(Builder::new(Api::<App>::all()).run(roll))
        })
        .given(|c| c.put(&App::new("a", AppSpec { image: "app:1".to_owned() })))
        .change(millis(1_000), |c| merge::<App>(c, "a", json!({"spec": {"image": "app:2"}})))
        .converges_to(|c| {
            let Some(app) = c.get::<App>(NS, "a") else { return Err("there is no app".to_owned()) };
            let runs = c.get::<Release>(NS, "a").unwrap_or_default().spec.image;
            match (runs == app.spec.image, app.status.image == app.spec.image) {
                (true, true) => Ok(()),
                (runs, told) => Err(format!("the image runs: {runs}; the status tells it: {told}")),
            }
        })
}
