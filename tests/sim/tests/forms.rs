//! The same controller in the three forms, unchanged from what the executors run: the same outcome, whatever happens.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{program, sim};
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::api::{Api, Patch, PatchParams, Request};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{ObjectMeta, controller_owner_reference};
use steersman_core::time::Time;
use steersman_mirror::plan::MIRROR_OF;
use steersman_sim::{Replica, Report};

fn wanted(map: &ConfigMap, object: &steersman_core::object::Object) -> Secret {
    Secret {
        metadata: ObjectMeta::named("default", &map.metadata.name)
            .label(MIRROR_OF, &map.metadata.uid)
            .owner(controller_owner_reference(object)),
        data: map.data.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect(),
        ..Secret::default()
    }
}

fn api() -> Api<Secret> {
    Api::namespaced("default")
}

/// What is to be done about the Secret that was found.
fn next(found: Option<Secret>, wanted: &Secret) -> Option<Request<Secret>> {
    match found {
        None => Some(api().create(wanted)),
        // A Secret of an earlier ConfigMap goes by itself.
        Some(found) if found.metadata.labels.get(MIRROR_OF) != wanted.metadata.labels.get(MIRROR_OF) => None,
        Some(found) if found.data == wanted.data => None,
        Some(found) => {
            let mut data = serde_json::json!(wanted.data);
            for key in found.data.keys().filter(|key| !wanted.data.contains_key(*key)) {
                data[key] = serde_json::Value::Null;
            }
            let patch = Patch::Merge(serde_json::json!({ "data": data }));
            Some(api().patch(&wanted.metadata.name, &patch, &PatchParams::default()))
        }
    }
}

async fn as_task(map: Arc<ConfigMap>, cx: steersman_smol::Context) -> Result<Action, Error> {
    let client = cx.client();
    let wanted = wanted(&map, cx.object());
    let found = client.send(api().get_opt(&map.metadata.name)).await?;
    client.sleep(Duration::from_millis(20)).await;
    if let Some(request) = next(found, &wanted) {
        drop(client.send(request).await?);
    }
    Ok(Action::await_change())
}

fn as_thread(map: Arc<ConfigMap>, cx: &steersman_threads::Context) -> Result<Action, Error> {
    let client = cx.client();
    let wanted = wanted(&map, cx.object());
    let found = client.send(api().get_opt(&map.metadata.name))?;
    client.sleep(Duration::from_millis(20));
    if let Some(request) = next(found, &wanted) {
        drop(client.send(request)?);
    }
    Ok(Action::await_change())
}

fn controller() -> Builder<ConfigMap> {
    Builder::new(Api::<ConfigMap>::all()).owns(Api::<Secret>::all()).concurrency(3)
}

fn task_program(m: Replica) -> Replica {
    m.controller(controller().run(as_task))
}

fn thread_program(m: Replica) -> Replica {
    m.controller(controller().run(as_thread))
}

#[test]
fn all_forms_come_to_the_same_end() {
    let ends: Vec<String> = [program as fn(Replica) -> Replica, task_program, thread_program]
        .into_iter()
        .map(|p| sim(p).run_to_same_end(1, &[]).unwrap_or_else(|f| panic!("{f}")).end.to_string())
        .collect();
    assert!(ends[0].contains("Secret default/a: "), "{}", ends[0]);
    assert_eq!(ends[1], ends[2]);
    // The plan says who writes; the others do not.
    assert_eq!(ends[0].lines().count(), ends[1].lines().count());
}

#[test]
fn tasks_and_threads_live_through_crashes_and_faults() {
    for p in [task_program as fn(Replica) -> Replica, thread_program] {
        assert!(sim(p).crash_at_every_write(3).unwrap_or_else(|f| panic!("{f}")) > 15);
        sim(p).check(0..40);
    }
}

/// Two processes of every form, a server that lags, and for each of a few seeds its faults and the trace of the run.
fn traces() -> Vec<(String, Report)> {
    let mut traces = Vec::new();
    for (form, p) in
        [("plan", program as fn(Replica) -> Replica), ("task", task_program), ("thread", thread_program)]
    {
        let sim = sim(p).replica(p).follower(Duration::from_millis(1)..Duration::from_secs(2));
        for seed in 0..4 {
            let faults = sim.faults(seed);
            let report = sim.traced(seed, &faults);
            // The pen changes nothing.
            let quick = sim.run_with(seed, &faults).unwrap_or_else(|f| panic!("{f}"));
            assert_eq!((report.fingerprint, report.steps), (quick.fingerprint, quick.steps));
            assert!(
                report.trace.entries.len() > 50
                    && faults.iter().any(|f| report.trace.to_string().contains(&f.what.to_string()))
            );
            traces.push((format!("{form} {seed}"), report));
        }
    }
    traces
}

#[test]
fn one_seed_is_one_trace_to_the_byte_in_any_form() {
    let (one, two) = (traces(), traces());
    for ((name, one), (_, two)) in one.iter().zip(&two) {
        assert_eq!(one.trace.to_string(), two.trace.to_string(), "{name}");
        assert_eq!(one.trace.page("", &[]), two.trace.page("", &[]), "{name}");
    }
    // Nor is it something of this process that they have in common.
    let mut child = std::process::Command::new(std::env::current_exe().expect("a path"));
    child.args(["--exact", "prints_its_traces", "--include-ignored", "--nocapture"]);
    let output = child.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for (name, report) in &one {
        assert!(
            printed.contains(&format!("<{name}>\n{}</{name}>", report.trace)),
            "{name} differs: {printed}"
        );
    }
}

#[test]
#[ignore = "others compare what it prints with their own"]
fn prints_its_traces() {
    for (name, report) in traces() {
        println!("<{name}>\n{}</{name}>", report.trace);
    }
}

/// Waits for an hour, which takes no time.
async fn patient(map: Arc<ConfigMap>, cx: steersman_smol::Context) -> Result<Action, Error> {
    let begun = cx.client().now();
    cx.client().sleep(Duration::from_secs(3600)).await;
    assert_eq!(cx.client().now().since(begun), Duration::from_secs(3600));
    assert!(cx.client().wall().0 > 1_767_225_600_000);
    as_task(map, cx).await
}

#[test]
fn time_is_virtual() {
    let sim = sim(|m| m.controller(controller().run(patient))).within(Duration::from_secs(20_000));
    let report = sim.run_with(1, &[]).unwrap_or_else(|f| panic!("{f}"));
    assert!(report.converged > Some(Time::from_secs(3600)), "{:?}", report.converged);
}
