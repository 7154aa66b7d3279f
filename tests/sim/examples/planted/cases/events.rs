//! Relies on seeing an event, of which there may be none: what counts is the state.

use std::sync::Arc;

use serde_json::json;
use steersman_core::api::{Api, Patch, PatchParams};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{Object, ObjectMeta, controller_owner_reference};
use steersman_core::store::Change;
use steersman_sim::Sim;
use steersman_smol::Context;

use super::kinds::{Backup, BackupSpec, Migration, MigrationSpec, NS, Schema, SchemaSpec, Store, StoreSpec};
use super::{Adversary, Case, api, cluster, merge, millis, only};

pub(super) const BACKUPS: Case = Case {
    class: "relies on seeing an event",
    name: "backups on demand",
    mistake: "a request is noticed only by its change, which a process that was down has not seen",
    subtle: false,
    adversary: Adversary::Crash,
    oracle: "converges",
    moment: &["asks: create backups"],
    buggy: backups::<false>,
    fixed: backups::<true>,
};

/// Makes the backup that is asked for.
async fn back_up(store: Arc<Store>, cx: Context) -> Result<Action, Error> {
    let (name, number) = (&store.metadata.name, store.spec.backup);
    if number == store.status.backup {
        return Ok(Action::await_change());
    }
    let metadata =
        ObjectMeta::named(NS, format!("{name}-{number}")).owner(controller_owner_reference(cx.object()));
    let backup = Backup { metadata, spec: BackupSpec { store: name.clone() }, ..Backup::default() };
    match cx.client().send(api::<Backup>().create(&backup)).await {
        Err(e) if !e.is_already_exists() => return Err(e),
        _ => {}
    }
    let status = Patch::Merge(json!({"status": {"backup": number}}));
    drop(cx.client().send(api::<Store>().patch_status(name, &status, &PatchParams::default())).await?);
    Ok(Action::await_change())
}

/// What starts a backup.
fn asks<const FIXED: bool>(change: &Change<Object>) -> bool {
    let number = |object: &Object| object.raw_at(&["spec", "backup"]).map(str::to_owned);
    // "What is there at the start has had its backup."
    FIXED || matches!(change, Change::Updated { old, new, .. } if number(old) != number(new))
}

fn backups<const FIXED: bool>() -> Sim {
    let stores = || Builder::new(Api::<Store>::all()).filter(asks::<FIXED>);
    cluster()
        .replica(move |m| m.controller(stores().run(back_up)))
        .given(|c| c.put(&Store::new("a", StoreSpec { backup: 0 })))
        .change(millis(1_000), |c| merge::<Store>(c, "a", json!({"spec": {"backup": 1}})))
        .converges_to(|c| only::<Backup>(c, &["a-1"]))
}

pub(super) const MIGRATIONS: Case = Case {
    class: "relies on seeing an event",
    name: "schema migrations",
    mistake: "each version that is seen gets its migration, and one that is not seen gets none",
    subtle: true,
    adversary: Adversary::Hide,
    oracle: "always",
    moment: &["Schema default/a updated"],
    buggy: migrations::<false>,
    fixed: migrations::<true>,
};

/// Brings a schema to the version that is wanted.
async fn migrate<const FIXED: bool>(schema: Arc<Schema>, cx: Context) -> Result<Action, Error> {
    let (name, have, want) = (&schema.metadata.name, schema.status.version, schema.spec.version);
    if have >= want {
        return Ok(Action::await_change());
    }
    let first = if FIXED { have + 1 } else { want };
    for version in first..=want {
        let metadata =
            ObjectMeta::named(NS, format!("{name}-{version}")).owner(controller_owner_reference(cx.object()));
        let spec = MigrationSpec { schema: name.clone() };
        let step = Migration { metadata, spec, ..Migration::default() };
        match cx.client().send(api::<Migration>().create(&step)).await {
            Err(e) if !e.is_already_exists() => return Err(e),
            _ => {}
        }
    }
    let status = Patch::Merge(json!({"status": {"version": want}}));
    drop(cx.client().send(api::<Schema>().patch_status(name, &status, &PatchParams::default())).await?);
    Ok(Action::await_change())
}

fn migrations<const FIXED: bool>() -> Sim {
    let wants = |version: u32| json!({"spec": {"version": version}});
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<Schema>::all()).run(migrate::<FIXED>)))
        .given(|c| c.put(&Schema::new("a", SchemaSpec { version: 1 })))
        .change(millis(20_000), move |c| merge::<Schema>(c, "a", wants(2)))
        .change(millis(20_200), move |c| merge::<Schema>(c, "a", wants(3)))
        .always(|c| match c.list::<Migration>().iter().map(|m| &*m.metadata.name).collect::<Vec<_>>()[..] {
            [] | ["a-1"] | ["a-1", "a-2"] | ["a-1", "a-2", "a-3"] => Ok(()),
            ref found => Err(format!("a migration was left out: there are {found:?}")),
        })
        .converges_to(|c| only::<Migration>(c, &["a-1", "a-2", "a-3"]))
}
