//! Crash between a create and the status that tells of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use steersman_core::api::kinds::ConfigMap;
use steersman_core::api::{Api, Patch, PatchParams};
use steersman_core::client::Error;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{ObjectMeta, controller_owner_reference};
use steersman_sim::{Cluster, Sim};
use steersman_smol::Context;

use super::kinds::{Certificate, CertificateSpec, NS, Order, OrderSpec, PortClaim, PortClaimSpec};
use super::{Adversary, Case, api, cluster, millis};

pub(super) const ISSUER: Case = Case {
    class: "crash between create and status",
    name: "certificate issuer",
    mistake: "the server chooses the order's name, which is noted only afterwards",
    subtle: false,
    adversary: Adversary::Crash,
    oracle: "converges",
    moment: &["asks: create orders"],
    buggy: issuer::<false>,
    fixed: issuer::<true>,
};

/// Orders a certificate, once: each order costs money.
async fn issue<const FIXED: bool>(certificate: Arc<Certificate>, cx: Context) -> Result<Action, Error> {
    if !certificate.status.order.is_empty() {
        return Ok(Action::await_change());
    }
    let name = &certificate.metadata.name;
    let mut metadata = ObjectMeta::named(NS, "").owner(controller_owner_reference(cx.object()));
    if FIXED {
        metadata.name = format!("{name}-order");
    } else {
        metadata.generate_name = format!("{name}-order-");
    }
    let spec = OrderSpec { domain: certificate.spec.domain.clone() };
    let order = Order { metadata, spec, ..Order::default() };
    let order = match cx.client().send(api::<Order>().create(&order)).await {
        Err(e) if FIXED && e.is_already_exists() => order,
        made => made?,
    };
    let status = Patch::Merge(json!({"status": {"order": order.metadata.name}}));
    let note = api::<Certificate>().patch_status(name, &status, &PatchParams::default());
    drop(cx.client().send(note).await?);
    Ok(Action::await_change())
}

fn issuer<const FIXED: bool>() -> Sim {
    let certificate =
        |name: &str| Certificate::new(name, CertificateSpec { domain: format!("{name}.example") });
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<Certificate>::all()).run(issue::<FIXED>)))
        .given(move |c| c.put(&certificate("web")))
        .change(millis(1_000), move |c| c.put(&certificate("mail")))
        .converges_to(|c| {
            for certificate in c.list::<Certificate>() {
                let domain = &certificate.spec.domain;
                match c.list::<Order>().iter().filter(|o| o.spec.domain == *domain).count() {
                    1 => {}
                    n => return Err(format!("{n} orders for {domain}")),
                }
                if c.get::<Order>(NS, &certificate.status.order).is_none() {
                    return Err(format!("{domain} does not tell its order"));
                }
            }
            Ok(())
        })
}

pub(super) const PORTS: Case = Case {
    class: "crash between create and status",
    name: "port pool",
    mistake: "a port is given away first, and taken out of the pool second",
    subtle: true,
    adversary: Adversary::Crash,
    oracle: "always",
    moment: &["asks: replace portclaims/status default/a"],
    buggy: ports::<false>,
    fixed: ports::<true>,
};

/// Gives each claim the next port of a pool.
async fn assign<const FIXED: bool>(claim: Arc<PortClaim>, cx: Context) -> Result<Action, Error> {
    // The view may be older than what was given away.
    let Some(mut claim) = cx.client().send(api::<PortClaim>().get_opt(&claim.metadata.name)).await? else {
        return Ok(Action::await_change());
    };
    if claim.status.port != 0 {
        return Ok(Action::await_change());
    }
    let mut pool = cx.client().send(api::<ConfigMap>().get("ports")).await?;
    let port = pool.data["next"].parse().unwrap_or(0);
    claim.status.port = port;
    pool.data.insert("next".to_owned(), (port + 1).to_string());
    let give = api::<PortClaim>().replace_status(&claim.metadata.name, &claim);
    let take = api::<ConfigMap>().replace("ports", &pool);
    if FIXED {
        // Whoever fails in between has lost a port, and nobody has it twice.
        drop(cx.client().send(take).await?);
        drop(cx.client().send(give).await?);
    } else {
        drop(cx.client().send(give).await?);
        drop(cx.client().send(take).await?);
    }
    Ok(Action::await_change())
}

fn ports<const FIXED: bool>() -> Sim {
    let claim = |name: &str| PortClaim::new(name, PortClaimSpec {});
    let has_one = |c: &Cluster<'_>| match c.list::<PortClaim>().iter().find(|c| c.status.port == 0) {
        Some(claim) => Err(format!("{} has no port", claim.metadata.name)),
        None => Ok(()),
    };
    cluster()
        .replica(|m| m.controller(Builder::new(Api::<PortClaim>::all()).run(assign::<FIXED>)))
        .given(move |c| {
            c.put(&claim("a"));
            let data = [("next".to_owned(), "7000".to_owned())].into();
            c.put(&ConfigMap { metadata: ObjectMeta::named(NS, "ports"), data, ..ConfigMap::default() });
        })
        .change(millis(1_000), move |c| c.put(&claim("b")))
        .always(|c| {
            let mut taken = BTreeSet::new();
            let claims = c.list::<PortClaim>();
            match claims.iter().find(|c| c.status.port != 0 && !taken.insert(c.status.port)) {
                Some(claim) => Err(format!("{} has a port that another one has, too", claim.metadata.name)),
                None => Ok(()),
            }
        })
        .converges_to(has_one)
        // Which port it is, is of no importance.
        .ignoring(|object| {
            if let Some(port) = object.pointer_mut("/status/port") {
                port.take();
            }
            if let Some(next) = object.pointer_mut("/data/next") {
                next.take();
            }
        })
}
