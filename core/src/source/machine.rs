//! The machine that puts the parts of a watch together.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use serde::{Deserialize, Serialize};

use super::job::{DecodeJob, Decoded, Piece};
use super::reading::{self, Decoding, Reading, Text};
use super::status::SourceStatus;
use crate::api::{Api, ListParams, Request, Status, WatchParams};
use crate::auth::Authenticator;
use crate::client::{
    self, Driven, Effect, Endpoint, Exchange, ExchangeError, ExchangeErrorKind, Happening, Outgoing, Timeouts,
};
use crate::config::FileError;
use crate::controller::WatchSpec;
use crate::limits;
use crate::machine::{Deadline, Machine, Outputs};
use crate::net::{ConnId, NetEvent};
use crate::object::{Dropped, Object, ObjectOptions};
use crate::store::{Applied, Change, Changes, Delta, Indexes, Kept, Snapshot, Store};
use crate::time::{Clock, Time};
use crate::watcher::{self, Ask, CloseReason, ListMeta, Notice, Rejection, ReqId, Watcher};
use crate::wire;
use crate::wire::http::{RequestHead, retry_after};
use crate::wire::run::Run;

/// Settings of a source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Of the watcher.
    pub watcher: watcher::Config,
    /// What of every object is not kept, unless its [`WatchSpec`] says so itself.
    pub dropped: Dropped,
    /// Whether objects are kept packed, unless its [`WatchSpec`] says so itself: see
    /// [`Store::compact`](crate::store::Store::compact).
    pub compact: bool,
    /// From this many bytes on a run of frames or items goes out as a [`DecodeJob`]; below, and with `None`, it is
    /// decoded in place. Handing it over costs a copy, so it pays only with another core to do it.
    pub decode_job: Option<usize>,
    /// What its objects can be found by. A manager adds what its controllers ask for. They are functions, so a recording does
    /// without them.
    #[serde(skip)]
    pub indexes: Indexes,
}

/// What can happen to a source.
#[derive(Debug)]
pub enum Input<'a> {
    /// Begin. A second one does nothing.
    Start,
    /// End: close what is open and say [`Output::Stopped`].
    Stop,
    /// Something happened on a connection that was asked for.
    Net {
        /// Which.
        conn: ConnId,
        /// What.
        event: NetEvent<'a>,
    },
    /// A file that was asked for.
    File {
        /// Its path, as it was asked for.
        path: &'a str,
        /// All its bytes.
        result: Result<&'a [u8], &'a FileError>,
    },
    /// A job is done. What came meanwhile has waited.
    Decoded(Decoded),
    /// Time moved.
    Deadline,
}

/// What a source asks for or tells.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Something to do with connections or files.
    Effect(Effect),
    /// Decode this, on as many cores as there are, and report [`Input::Decoded`].
    Decode(Box<DecodeJob>),
    /// The state of the world changed, or is known to be right up to a later version.
    Delta(Delta<Object>),
    /// The first full state was in the delta before; said once.
    Synced,
    /// For people and statistics; nothing hangs on it.
    Notice(Notice),
    /// The last output.
    Stopped,
}

/// Keeps one resource in step with the server; see the [module](super).
pub struct Source {
    watch: WatchSpec,
    api: Api<Object>,
    /// The path of its lists, for people.
    path: String,
    options: Options,
    object: ObjectOptions,
    clock: Clock,
    watcher: Watcher<Object>,
    exchange: Exchange,
    store: Store<Object>,
    /// The request that is on the wire.
    current: Option<Current>,
    /// A job is out; what follows in the bytes waits for it.
    decoding: bool,
    /// What came of the request, in order.
    answers: VecDeque<client::Output>,
    /// When the bytes came that are being handled.
    received: Time,
    changes: Vec<Change<Kept<Object>>>,
    /// Where objects are put together.
    scratch: String,
    /// What subscribers were told last.
    told: (bool, Arc<str>),
    stopped: bool,
    from_watcher: Outputs<watcher::Output<Object>>,
    from_exchange: Outputs<client::Output>,
}

struct Current {
    id: ReqId,
    decoding: Arc<Decoding>,
    reading: Reading,
    /// Raw pieces that are collected for a job.
    run: Run,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("watch", &self.watch)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// A source that waits for [`Input::Start`]. `seed` feeds jitter only.
    #[must_use]
    pub fn new(
        watch: &WatchSpec,
        options: Options,
        endpoint: Arc<Endpoint>,
        authenticator: Authenticator,
        seed: u64,
    ) -> Self {
        let watch = watch.normalised();
        let mut api = Api::dynamic(watch.resource.clone());
        if let Some(namespace) = &watch.namespace {
            api = api.within(namespace);
        }
        if watch.metadata_only {
            api = api.metadata_only();
        }
        let dropped = watch.dropped.as_ref().unwrap_or(&options.dropped);
        let mut object = ObjectOptions::of(&watch.resource).dropping(dropped.clone());
        object.metadata_only = watch.metadata_only;
        let mut store = Store::with_indexes(options.indexes.clone());
        if watch.compact.unwrap_or(options.compact) {
            store = store.compact();
        }
        Self {
            path: api.list(&ListParams::default()).path_and_query,
            api,
            object,
            clock: Clock::default(),
            watcher: Watcher::new(options.watcher.clone(), seed),
            exchange: Exchange::new(endpoint, authenticator),
            store,
            current: None,
            decoding: false,
            answers: VecDeque::new(),
            received: Time::ZERO,
            changes: Vec::new(),
            scratch: String::new(),
            told: (false, Arc::from("")),
            stopped: false,
            from_watcher: Outputs::new(),
            from_exchange: Outputs::new(),
            watch,
            options,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        SourceStatus {
            watch: self.watch.clone(),
            path: self.path.clone(),
            watcher: self.watcher.status(),
            objects: self.store.len(),
            stale: self.store.stale(),
            index_panics: self.store.index_panics(),
            packed: self.store.packed(),
        }
    }

    /// The present state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<Object> {
        self.store.snapshot()
    }

    /// What it was made with, but for the seed.
    #[cfg(feature = "record")]
    pub(crate) const fn parts(&self) -> (&WatchSpec, &Options, &Exchange) {
        (&self.watch, &self.options, &self.exchange)
    }

    #[cfg(feature = "record")]
    pub(crate) const fn exchange_mut(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    fn request(&self, ask: &Ask) -> Outgoing {
        let (labels, fields) = (&*self.watch.selectors.labels, &*self.watch.selectors.fields);
        let (request, timeouts) = match ask {
            Ask::List { limit, continue_token, resource_version } => {
                let mut params = ListParams::default().labels(labels).fields(fields);
                params.limit = *limit;
                params.continue_token.clone_from(continue_token);
                params.resource_version.clone_from(resource_version);
                (self.api.list(&params).into_raw(), Timeouts::default())
            }
            Ask::Watch { resource_version, timeout_seconds, send_initial_events } => {
                let mut params = WatchParams::after(resource_version).labels(labels).fields(fields);
                params.timeout_seconds = Some(*timeout_seconds);
                params.send_initial_events = *send_initial_events;
                (self.api.watch(&params).into_raw(), Timeouts::watch())
            }
        };
        let Request { method, path_and_query, mut headers, .. } = request;
        if let Ask::Watch { send_initial_events: true, .. } = ask
            && self.exchange.endpoint().gzip
        {
            headers.push(("Accept-Encoding".into(), "gzip".into()));
        }
        Outgoing {
            head: RequestHead { method, target: path_and_query, headers },
            body: None,
            idempotent: true,
            keep: true,
            timeouts,
        }
    }

    /// Lets the parts talk until none has anything to say.
    fn settle(&mut self, now: Time, out: &mut Outputs<Output>) {
        loop {
            if !self.from_watcher.is_empty() {
                self.hear_watcher(now, out);
            } else if !self.from_exchange.is_empty() {
                for output in self.from_exchange.drain() {
                    match output {
                        client::Output::Effect(effect) => out.push(Output::Effect(effect)),
                        answer => self.answers.push_back(answer),
                    }
                }
            } else if self.decoding {
                break;
            } else if let Some(answer) = self.answers.pop_front() {
                self.hear_answer(now, answer, out);
            } else {
                break;
            }
        }
    }

    fn hear_watcher(&mut self, now: Time, out: &mut Outputs<Output>) {
        let mut heard = mem::take(&mut self.from_watcher);
        for output in heard.drain() {
            match output {
                watcher::Output::Request(id, ask) => {
                    let list = matches!(ask, Ask::List { .. });
                    let decoding = Arc::new(Decoding { list, options: self.object.clone() });
                    self.current = Some(Current { id, decoding, reading: Reading::Head, run: Run::new() });
                    let outgoing = Box::new(self.request(&ask));
                    self.exchange.handle(now, client::Input::Send(outgoing), &mut self.from_exchange);
                }
                watcher::Output::Cancel(id) => self.cancel(now, id),
                watcher::Output::Event(event) => {
                    if let Applied::Stale(key) = self.store.apply_kept(event, &mut self.changes) {
                        out.push(Output::Notice(Notice::Stale { key }));
                    }
                }
                watcher::Output::Notice(notice) => out.push(Output::Notice(notice)),
            }
        }
        self.from_watcher = heard;
    }

    /// The answer to `id` is no longer wanted.
    fn cancel(&mut self, now: Time, id: ReqId) {
        if self.current.as_ref().is_some_and(|c| c.id == id) {
            self.current = None;
        }
        self.drop_answer(now);
    }

    fn drop_answer(&mut self, now: Time) {
        self.decoding = false;
        self.answers.clear();
        self.exchange.handle(now, client::Input::Abort, &mut self.from_exchange);
    }

    fn hear_answer(&mut self, now: Time, answer: client::Output, out: &mut Outputs<Output>) {
        let Some(mut current) = self.current.take() else { return };
        let id = current.id;
        match answer {
            client::Output::Head(head) => {
                match Reading::of(head, current.decoding.list, &self.exchange.endpoint().limits) {
                    Ok(reading) => {
                        if !matches!(reading, Reading::Refusal { .. }) {
                            self.tell(now, watcher::Input::Opened(id));
                        }
                        current.reading = reading;
                        self.current = Some(current);
                    }
                    Err(error) => self.give_up(now, id, CloseReason::Protocol(error)),
                }
            }
            client::Output::Body(bytes) => {
                // Blank lines keep a connection alive, but say nothing of the watch.
                if !bytes.iter().all(u8::is_ascii_whitespace) {
                    self.tell(now, watcher::Input::Progress(id));
                }
                self.body(now, current, &bytes, out);
            }
            answer @ (client::Output::End | client::Output::Failed(_)) => self.end(now, current, answer, out),
            _ => self.current = Some(current),
        }
    }

    fn tell(&mut self, now: Time, input: watcher::Input<Object>) {
        let input = match input {
            watcher::Input::Closed(id, CloseReason::Protocol(why)) => {
                watcher::Input::Closed(id, CloseReason::Protocol(self.exchange.redact(why)))
            }
            input => input,
        };
        self.watcher.handle(now, input, &mut self.from_watcher);
    }

    /// The answer makes no sense: the rest of it is not read.
    fn give_up(&mut self, now: Time, id: ReqId, why: CloseReason) {
        self.drop_answer(now);
        self.tell(now, watcher::Input::Closed(id, why));
    }

    fn body(&mut self, now: Time, mut current: Current, bytes: &[u8], out: &mut Outputs<Output>) {
        match &mut current.reading {
            Reading::Head => self.current = Some(current),
            Reading::Refusal { body, .. } => {
                let room = self.exchange.endpoint().limits.error_body_bytes.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                self.current = Some(current);
            }
            Reading::List(_) | Reading::Watch(_) => {
                let id = current.id;
                match self.pieces(now, &mut current, bytes, false, out) {
                    Pieces::Fine => self.current = Some(current),
                    Pieces::Unwanted => {}
                    Pieces::Nonsense(error) => self.give_up(now, id, CloseReason::Protocol(error)),
                }
            }
        }
    }

    /// Cuts `bytes` and hands on what is whole. `last`: nothing follows.
    fn pieces(
        &mut self,
        now: Time,
        current: &mut Current,
        mut bytes: &[u8],
        last: bool,
        out: &mut Outputs<Output>,
    ) -> Pieces {
        let decoding = Arc::clone(&current.decoding);
        let mut text = Text::new(bytes);
        let input = &mut bytes;
        loop {
            if self.options.decode_job.is_none()
                && let Some(piece) =
                    current.reading.ahead(input, &mut text, &decoding.options, &mut self.scratch)
            {
                if !self.hand_on(now, current.id, piece, out) {
                    return Pieces::Unwanted;
                }
                continue;
            }
            let piece = match &mut current.reading {
                Reading::List(splitter) => match splitter.next(input) {
                    Ok(piece) => piece,
                    Err(e) => return Pieces::Nonsense(format!("{e}")),
                },
                Reading::Watch(splitter) => match splitter.next(input) {
                    // A frame that was cut off was not applied, so it comes again.
                    None if last => splitter.finish().filter(|p| !matches!(p, wire::Piece::Truncated(_))),
                    piece => piece,
                },
                Reading::Head | Reading::Refusal { .. } => None,
            };
            let Some(piece) = piece else { break };
            if self.options.decode_job.is_some() {
                current.run.push(piece);
                continue;
            }
            let piece = reading::decode(piece, &decoding, &mut self.scratch);
            if !self.hand_on(now, current.id, piece, out) {
                return Pieces::Unwanted;
            }
        }
        if current.run.is_empty() {
            return Pieces::Fine;
        }
        let job_size = self.options.decode_job.unwrap_or(usize::MAX);
        if current.run.byte_len() >= job_size {
            let run = mem::take(&mut current.run);
            self.decoding = true;
            out.push(Output::Decode(Box::new(DecodeJob {
                request: current.id,
                received: now,
                run,
                decoding,
            })));
        } else if last || !decoding.list {
            // Objects of a list may wait for more; nobody sees them before the list is whole.
            let run = mem::take(&mut current.run);
            for piece in run.all().iter() {
                let piece = reading::decode(piece, &decoding, &mut self.scratch);
                if !self.hand_on(now, current.id, piece, out) {
                    return Pieces::Unwanted;
                }
            }
        }
        Pieces::Fine
    }

    /// One decoded piece to the watcher; whether it wants more.
    fn hand_on(&mut self, now: Time, id: ReqId, piece: Piece, out: &mut Outputs<Output>) -> bool {
        self.tell(
            now,
            match piece {
                Piece::Item(Ok(object)) => watcher::Input::Item(id, object),
                Piece::Item(Err(bad)) => watcher::Input::BadItem(id, bad),
                Piece::Frame(frame) => watcher::Input::Frame(id, frame),
            },
        );
        // The request is taken out while its body is read, so a cancel shows in what the watcher says.
        let wanted = !self.from_watcher.iter().any(|o| matches!(o, watcher::Output::Cancel(c) if *c == id));
        self.hear_watcher(now, out);
        wanted
    }

    /// The answer is over, in order or not. What was whole before it broke still counts.
    fn end(&mut self, now: Time, mut current: Current, answer: client::Output, out: &mut Outputs<Output>) {
        let id = current.id;
        let cut = self.pieces(now, &mut current, &[], true, out);
        if self.decoding {
            // The last pieces are still out; the end comes after them.
            self.current = Some(current);
            return self.answers.push_front(answer);
        }
        let input = match (cut, answer) {
            (Pieces::Unwanted, _) => return,
            (_, client::Output::Failed(e)) => watcher::Input::Closed(id, close_reason(e)),
            (Pieces::Nonsense(error), _) => watcher::Input::Closed(id, CloseReason::Protocol(error)),
            (Pieces::Fine, _) => match current.reading {
                // Cannot be: a response begins with its head.
                Reading::Head => watcher::Input::Closed(id, CloseReason::Protocol("no head".into())),
                Reading::List(splitter) => match splitter.finish() {
                    Ok(head) => watcher::Input::ListEnd(
                        id,
                        ListMeta {
                            resource_version: head.resource_version,
                            continue_token: head.continue_token,
                            remaining_item_count: head.remaining_item_count,
                        },
                    ),
                    Err(e) => watcher::Input::Closed(id, CloseReason::Protocol(format!("{e}"))),
                },
                Reading::Watch(_) => watcher::Input::Closed(id, CloseReason::Clean),
                Reading::Refusal { head, body } => {
                    let content_type = head.header("content-type");
                    let mut status = Status::from_response(head.status, content_type, &body);
                    status.message = self.exchange.redact(status.message);
                    let retry_after = retry_after(&head);
                    watcher::Input::Rejected(id, Rejection { code: head.status, status, retry_after })
                }
            },
        };
        self.tell(now, input);
    }

    fn decoded(&mut self, now: Time, decoded: Decoded, out: &mut Outputs<Output>) {
        // A job that was overtaken by a cancel is void.
        if !self.decoding || self.current.as_ref().is_none_or(|c| c.id != decoded.request) {
            return;
        }
        self.decoding = false;
        self.received = decoded.received;
        let current = self.current.take();
        for piece in decoded.pieces {
            if !self.hand_on(now, decoded.request, piece, out) {
                return;
            }
        }
        self.current = current;
    }

    /// Tells subscribers what has changed since they were told last.
    fn publish(&mut self, out: &mut Outputs<Output>) {
        let panics = self.store.take_index_panics().into_iter();
        out.extend(panics.map(|panic| Output::Notice(Notice::IndexPanicked(panic))));
        let (synced, version) = (self.store.is_synced(), self.store.resource_version());
        if self.changes.is_empty() && (synced, version) == (self.told.0, &*self.told.1) {
            return;
        }
        let view = self.store.snapshot();
        let first = synced && !self.told.0;
        self.told = (synced, view.shared_resource_version());
        out.push(Output::Delta(Delta {
            changes: Changes::of_kept(self.changes.drain(..)),
            view,
            synced,
            resource_version: Arc::clone(&self.told.1),
            received: self.received,
        }));
        // The buffer stays for the next ones, unless it was for a whole list.
        if self.changes.capacity() > limits::CHANGES_KEPT {
            self.changes = Vec::new();
        }
        if first {
            out.push(Output::Synced);
        }
    }
}

enum Pieces {
    Fine,
    /// The watcher does not want the rest.
    Unwanted,
    Nonsense(String),
}

fn close_reason(e: ExchangeError) -> CloseReason {
    match e.kind {
        ExchangeErrorKind::Refused => CloseReason::Refused(e.message),
        ExchangeErrorKind::TimedOut(_) => CloseReason::TimedOut(e.message),
        ExchangeErrorKind::Protocol | ExchangeErrorKind::Redirect | ExchangeErrorKind::Misuse => {
            CloseReason::Protocol(e.message)
        }
        _ => CloseReason::Broken(e.message),
    }
}

impl Machine for Source {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Time, input: Input<'_>, out: &mut Outputs<Output>) {
        let now = self.clock.advance(now);
        if self.stopped {
            return;
        }
        self.received = now;
        match input {
            Input::Start => self.tell(now, watcher::Input::Start),
            Input::Stop => {
                self.tell(now, watcher::Input::Stop);
                self.current = None;
                self.drop_answer(now);
                self.stopped = true;
            }
            Input::Net { conn, event } => {
                self.exchange.handle(now, client::Input::Net { conn, event }, &mut self.from_exchange);
            }
            Input::File { path, result } => {
                self.exchange.handle(now, client::Input::File { path, result }, &mut self.from_exchange);
            }
            Input::Decoded(decoded) => self.decoded(now, decoded, out),
            Input::Deadline => {
                self.exchange.handle(now, client::Input::Deadline, &mut self.from_exchange);
                self.settle(now, out);
                self.tell(now, watcher::Input::Deadline);
            }
        }
        self.settle(now, out);
        self.publish(out);
        if self.stopped {
            out.push(Output::Stopped);
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        if self.stopped {
            return None;
        }
        Deadline::earlier(self.exchange.next_deadline(), self.watcher.next_deadline())
    }
}

impl Driven for Source {
    fn happened(happening: Happening<'_>) -> Input<'_> {
        match happening {
            Happening::Net { conn, event } => Input::Net { conn, event },
            Happening::File { path, result } => Input::File { path, result },
            Happening::Deadline => Input::Deadline,
        }
    }

    fn effect(output: Output) -> Result<Effect, Output> {
        match output {
            Output::Effect(effect) => Ok(effect),
            other => Err(other),
        }
    }
}
