//! What the simulator found and nobody has mended. Each of these fails when it is mended: turn it round then.

mod common;

use std::time::Duration;

use common::{map, mirrored, program, trusting};
use steersman_core::api::Api;
use steersman_core::api::kinds::Secret;
use steersman_sim::{Fault, Replica, Sim, What, When};

/// A Secret is made, then deleted by somebody, both while the watch is broken. The list that follows shows no Secret, as
/// did the one before: no change, no key. The controller has done its work and waits for ever. (Versions written by a
/// reconcile that the watch has passed, without showing the object, would tell.)
#[test]
fn what_comes_and_goes_unseen_is_missed() {
    let sim = |p: fn(Replica) -> Replica| {
        Sim::new()
            .replica(p)
            .given(|c| c.put(&map("a", "one")))
            .change(Duration::from_secs(1), |c| {
                let secrets = Api::<Secret>::namespaced("default");
                c.send(secrets.delete("a", &Default::default())).expect("it was made");
            })
            .converges_to(mirrored)
    };
    let blind = What::Blind { replica: 0, lasts: Duration::from_secs(2) };
    let faults = [Fault { when: When::Commit(1), what: blind }];
    // Who looks again every few minutes finds it.
    sim(program).run_with(1, &faults).unwrap_or_else(|f| panic!("{f}"));
    let failure = sim(trusting).run_with(1, &faults).unwrap_err();
    assert_eq!(failure.violation.oracle, "converges", "{failure}");
}
