//! Whole HTTP answers: what the codec reads, and what a list, a watch and a get make of them.

use std::sync::Arc;

use steersman_core::api::Api;
use steersman_core::api::kinds::PODS;
use steersman_core::auth::Authenticator;
use steersman_core::client::{Call, CallInput, CallOutput, Effect, Endpoint};
use steersman_core::config::{Bearer, Cluster, Config, Secret};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::object::Object;
use steersman_core::time::Time;
use steersman_core::wire::http::{
    HttpEvent, HttpLimits, ResponseContext, ResponseDecoder, retry_after, warnings,
};

use super::{Findings, brief, play, same_for_all_cuts};

pub(super) fn run(bytes: &[u8]) -> Findings {
    let mut found = Findings::default();
    for line in same_for_all_cuts("wire", bytes, &mut found, decode) {
        found.say(format!("wire: {line}"));
    }
    for line in same_for_all_cuts("get", bytes, &mut found, get) {
        found.say(format!("get: {line}"));
    }
    for (what, ask) in [("list", play::Answering::List), ("watch", play::Answering::Watch)] {
        let lines = same_for_all_cuts(what, bytes, &mut found, |parts| play::play(ask, parts, true));
        for line in lines {
            found.say(format!("{what}: {line}"));
        }
    }
    found
}

/// Each answer in the bytes, and how it ends. A connection is of use afterwards only if nothing follows unasked.
fn decode(parts: &[&[u8]]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut decoder = ResponseDecoder::new(HttpLimits::default(), ResponseContext::default());
    let (mut body, mut reuse, mut beyond) = (Vec::new(), None, 0);
    let mut failed = false;
    let mut event = |event: Result<Option<HttpEvent<'_>>, _>, lines: &mut Vec<String>| match event {
        Ok(None) => false,
        Ok(Some(HttpEvent::Head(head))) => {
            lines.push(format!(
                "{} {:?}{}",
                head.status,
                head.reason,
                if head.http10 { " HTTP/1.0" } else { "" }
            ));
            if let Some(wait) = retry_after(&head) {
                lines.push(format!("Retry-After {wait:?}"));
            }
            for text in warnings(&head) {
                lines.push(format!("warning {text:?}"));
            }
            true
        }
        Ok(Some(HttpEvent::Body(bytes))) => {
            body.extend_from_slice(bytes);
            true
        }
        Ok(Some(HttpEvent::End { reusable })) => {
            reuse = Some(reusable);
            true
        }
        Err(error) => {
            let error: steersman_core::wire::WireError = error;
            lines.push(format!("error: {error}"));
            failed = true;
            false
        }
    };
    for part in parts {
        let input = &mut &part[..];
        while event(decoder.next(input), &mut lines) {}
        if lines.iter().any(|l| l.starts_with("error: ")) {
            break;
        }
        if decoder.is_done() {
            beyond += input.len();
        }
    }
    // A decoder that has failed says the same again; once is enough.
    if !decoder.is_done() && !lines.iter().any(|l| l.starts_with("error: ")) {
        event(decoder.eof(), &mut lines);
    }
    if !body.is_empty() || !failed {
        lines.push(format!("body {} bytes: {}", body.len(), brief(&String::from_utf8_lossy(&body), 60)));
    }
    if let Some(reusable) = reuse {
        let fate = match (reusable && beyond == 0, beyond) {
            (true, _) => "reusable",
            (false, 0) => "not reusable",
            (false, _) => "not reusable, since more bytes follow",
        };
        lines.push(format!("connection {fate}"));
    }
    lines
}

/// What one `get` makes of the answer: its result, or how long it waits before it tries again.
fn get(parts: &[&[u8]]) -> Vec<String> {
    let config = config();
    let request = Api::<Object>::dynamic(PODS).within("default").get("a");
    let mut call = Call::new(Arc::new(Endpoint::new(&config)), Authenticator::new(&config), request, 1);
    let mut out = Outputs::new();
    let mut lines = Vec::new();
    let now = Time::from_secs(1);
    call.handle(now, CallInput::Start, &mut out);
    let Some(conn) = connection(&mut out, &mut lines) else { return lines };
    call.handle(now, CallInput::Net { conn, event: NetEvent::Connected { reused: false } }, &mut out);
    connection(&mut out, &mut lines);
    for part in parts {
        call.handle(now, CallInput::Net { conn, event: NetEvent::Received(part) }, &mut out);
        connection(&mut out, &mut lines);
    }
    call.handle(now, CallInput::Net { conn, event: NetEvent::Eof }, &mut out);
    connection(&mut out, &mut lines);
    if !call.is_done() {
        let pause = call.next_deadline().map(|d| d.at.since(now));
        lines.push(format!("tries again after {pause:?}"));
    }
    lines
}

fn connection(out: &mut Outputs<CallOutput<Object>>, lines: &mut Vec<String>) -> Option<ConnId> {
    let mut conn = None;
    for output in out.drain() {
        match output {
            CallOutput::Effect(Effect::Connect { conn: c, .. }) => conn = Some(c),
            CallOutput::Done(Ok(object)) => {
                lines.push(format!("got {object:?}, {} bytes", object.raw().len()))
            }
            CallOutput::Done(Err(e)) => lines.push(format!("{e}")),
            _ => {}
        }
    }
    conn
}

pub(super) fn config() -> Config {
    let mut config = Config::new(Cluster {
        host: "kube.test".into(),
        ..Cluster::parse("https://kube.test:6443").unwrap_or_else(|e| panic!("{e}"))
    });
    config.credentials.bearer = Bearer::Token(Secret::new("t0ken"));
    config
}
