//! The systematic adversaries: a sound controller passes them all, and each finds a mistake of its own.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{map, program, sim};
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::api::{Api, Method};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{ObjectMeta, controller_owner_reference};
use steersman_sim::{Cluster, Sim};

#[test]
fn the_mirror_passes_them_all() {
    let runs = sim(program).every_adversary(5).unwrap_or_else(|f| panic!("{f}"));
    assert!(runs > 100, "{runs}");
}

#[test]
fn what_was_asked_for_earlier_leaves_nothing_behind() {
    let base = || Sim::new().replica(program).converges_to(common::mirrored);
    let b = |c: &mut Cluster<'_>| {
        c.keep_only::<ConfigMap>("default", &["b", "c"]);
        c.put(&map("b", "two"));
        c.put(&map("c", "three"));
    };
    let a = |c: &mut Cluster<'_>| {
        c.put(&map("a", "one"));
        c.put(&map("b", "one"));
    };
    base().a_to_b(9, a, b).unwrap_or_else(|f| panic!("{f}"));
}

/// Makes two Secrets under names of the server's choice, and notes that it did only afterwards.
async fn forgetful(map: Arc<ConfigMap>, cx: steersman_smol::Context) -> Result<Action, Error> {
    if map.metadata.annotations.contains_key("made") {
        return Ok(Action::await_change());
    }
    let secrets = Api::<Secret>::namespaced("default");
    let mut metadata = ObjectMeta::named("default", "").owner(controller_owner_reference(cx.object()));
    metadata.generate_name = format!("{}-", map.metadata.name);
    let secret = Secret { metadata, ..Secret::default() };
    drop(cx.client().send(secrets.create(&secret)).await?);
    let note = serde_json::json!({"metadata": {"annotations": {"made": "yes"}}});
    let patch = steersman_core::api::Patch::Merge(note);
    let maps = Api::<ConfigMap>::namespaced("default");
    drop(cx.client().send(maps.patch(&map.metadata.name, &patch, &Default::default())).await?);
    Ok(Action::await_change())
}

/// A fixed number of Secrets must come of it.
fn secrets(n: usize) -> impl Fn(&Cluster<'_>) -> Result<(), String> {
    move |c| match c.list::<Secret>().len() {
        found if found == n => Ok(()),
        found => Err(format!("{found} Secrets, not {n}")),
    }
}

#[test]
fn a_crash_between_two_writes_is_found() {
    let sim = Sim::new()
        .replica(|m| m.controller(Builder::new(Api::<ConfigMap>::all()).run(forgetful)))
        .given(|c| c.put(&map("a", "one")))
        .converges_to(secrets(1));
    sim.run_with(1, &[]).unwrap_or_else(|f| panic!("{f}"));
    let failure = sim.crash_at_every_write(1).unwrap_err();
    assert_eq!(failure.violation.oracle, "converges");
    assert!(failure.violation.what.contains("2 Secrets, not 1"), "{}", failure.violation);
    // A write that is done twice makes two as well.
    assert!(sim.repeat_every_write(1).is_err());
}

/// Believes its view of the ConfigMap, and asks what is true of the Secret.
async fn hasty(map: Arc<ConfigMap>, cx: steersman_smol::Context) -> Result<Action, Error> {
    let secrets = Api::<Secret>::namespaced("default");
    let found = cx.client().send(secrets.get_opt(&map.metadata.name)).await?;
    match (map.data["text"].as_str(), found) {
        ("wanted", None) => {
            let secret =
                Secret { metadata: ObjectMeta::named("default", &map.metadata.name), ..Secret::default() };
            drop(cx.client().send(secrets.create(&secret)).await?);
        }
        ("wanted", Some(_)) | (_, None) => {}
        (_, Some(_)) => {
            drop(cx.client().send(secrets.delete(&map.metadata.name, &Default::default())).await?);
        }
    }
    Ok(Action::await_change())
}

#[test]
fn a_stale_view_after_a_restart_is_found() {
    // What the Secret stands for lives outside of the cluster: once made, it must not go.
    let sim = Sim::new()
        .replica(|m| m.controller(Builder::new(Api::<ConfigMap>::all()).run(hasty)))
        .given(|c| c.put(&map("a", "not yet")))
        .change(Duration::from_secs(1), |c| c.put(&map("a", "wanted")))
        .only_writes(|r| r.method != Method::Delete)
        .converges_to(secrets(1));
    sim.run_with(1, &[]).unwrap_or_else(|f| panic!("{f}"));
    sim.crash_at_every_write(1).unwrap_or_else(|f| panic!("{f}"));
    let failure = sim.stale_read_at_every_restart(1).unwrap_err();
    assert_eq!(failure.violation.oracle, "only writes", "{failure}");
}

/// Counts changes: one Secret for each state of the ConfigMap that it happens to see.
async fn counting(map: Arc<ConfigMap>, cx: steersman_smol::Context) -> Result<Action, Error> {
    let name = format!("{}-{}", map.metadata.name, map.data["text"]);
    let secrets = Api::<Secret>::namespaced("default");
    if cx.client().send(secrets.get_opt(&name)).await?.is_none() {
        let secret = Secret { metadata: ObjectMeta::named("default", &name), ..Secret::default() };
        drop(cx.client().send(secrets.create(&secret)).await?);
    }
    Ok(Action::await_change())
}

#[test]
fn who_needs_to_see_every_event_is_found() {
    let sim = Sim::new()
        .replica(|m| m.controller(Builder::new(Api::<ConfigMap>::all()).run(counting)))
        .given(|c| c.put(&map("a", "one")))
        .change(Duration::from_secs(1), |c| c.put(&map("a", "two")))
        .change(Duration::from_secs(2), |c| c.put(&map("a", "three")))
        .converges_to(secrets(3));
    sim.run_with(1, &[]).unwrap_or_else(|f| panic!("{f}"));
    let failure = sim.hide_every_event(1).unwrap_err();
    assert_eq!(failure.violation.oracle, "converges", "{failure}");
}
