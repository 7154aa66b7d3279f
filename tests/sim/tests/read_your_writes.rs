//! What a reconcile wrote is what its next run sees, however slow, broken or forgetful the watches are.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{map, mirrored, program};
use steersman_core::api::Api;
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder, SourceId, WatchSpec};
use steersman_core::object::{ObjectMeta, controller_owner_reference};
use steersman_sim::{Cluster, Fault, Sim, What, When};

const S: Duration = Duration::from_secs(1);

/// A Secret is made, then deleted by somebody, both while the watch is broken and its server forgets. The list that follows
/// shows no Secret, as did the one before: no change. Only who wrote it can know that it is missing.
#[test]
fn what_comes_and_goes_unseen_is_made_again() {
    let sim = Sim::new()
        .replica(program)
        .given(|c| c.put(&map("a", "one")))
        .change(S, |c| {
            let secrets = Api::<Secret>::namespaced("default");
            c.send(secrets.delete("a", &Default::default())).expect("it was made");
        })
        .converges_to(mirrored);
    let blind = What::Blind { replica: 0, lasts: S * 2 };
    let report =
        sim.run_with(1, &[Fault { when: When::Commit(1), what: blind }]).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(report.writes, [2]);
}

/// Makes one Secret with a name of the server's choice for each ConfigMap, if the cache shows none.
async fn one_secret(config: Arc<ConfigMap>, cx: steersman_smol::Context) -> Result<Action, Error> {
    let mine = cx
        .view(SourceId(1))
        .is_some_and(|view| view.values().any(|secret| secret.name().starts_with(&*config.metadata.name)));
    if !mine {
        let metadata = ObjectMeta {
            generate_name: format!("{}-", config.metadata.name),
            namespace: "default".into(),
            ..ObjectMeta::default()
        };
        let metadata = metadata.label("app", "mirror").owner(controller_owner_reference(cx.object()));
        let secret = Secret { metadata, ..Secret::default() };
        cx.client().send(Api::<Secret>::namespaced("default").create(&secret)).await?;
    }
    Ok(Action::requeue(S))
}

fn no_more_than_one(cluster: &Cluster<'_>) -> Result<(), String> {
    match cluster.list::<Secret>().len() {
        0 | 1 => Ok(()),
        n => Err(format!("{n} Secrets for one ConfigMap")),
    }
}

/// The watches are behind when the key's pause is over: whoever trusts the cache then makes a second Secret.
#[test]
fn a_slow_watch_makes_nobody_do_its_work_twice() {
    let sim = |catch_up: fn(Builder<ConfigMap>) -> Builder<ConfigMap>| {
        let controller = move || catch_up(Builder::new(Api::<ConfigMap>::all()).owns(Api::<Secret>::all()));
        Sim::new()
            .replica(move |m| m.controller(controller().run(one_secret)))
            .given(|c| c.put(&map("a", "one")))
            .always(no_more_than_one)
    };
    let blind = [Fault { when: When::Commit(1), what: What::Blind { replica: 0, lasts: S * 5 } }];
    let selecting = |_| {
        let labelled = WatchSpec::from(Api::<Secret>::all()).labels("app in (mirror, other),!hidden");
        Builder::new(Api::<ConfigMap>::all()).owns(labelled)
    };
    for seed in 0..20 {
        for setting in [(|builder| builder) as fn(Builder<ConfigMap>) -> Builder<ConfigMap>, selecting] {
            sim(setting).run_with(seed, &blind).unwrap_or_else(|f| panic!("{f}"));
        }
        let failure = sim(|builder| builder.catch_up(Duration::ZERO)).run_with(seed, &blind).unwrap_err();
        assert_eq!(failure.violation.oracle, "always", "{failure}");
    }
}
