//! Deletes because of what a stale cache shows.

use std::sync::Arc;

use serde_json::json;
use steersman_core::api::{Api, DeleteParams, ListParams, Method};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{ObjectMeta, controller_owner_reference};
use steersman_core::watcher::FirstState;
use steersman_sim::Sim;
use steersman_smol::Context;

use super::kinds::{NS, Ring, RingSpec, Snapshot, SnapshotSpec, Volume, VolumeSpec};
use super::{Adversary, Case, api, merge, millis, only};

/// Two servers, one of which lags; and watches that begin with what a server has in its cache, as most do.
fn cluster() -> Sim {
    super::cluster().follower(millis(1)..millis(20)).first_state(FirstState::Cached)
}

pub(super) const RING: Case = Case {
    class: "delete on a stale cache",
    name: "volumes of a ring",
    mistake: "what is too much is counted by the view's idea of how many are wanted",
    subtle: false,
    adversary: Adversary::Stale,
    oracle: "only writes",
    moment: &["Ring default/a updated", "Volume default/a-2 created"],
    buggy: ring::<false>,
    fixed: ring::<true>,
};

fn ordinal(volume: &Volume) -> u32 {
    volume.metadata.name.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Keeps a volume for each member of a ring, and takes away those of members that are no longer wanted.
async fn settle<const FIXED: bool>(ring: Arc<Ring>, cx: Context) -> Result<Action, Error> {
    let (name, volumes) = (&ring.metadata.name, api::<Volume>());
    let mine = ListParams::default().labels(format!("ring={name}"));
    let found = cx.client().send(volumes.list(&mine)).await?.items;
    for n in (0..ring.spec.members).filter(|n| !found.iter().any(|v| ordinal(v) == *n)) {
        let metadata = ObjectMeta::named(NS, format!("{name}-{n}"))
            .label("ring", name)
            .owner(controller_owner_reference(cx.object()));
        let volume = Volume { metadata, spec: VolumeSpec { ring: name.clone() }, ..Volume::default() };
        drop(cx.client().send(volumes.create(&volume)).await?);
    }
    for volume in found.iter().filter(|v| ordinal(v) >= ring.spec.members) {
        if FIXED {
            let now = cx.client().send(api::<Ring>().get(name)).await?;
            if ordinal(volume) < now.spec.members {
                continue;
            }
        }
        drop(cx.client().send(volumes.delete(&volume.metadata.name, &DeleteParams::background())).await?);
    }
    Ok(Action::await_change())
}

fn ring<const FIXED: bool>() -> Sim {
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<Ring>::all()).run(settle::<FIXED>)))
        .given(|c| {
            c.put(&Ring::new("a", RingSpec { members: 2 }));
            // This one was made smaller while nobody was there.
            c.put(&Ring::new("b", RingSpec { members: 1 }));
            for n in 0..2 {
                let mut volume = Volume::new(&format!("b-{n}"), VolumeSpec { ring: "b".to_owned() });
                volume.metadata = volume.metadata.label("ring", "b");
                c.put(&volume);
            }
        })
        .change(millis(1_000), |c| merge::<Ring>(c, "a", json!({"spec": {"members": 3}})))
        // The ring `a` only grows: whatever was in a volume of it must be kept.
        .only_writes(|r| r.method != Method::Delete || r.path_and_query.ends_with("/b-1"))
        .converges_to(|c| only::<Volume>(c, &["a-0", "a-1", "a-2", "b-0"]))
}

pub(super) const CLEANER: Case = Case {
    class: "delete on a stale cache",
    name: "snapshot cleaner",
    mistake: "the delete names a name, and not the object that was seen",
    subtle: true,
    adversary: Adversary::Stale,
    oracle: "converges",
    moment: &["Snapshot default/nightly updated", "Snapshot default/nightly deleted"],
    buggy: cleaner::<false>,
    fixed: cleaner::<true>,
};

/// Deletes snapshots that have expired.
async fn clean<const FIXED: bool>(snapshot: Arc<Snapshot>, cx: Context) -> Result<Action, Error> {
    let ObjectMeta { name, uid, resource_version, labels, .. } = &snapshot.metadata;
    if labels.get("expired").is_none_or(|v| v != "true") {
        return Ok(Action::await_change());
    }
    let mut how = DeleteParams::background();
    if FIXED {
        how = how.only_uid(uid).only_version(resource_version);
    }
    match cx.client().send(api::<Snapshot>().delete(name, &how)).await {
        Err(e) if !e.is_not_found() => Err(e),
        _ => Ok(Action::await_change()),
    }
}

fn cleaner<const FIXED: bool>() -> Sim {
    let snapshot = |name: &str, of: &str| Snapshot::new(name, SnapshotSpec { of: of.to_owned() });
    let expired = || json!({"metadata": {"labels": {"expired": "true"}}});
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<Snapshot>::all()).run(clean::<FIXED>)))
        .given(move |c| {
            c.put(&snapshot("nightly", "monday"));
            c.put(&snapshot("weekly", "last week"));
        })
        .change(millis(1_000), move |c| merge::<Snapshot>(c, "nightly", expired()))
        // The next one has the name of the last one.
        .change(millis(1_200), move |c| {
            drop(c.send(api::<Snapshot>().delete("nightly", &DeleteParams::background())));
            c.put(&snapshot("nightly", "tuesday"));
        })
        .change(millis(1_400), move |c| merge::<Snapshot>(c, "weekly", expired()))
        .converges_to(|c| only::<Snapshot>(c, &["nightly"]))
}
