//! Orders of events that lose work in a runtime which takes them as they come. Each test says what a user would see of it.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::map;
use serde::{Deserialize, Serialize};
use steersman_apiserver::resource::Resource;
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::api::{Answer as _, Api, DeleteParams, Kind, Patch, PatchParams, ResourceType, Scope};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder, SourceId};
use steersman_core::object::{ObjectMeta, controller_owner_reference};
use steersman_core::source::Options;
use steersman_core::time::Time;
use steersman_core::watcher;
use steersman_sim::{Cluster, Fault, Quiet, ServerOptions, Sim, What, When};
use steersman_smol::Context;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn maps() -> Api<ConfigMap> {
    Api::namespaced("default")
}

fn secrets() -> Api<Secret> {
    Api::namespaced("default")
}

fn secret(name: &str, text: &str) -> Secret {
    let data = [("text".to_owned(), text.into())].into();
    Secret { metadata: ObjectMeta::named("default", name), data, ..Secret::default() }
}

/// What stands in each Secret.
fn texts(c: &Cluster<'_>) -> BTreeMap<String, String> {
    let text = |s: &Secret| s.data.get("text").map(|t| String::from_utf8_lossy(&t.0).into_owned());
    c.list::<Secret>().iter().map(|s| (s.metadata.name.clone(), text(s).unwrap_or_default())).collect()
}

/// Copies a ConfigMap, once for each state that it is called with. It neither watches the copies nor looks again.
async fn copy(map: Arc<ConfigMap>, cx: Context) -> Result<Action, Error> {
    let name = &map.metadata.name;
    let copy = secret(name, &map.data["text"]);
    let there = cx.client().send(secrets().get_opt(name)).await?.is_some();
    let put = if there { secrets().replace(name, &copy) } else { secrets().create(&copy) };
    drop(cx.client().send(put).await?);
    Ok(Action::await_change())
}

/// A runtime that lets keys run while a long list is still on its way gives them what it knew before: a change is
/// reconciled in its old state and never again, and what is new is not found.
#[test]
fn what_changed_while_the_watch_was_away_is_reconciled_as_it_is_now() {
    for streaming in [false, true] {
        let watcher = watcher::Config { page_size: Some(3), streaming, ..watcher::Config::default() };
        let sources = Options { watcher, ..Options::default() };
        let sim = Sim::new()
            .replica(move |m| {
                let copies = Builder::new(Api::<ConfigMap>::all()).concurrency(4).run(copy);
                m.sources(sources.clone()).controller(copies)
            })
            .given(|c| (10..40).for_each(|n| c.put(&map(&format!("m{n}"), "old"))))
            .change(millis(5_000), |c| {
                for name in ["m05", "m10", "m25", "m50"] {
                    c.put(&map(name, "new"));
                }
            })
            .converges_to(|c| {
                let copies = texts(c);
                let wrong = |m: &&ConfigMap| copies.get(&m.metadata.name) != m.data.get("text");
                match c.list::<ConfigMap>().iter().find(wrong) {
                    Some(map) => Err(format!("{} is not copied as it is", map.metadata.name)),
                    None => Ok(()),
                }
            });
        // Each page, and each piece of an answer, comes a while after the one before.
        let at = When::At(Time::from_millis(4_990));
        let slow = What::Slow { replica: 0, lasts: millis(20_000) };
        let blind = What::Blind { replica: 0, lasts: millis(1_000) };
        let faults = [Fault { when: at, what: slow }, Fault { when: at, what: blind }];
        for seed in 0..10 {
            sim.run_with(seed, &faults).unwrap_or_else(|f| panic!("{f}"));
        }
    }
}

/// A cluster-wide object with things in namespaces.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Tenant {
    metadata: ObjectMeta,
}

impl Kind for Tenant {
    fn resource_type() -> ResourceType {
        ResourceType::new("schedules.example", "v1", "tenants", "Tenant", Scope::Cluster)
    }
}

/// Writes down all that a tenant has, slowly; and a ConfigMap "overlap" if it is called for one that it is at work on.
async fn survey(
    tenant: Arc<Tenant>,
    cx: Context,
    at_work: Arc<Mutex<BTreeSet<String>>>,
) -> Result<Action, Error> {
    let (name, client) = (&tenant.metadata.name, cx.client());
    if !at_work.lock().is_ok_and(|mut all| all.insert(name.clone())) {
        drop(client.send(maps().create(&map("overlap", name))).await?);
    }
    let owned = cx.view(SourceId(1)).map(|view| view.values().collect::<Vec<_>>()).unwrap_or_default();
    let owned = owned.iter().filter(|o| o.is_owned_by(&tenant.metadata.uid));
    let text = |o| {
        ConfigMap::decode(steersman_core::object::Object::raw(o)).unwrap_or_default().data["text"].clone()
    };
    let all: Vec<String> = owned.map(text).collect();
    client.sleep(millis(300)).await;
    let note = Patch::Merge(serde_json::json!({"metadata": {"annotations": {"has": all.join(" ")}}}));
    drop(client.send(Api::<Tenant>::cluster().patch(name, &note, &PatchParams::default())).await?);
    at_work.lock().map(|mut all| all.remove(name)).ok();
    Ok(Action::await_change())
}

/// A runtime that gives the owner of a namespaced object that object's namespace takes one cluster-wide object for many,
/// and reconciles it several times at once.
#[test]
fn a_cluster_wide_owner_is_one_key_whoever_leads_to_it() {
    let child = |c: &mut Cluster<'_>, namespace: &str, text: &str| {
        let tenant = &c.objects(&Tenant::resource_type())[0];
        let mut child = map("child", text);
        child.metadata = ObjectMeta::named(namespace, "child").owner(controller_owner_reference(tenant));
        c.put(&child);
    };
    let server = ServerOptions {
        resources: vec![Resource::custom(Tenant::resource_type())],
        ..ServerOptions::default()
    };
    let sim = Sim::new()
        .server(server)
        .replica(|m| {
            let at_work = Arc::default();
            let survey = move |tenant: Arc<Tenant>, cx: Context| survey(tenant, cx, Arc::clone(&at_work));
            let tenants = Builder::new(Api::<Tenant>::cluster()).owns(Api::<ConfigMap>::all());
            m.controller(tenants.concurrency(8).run(survey))
        })
        .given(move |c| {
            c.namespace("default");
            c.put(&Tenant { metadata: ObjectMeta { name: "t".to_owned(), ..ObjectMeta::default() } });
            ["x", "y", "z"].iter().for_each(|ns| child(c, ns, "one"));
        })
        .change(millis(1_000), move |c| child(c, "x", "two"))
        .change(millis(1_100), move |c| child(c, "y", "two"))
        .change(millis(1_200), move |c| child(c, "z", "two"))
        .always(|c| match c.get::<ConfigMap>("default", "overlap") {
            Some(_) => Err("the tenant is reconciled twice at once".to_owned()),
            None => Ok(()),
        })
        .converges_to(|c| {
            let tenant = c.list::<Tenant>().remove(0);
            match tenant.metadata.annotations.get("has").map(String::as_str) {
                Some("two two two") => Ok(()),
                has => Err(format!("the tenant has two two two, and says {has:?}")),
            }
        });
    for seed in 0..10 {
        sim.run_with(seed, &[]).unwrap_or_else(|f| panic!("{f}"));
    }
}

/// Who is in a hurry wants to run again at once, for ten seconds; the others want to be copied.
async fn hurry(map: Arc<ConfigMap>, cx: Context) -> Result<Action, Error> {
    cx.client().sleep(millis(1)).await;
    match &*map.data["text"] {
        "hot" if cx.client().now() < Time::from_secs(10) => Ok(Action::requeue(Duration::ZERO)),
        "hot" => Ok(Action::await_change()),
        _ => copy(map, cx).await,
    }
}

/// A runtime that takes any of the keys that may run, and not the one that has waited longest, lets some wait for ever.
#[test]
fn nobody_starves_beside_those_who_always_want_to_run() {
    for concurrency in [1, 4] {
        let sim = Sim::new()
            .replica(move |m| {
                m.controller(Builder::new(Api::<ConfigMap>::all()).concurrency(concurrency).run(hurry))
            })
            .given(|c| {
                (0..20)
                    .for_each(|n| c.put(&map(&format!("m{n:02}"), if n % 4 == 0 { "hot" } else { "cold" })));
            })
            // This one comes when the others have long been at it.
            .change(millis(1_500), |c| c.put(&map("late", "cold")))
            .within(millis(1_000))
            .quiet(Quiet { runs: u64::MAX, ..Quiet::default() })
            .converges_to(|c| match texts(c).len() {
                16 => Ok(()),
                n => Err(format!("{n} of 16 have had their turn")),
            });
        sim.run_with(1, &[]).unwrap_or_else(|f| panic!("{f}"));
    }
}

/// Makes the Secret of a ConfigMap if it sees none.
async fn guard(map: Arc<ConfigMap>, cx: Context) -> Result<Action, Error> {
    if cx.view(SourceId(1)).is_some_and(|view| view.contains(cx.key())) {
        return Ok(Action::await_change());
    }
    let mut secret = secret(&map.metadata.name, "guarded");
    secret.metadata = secret.metadata.owner(controller_owner_reference(cx.object()));
    drop(cx.client().send(secrets().create(&secret)).await?);
    Ok(Action::await_change())
}

/// A runtime that takes a new list for the new state, and does not say what is no longer in it, never tells that a thing
/// was deleted while the watch was away: it is not made again.
#[test]
fn what_was_deleted_while_the_watch_was_away_is_made_again() {
    for streaming in [false, true] {
        let watcher = watcher::Config { streaming, ..watcher::Config::default() };
        let sources = Options { watcher, ..Options::default() };
        let sim = Sim::new()
            .replica(move |m| {
                let guards = Builder::new(Api::<ConfigMap>::all()).owns(Api::<Secret>::all());
                m.sources(sources.clone()).controller(guards.run(guard))
            })
            .given(|c| ["a", "b"].iter().for_each(|name| c.put(&map(name, "one"))))
            .change(millis(2_000), |c| {
                c.send(secrets().delete("a", &DeleteParams::background())).expect("it was made");
            })
            .converges_to(|c| match texts(c).into_keys().collect::<String>().as_str() {
                "ab" => Ok(()),
                there => Err(format!("there are {there:?} only")),
            });
        let blind = What::Blind { replica: 0, lasts: millis(500) };
        let faults = [Fault { when: When::At(Time::from_millis(1_990)), what: blind }];
        for seed in 0..10 {
            sim.run_with(seed, &faults).unwrap_or_else(|f| panic!("{f}"));
        }
    }
}

/// Copies slowly and in two steps, each of which says in which life of the process it was done.
async fn in_two_steps(map: Arc<ConfigMap>, cx: Context, life: u64) -> Result<Action, Error> {
    let (name, client) = (&map.metadata.name, cx.client());
    let text = |c: &Secret| c.data.get("text").map(|t| String::from_utf8_lossy(&t.0).into_owned());
    let begun = match client.send(secrets().get_opt(name)).await?.as_ref().and_then(text) {
        Some(text) if text.contains("done") => return Ok(Action::requeue(Duration::from_secs(3_600))),
        Some(text) => text,
        None => {
            let text = format!("begun in life {life}");
            drop(client.send(secrets().create(&secret(name, &text))).await?);
            text
        }
    };
    client.sleep(millis(2_000)).await;
    let text = format!("{begun}, done in life {life}");
    drop(client.send(secrets().replace(name, &secret(name, &text))).await?);
    Ok(Action::requeue(Duration::from_secs(3_600)))
}

/// A runtime whose orderly end loses what has begun, or whose next start forgets what was still queued, leaves work
/// undone at each rolling update.
#[test]
fn an_orderly_end_finishes_what_has_begun_and_the_next_start_does_the_rest() {
    let sim = Sim::new()
        .replica(|m| {
            let life = m.restarts();
            let steps = move |map: Arc<ConfigMap>, cx: Context| in_two_steps(map, cx, life);
            m.controller(Builder::new(Api::<ConfigMap>::all()).run(steps))
        })
        .given(|c| (0..6).for_each(|n| c.put(&map(&format!("m{n}"), "one"))))
        .converges_to(|c| {
            let all = texts(c);
            let whole = |text: &&String| {
                (0..3).any(|life| **text == format!("begun in life {life}, done in life {life}"))
            };
            match (all.len(), all.values().find(|text| !whole(text))) {
                (6, None) => Ok(()),
                (n, wrong) => Err(format!("{n} of 6 are there, and one is {wrong:?}")),
            }
        });
    // While the second of them runs.
    for at in [2_100, 3_000, 3_900] {
        let what = What::Stop { replica: 0, down: millis(500) };
        let faults = [Fault { when: When::At(Time::from_millis(at)), what }];
        sim.run_with(1, &faults).unwrap_or_else(|f| panic!("{f}"));
        let trace = sim.traced(1, &faults).trace;
        assert!(trace.entries.iter().any(|e| e.text == "exits: stopped"), "{trace}");
    }
}
