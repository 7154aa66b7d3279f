//! Cleans up in the wrong order, with finalizers.

use std::sync::Arc;

use steersman_core::api::{Api, DeleteParams, PatchParams};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{ObjectMeta, add_finalizer, remove_finalizer};
use steersman_sim::{Cluster, Sim};
use steersman_smol::{Client, Context};

use super::kinds::{Account, AccountSpec, Bucket, BucketSpec, Database, DatabaseSpec, NS};
use super::{Adversary, Case, api, cluster, millis, only};

/// Holds an object until what it has elsewhere is gone.
const FINALIZER: &str = "planted.example/account";

pub(super) const ACCOUNTS: Case = Case {
    class: "wrong cleanup order with finalizers",
    name: "accounts of databases",
    mistake: "the finalizer goes first, the account second",
    subtle: false,
    adversary: Adversary::Crash,
    oracle: "converges",
    moment: &["asks: patch databases default/a"],
    buggy: accounts::<false>,
    fixed: accounts::<true>,
};

/// Opens an account.
async fn open(client: &Client, name: &str) -> Result<(), Error> {
    match client.send(api::<Account>().create(&Account::new(name, AccountSpec {}))).await {
        Err(e) if !e.is_already_exists() => Err(e),
        _ => Ok(()),
    }
}

/// Closes an account.
async fn close(client: &Client, name: &str) -> Result<(), Error> {
    match client.send(api::<Account>().delete(name, &DeleteParams::background())).await {
        Err(e) if !e.is_not_found() => Err(e),
        _ => Ok(()),
    }
}

/// Keeps an account for each database.
async fn serve<const FIXED: bool>(database: Arc<Database>, cx: Context) -> Result<Action, Error> {
    let (name, client) = (&database.metadata.name, cx.client());
    let patch = |patch| api::<Database>().patch(name, &patch, &PatchParams::default());
    if cx.object().is_deleting() {
        let Some(gone) = remove_finalizer(cx.object(), FINALIZER) else {
            return Ok(Action::await_change());
        };
        if FIXED {
            close(client, name).await?;
            drop(client.send(patch(gone)).await?);
        } else {
            drop(client.send(patch(gone)).await?);
            close(client, name).await?;
        }
        return Ok(Action::await_change());
    }
    // The view may show what is gone by now, and an account for that is one too many.
    let now = client.send(api::<Database>().get_opt(name)).await?;
    if now.is_none_or(|now| now.metadata.deletion_timestamp.is_some()) {
        return Ok(Action::await_change());
    }
    if let Some(held) = add_finalizer(cx.object(), FINALIZER) {
        drop(client.send(patch(held)).await?);
    }
    open(client, name).await?;
    Ok(Action::await_change())
}

fn accounts<const FIXED: bool>() -> Sim {
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<Database>::all()).run(serve::<FIXED>)))
        .given(|c| {
            let metadata = ObjectMeta::named(NS, "a").finalizer(FINALIZER);
            c.put(&Database { metadata, ..Database::default() });
            c.put(&Account::new("a", AccountSpec {}));
        })
        .change(millis(1_000), |c| c.put(&Database::new("b", DatabaseSpec {})))
        .change(millis(2_000), |c| delete::<Database>(c, "a"))
        .converges_to(|c| only::<Account>(c, &["b"]))
}

pub(super) const BUCKETS: Case = Case {
    class: "wrong cleanup order with finalizers",
    name: "accounts of buckets",
    mistake: "the account is opened first, and the finalizer that will close it is set second",
    subtle: true,
    adversary: Adversary::Crash,
    oracle: "converges",
    moment: &["asks: create accounts"],
    buggy: buckets::<false>,
    fixed: buckets::<true>,
};

/// Keeps an account for each bucket.
async fn keep<const FIXED: bool>(bucket: Arc<Bucket>, cx: Context) -> Result<Action, Error> {
    let (name, client) = (&bucket.metadata.name, cx.client());
    let patch = |patch| api::<Bucket>().patch(name, &patch, &PatchParams::default());
    if cx.object().is_deleting() {
        if let Some(gone) = remove_finalizer(cx.object(), FINALIZER) {
            close(client, name).await?;
            drop(client.send(patch(gone)).await?);
        }
        return Ok(Action::await_change());
    }
    let now = client.send(api::<Bucket>().get_opt(name)).await?;
    if now.is_none_or(|now| now.metadata.deletion_timestamp.is_some()) {
        return Ok(Action::await_change());
    }
    let held = add_finalizer(cx.object(), FINALIZER);
    if !FIXED {
        open(client, name).await?;
    }
    if let Some(held) = held {
        drop(client.send(patch(held)).await?);
    }
    if FIXED {
        open(client, name).await?;
    }
    Ok(Action::await_change())
}

fn buckets<const FIXED: bool>() -> Sim {
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<Bucket>::all()).run(keep::<FIXED>)))
        .given(|c| c.put(&Bucket::new("a", BucketSpec {})))
        .change(millis(1_000), |c| c.put(&Bucket::new("b", BucketSpec {})))
        // Somebody thought better of it.
        .change(millis(1_300), |c| delete::<Bucket>(c, "b"))
        .converges_to(|c| only::<Account>(c, &["a"]))
}

/// Somebody deletes it.
fn delete<K: steersman_core::api::Kind>(c: &mut Cluster<'_>, name: &str) {
    c.send(api::<K>().delete(name, &DeleteParams::background())).expect("it is there");
}
