//! The answers: a list, whole or in pages; a watch, with its initial events or without.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use steersman_core::wire::http::{
    BodyFraming, IncomingHead, write_chunk, write_last_chunk, write_response, write_response_head,
};

use super::{Listed, Server, Tls, lock, parameter};
use crate::contestant::nanos_since_1970;
use crate::pods::{Form, State};

/// Bytes of a chunk of a list, and of what is given to TLS at once.
const CHUNK: usize = 32 * 1024;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// The last frame of a watch whose version is gone.
const EXPIRED: &[u8] = br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}
"#;

impl Server {
    pub(super) fn answer(&self, head: &IncomingHead, tls: &mut Tls) -> io::Result<()> {
        let number = |name: &str| parameter(head, name).and_then(|v| v.parse::<u64>().ok());
        let is = |name: &str| parameter(head, name).is_some_and(|v| matches!(v, "true" | "1"));
        if head.path() != "/api/v1/pods" {
            let status =
                br#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
            let mut out = Vec::new();
            write_response(&mut out, 404, &[JSON], status);
            tls.write_all(&out)?;
            return tls.flush();
        }
        let partial = head.header("accept").is_some_and(|a| a.contains("PartialObjectMetadata"));
        let form = if partial { Form::Metadata } else { Form::Whole };
        if number("continue").is_none() && (!is("watch") || is("sendInitialEvents")) {
            // The harness takes the first of them for the end of a contestant's start.
            println!("asked {}", nanos_since_1970());
        }
        if is("watch") {
            return self.watch(form, is("sendInitialEvents"), tls);
        }
        let listed = *lock(&self.listed);
        let from = number("continue").unwrap_or(0).min(listed.count);
        let limit = number("limit").unwrap_or(0);
        let until = if limit == 0 { u64::MAX } else { from.saturating_add(limit) };
        let until = until.min(listed.count);
        let gzip = self.options.gzip
            && !partial
            && head.header("accept-encoding").is_some_and(|a| a.contains("gzip"));
        if gzip {
            return self.compressed(from, until, tls);
        }
        let mut out = Vec::with_capacity(2 * CHUNK);
        write_response_head(&mut out, 200, &[JSON], BodyFraming::Chunked);
        let mut chunks = Chunks { tls, out, body: Vec::with_capacity(2 * CHUNK) };
        self.list(form, listed, from, until, |bytes| chunks.add(bytes))?;
        chunks.end()
    }

    fn list(
        &self,
        form: Form,
        listed: Listed,
        from: u64,
        until: u64,
        mut add: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (pods, (kind, api_version)) = (&self.options.pods, form.kind());
        let mut metadata = format!(r#"{{"resourceVersion":"{}""#, pods.list_version() + listed.times);
        if until < listed.count {
            metadata += &format!(r#","continue":"{until}","remainingItemCount":{}"#, listed.count - until);
        }
        let head = format!(
            r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{metadata}}},"items":["#
        );
        add(head.as_bytes())?;
        let mut item = Vec::new();
        for n in from..until {
            item.clear();
            if n > from {
                item.push(b',');
            }
            pods.item(form, n * (pods.count() / listed.count), State::default(), &mut item);
            add(&item)?;
        }
        add(b"]}\n")
    }

    /// Every page in advance: a real server's time is no part of this.
    pub(super) fn compress_all(&self) -> io::Result<()> {
        let (count, page) = (self.options.pods.count(), self.options.page_size);
        let page = if page == 0 { count } else { page };
        let mut from = 0;
        while from < count {
            let until = from.saturating_add(page).min(count);
            self.page(from, until)?;
            from = until;
        }
        Ok(())
    }

    fn page(&self, from: u64, until: u64) -> io::Result<Arc<[u8]>> {
        if let Some(page) = lock(&self.pages).get(&(from, until)) {
            return Ok(Arc::clone(page));
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let listed = *lock(&self.listed);
        self.list(Form::Whole, listed, from, until, |bytes| gzip.write_all(bytes))?;
        let page: Arc<[u8]> = gzip.finish()?.into();
        lock(&self.pages).insert((from, until), Arc::clone(&page));
        Ok(page)
    }

    fn compressed(&self, from: u64, until: u64, tls: &mut Tls) -> io::Result<()> {
        let page = self.page(from, until)?;
        let mut out = Vec::new();
        write_response_head(&mut out, 200, &[JSON, ("Content-Encoding", "gzip")], BodyFraming::Chunked);
        let mut chunks = Chunks { tls, out, body: Vec::new() };
        page.chunks(CHUNK).try_for_each(|part| chunks.add(part))?;
        chunks.end()
    }

    fn watch(&self, form: Form, initial: bool, tls: &mut Tls) -> io::Result<()> {
        let (pods, times) = (&self.options.pods, lock(&self.listed).times);
        let mut out = Vec::with_capacity(2 * CHUNK);
        write_response_head(&mut out, 200, &[JSON], BodyFraming::Chunked);
        let mut frame = Vec::new();
        if initial {
            for n in 0..pods.count() {
                frame.clear();
                pods.frame(form, "ADDED", n, State::default(), &mut frame);
                write_chunk(&mut out, &frame);
                send(&mut out, CHUNK, tls)?;
            }
            write_chunk(&mut out, &bookmark(form, pods.list_version(), true));
        }
        send(&mut out, 0, tls)?;
        // The harness counts them.
        println!("watched");
        if self.options.events > 0 {
            self.wait_for_permit();
            self.events(form, &mut out, tls)?;
        }
        let mut last = Vec::new();
        write_chunk(&mut last, &bookmark(form, pods.event_version(self.options.events) + times, false));
        self.idle(times, tls, &last)?;
        write_chunk(&mut out, EXPIRED);
        write_last_chunk(&mut out);
        send(&mut out, 0, tls)
    }

    fn events(&self, form: Form, out: &mut Vec<u8>, tls: &mut Tls) -> io::Result<()> {
        let (pods, rate) = (&self.options.pods, self.options.rate);
        let began = Instant::now();
        let mut frame = Vec::new();
        for event in 1..=self.options.events {
            if let Some(nanos) = (event - 1).saturating_mul(1_000_000_000).checked_div(rate) {
                let due = Duration::from_nanos(nanos);
                while began.elapsed() < due {
                    send(out, 0, tls)?;
                    thread::park_timeout(due.saturating_sub(began.elapsed()));
                }
            }
            let sent = nanos_since_1970();
            frame.clear();
            pods.frame(form, "MODIFIED", pods.of_event(event), State { event, sent }, &mut frame);
            write_chunk(out, &frame);
            send(out, if rate > 0 { 0 } else { CHUNK }, tls)?;
        }
        send(out, 0, tls)
    }
}

/// Sends what has come together, if it is more than `least`.
fn send(out: &mut Vec<u8>, least: usize, tls: &mut Tls) -> io::Result<()> {
    if out.len() > least {
        tls.write_all(out)?;
        tls.flush()?;
        out.clear();
    }
    Ok(())
}

fn bookmark(form: Form, version: u64, ends_initial_events: bool) -> Vec<u8> {
    let annotations =
        if ends_initial_events { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
    let (kind, api_version) = form.kind();
    let rest = if form == Form::Whole { r#","spec":{"containers":null},"status":{}"# } else { "" };
    format!(
        r#"{{"type":"BOOKMARK","object":{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{version}","creationTimestamp":null{annotations}}}{rest}}}}}"#
    )
    .into_bytes()
    .into_iter()
    .chain([b'\n'])
    .collect()
}

/// A body in chunks of one size.
struct Chunks<'a> {
    tls: &'a mut Tls,
    out: Vec<u8>,
    body: Vec<u8>,
}

impl Chunks<'_> {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.body.extend_from_slice(bytes);
        if self.body.len() >= CHUNK {
            write_chunk(&mut self.out, &self.body);
            self.body.clear();
            send(&mut self.out, 0, self.tls)?;
        }
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        write_chunk(&mut self.out, &self.body);
        write_last_chunk(&mut self.out);
        send(&mut self.out, 0, self.tls)
    }
}
