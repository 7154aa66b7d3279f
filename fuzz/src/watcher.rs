//! The watcher and its store against a tiny API server whose every fault is at hand.
//!
//! The bytes choose settings, writes on the server, faults and the pace of delivery. In between it is checked that
//! nothing goes back in time, that one request is outstanding at most, and that whoever follows the changes knows the
//! state. In the end the faults stop, time passes, and the store must be what the server has.

use std::collections::BTreeMap;
use std::time::Duration;

use steersman_core::api::{Status, StatusCause, StatusDetails};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::object::{Key, OwnerReference, Resource, version};
use steersman_core::store::{Change, Store};
use steersman_core::time::Time;
use steersman_core::watcher::{
    Ask, BadObject, CloseReason, Config, Event, FirstState, Frame, Input, ListMeta, Notice, Output, Phase,
    Rejection, ReqId, Watcher,
};

/// Plays `data`, twice: the same inputs must give the same outputs.
///
/// # Panics
/// If the watcher or the store breaks a promise.
pub fn run(data: &[u8]) {
    let once = World::play(data);
    assert_eq!(once, World::play(data), "not the same twice");
}

/// The stand-in for an object.
#[derive(Clone, Debug, PartialEq)]
struct Obj {
    name: u8,
    uid: String,
    rv: String,
}

impl Resource for Obj {
    fn key(&self) -> Key {
        Key::namespaced(if self.name.is_multiple_of(3) { "a" } else { "b" }, &self.name.to_string())
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.rv
    }
    fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}
}

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Added,
    Modified,
    Deleted,
}

/// What the server holds: the state, and the events since `compacted`.
#[derive(Clone)]
struct Data {
    objects: BTreeMap<u8, Obj>,
    log: Vec<(u64, Verb, Obj)>,
    rv: u64,
    compacted: u64,
}

impl Data {
    fn write(&mut self, name: u8, delete: bool, uid: u64) {
        self.rv += 1;
        let rv = self.rv.to_string();
        let (verb, object) = match (self.objects.get(&name).cloned(), delete) {
            (Some(old), true) => {
                self.objects.remove(&name);
                (Verb::Deleted, Obj { rv, ..old })
            }
            (None, true) => return,
            (Some(old), false) => (Verb::Modified, Obj { rv, ..old }),
            (None, false) => (Verb::Added, Obj { name, uid: format!("u{uid}"), rv }),
        };
        if !delete {
            self.objects.insert(name, object.clone());
        }
        self.log.push((self.rv, verb, object));
    }

    fn compact(&mut self) {
        self.compacted = self.rv;
        self.log.clear();
    }
}

/// The request that is outstanding, as the server sees it.
enum Conn {
    /// Not answered yet.
    Asked(Ask),
    /// Items still to be sent, then the end of the page.
    List { items: Vec<Obj>, end: ListMeta },
    Watch {
        /// Events up to here were sent.
        sent: u64,
        /// Initial events still to be sent, then the end bookmark at this version.
        initial: Option<(Vec<Obj>, u64)>,
        ends: Time,
        bookmark: Time,
        /// Nothing comes any more, and nobody says so.
        dead: bool,
    },
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn or_zero(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }
}

struct World {
    now: Time,
    data: Data,
    backup: Data,
    uids: u64,
    streams_work: bool,
    end_bookmarks: bool,
    conn: Option<(ReqId, Conn)>,
    /// Pages of one list read one state; the token is an index.
    pages: Vec<(Vec<Obj>, u64)>,
    watcher: Watcher<Obj>,
    store: Store<Obj>,
    follower: BTreeMap<Key, Obj>,
    last_id: u64,
    /// The server may be behind the watcher, which has not been told.
    restored: bool,
    requests: u64,
    told: Vec<String>,
}

const RESTS: [u16; 10] = [400, 401, 403, 404, 410, 429, 500, 502, 503, 504];

fn status(code: u16, reason: &str) -> Status {
    Status { status: "Failure".into(), code, reason: reason.into(), ..Status::default() }
}

fn too_large() -> Status {
    let cause = StatusCause { reason: "ResourceVersionTooLarge".into(), ..StatusCause::default() };
    let details = Some(StatusDetails { causes: vec![cause], ..StatusDetails::default() });
    Status { details, ..status(504, "Timeout") }
}

impl World {
    fn play(data: &[u8]) -> Vec<String> {
        let mut bytes = Bytes(data);
        let flags = bytes.or_zero();
        let config = Config {
            first: if flags & 1 == 0 { FirstState::Consistent } else { FirstState::Cached },
            page_size: [None, Some(1), Some(3), Some(500)][usize::from(flags >> 1 & 3)],
            streaming: flags & 8 != 0,
            ..Config::default()
        };
        let empty = Data { objects: BTreeMap::new(), log: Vec::new(), rv: 5, compacted: 0 };
        let mut world = Self {
            now: Time::ZERO,
            backup: empty.clone(),
            data: empty,
            uids: 0,
            streams_work: flags & 16 == 0,
            end_bookmarks: flags & 32 == 0,
            conn: None,
            pages: Vec::new(),
            watcher: Watcher::new(config, bytes.or_zero().into()),
            store: Store::new(),
            follower: BTreeMap::new(),
            last_id: 0,
            restored: false,
            requests: 0,
            told: Vec::new(),
        };
        world.give(Input::Start);
        while let Some(op) = bytes.next() {
            let arg = bytes.or_zero();
            world.op(op, arg);
        }
        world.settle();
        world.told
    }

    fn op(&mut self, op: u8, arg: u8) {
        let name = arg % 16;
        match op % 20 {
            0..=3 => self.write(name, false),
            4 => self.write(name, true),
            5 => {
                self.write(name, true);
                self.write(name, false);
            }
            6..=8 => {
                for _ in 0..=arg % 8 {
                    self.serve();
                }
            }
            9 => self.pass(Duration::from_millis(u64::from(arg) * 20)),
            10 => self.pass(Duration::from_secs(u64::from(arg) * 4)),
            11 => self.data.compact(),
            12 => self.close(
                [
                    CloseReason::Clean,
                    CloseReason::Broken("reset".into()),
                    CloseReason::Refused("refused".into()),
                    CloseReason::TimedOut("slow".into()),
                    CloseReason::Protocol("not HTTP".into()),
                ][usize::from(arg % 5)]
                .clone(),
            ),
            13 => self.reject(arg),
            14 => self.error_frame(arg),
            15 => self.bad_frame(arg),
            16 => self.replay(arg),
            17 => {
                if let Some((_, Conn::Watch { dead, .. })) = &mut self.conn {
                    *dead = true;
                }
            }
            18 if arg < 128 => self.backup = self.data.clone(),
            18 => self.restore(),
            _ => self.stray(arg),
        }
    }

    fn write(&mut self, name: u8, delete: bool) {
        // While the server is behind what the watcher has seen, a write could reuse a version that meant something
        // else before; nobody can notice that.
        if version::compare(&self.watcher.status().last_version, &self.data.rv.to_string())
            == Some(std::cmp::Ordering::Greater)
        {
            return;
        }
        self.uids += 1;
        self.data.write(name, delete, self.uids);
    }

    fn restore(&mut self) {
        self.close(CloseReason::Broken("the server went down".into()));
        self.data = self.backup.clone();
        self.pages.clear();
        self.restored = true;
    }

    /// Hands one input to the watcher, and what follows to the store and the server.
    fn give(&mut self, input: Input<Obj>) {
        let mut out = Outputs::new();
        self.watcher.handle(self.now, input, &mut out);
        let mut changes = Vec::new();
        for output in out {
            self.told.push(format!("{output:?}"));
            match output {
                Output::Request(id, ask) => {
                    assert!(self.conn.is_none(), "two requests at once");
                    assert!(id.0 > self.last_id, "ids are never used again");
                    self.last_id = id.0;
                    self.requests += 1;
                    self.conn = Some((id, Conn::Asked(ask)));
                }
                Output::Cancel(id) => {
                    assert_eq!(
                        self.conn.take().map(|c| c.0),
                        Some(id),
                        "only what is outstanding is cancelled"
                    );
                }
                Output::Event(event) => {
                    let done = matches!(event, Event::InitDone { .. });
                    let before = self.store.resource_version().to_owned();
                    self.store.apply(event, &mut changes);
                    let back = version::compare(self.store.resource_version(), &before);
                    assert!(
                        back != Some(std::cmp::Ordering::Less) || (done && self.restored),
                        "the store went back in time"
                    );
                    self.follow(&changes);
                    changes.clear();
                }
                Output::Notice(Notice::WentBack { .. }) => {
                    assert!(self.restored, "went back without a reason");
                }
                _ => {}
            }
        }
        assert_eq!(self.store.resource_version(), self.watcher.status().last_version);
    }

    /// Whoever follows the changes knows the state, and sees no object go back in time.
    fn follow(&mut self, changes: &[Change<Obj>]) {
        for change in changes {
            match change {
                Change::Added { new, .. } => {
                    assert_eq!(self.follower.insert(new.key(), new.clone()), None, "{change:?}");
                }
                Change::Updated { old, new, .. } => {
                    assert_eq!(old.uid, new.uid);
                    assert!(self.restored || version::is_above(&new.rv, &old.rv), "{change:?}");
                    assert_eq!(self.follower.insert(new.key(), new.clone()).as_ref(), Some(old));
                }
                Change::Deleted { old, .. } => {
                    let had = self.follower.remove(&old.key()).map(|o| o.uid);
                    assert_eq!(had.as_ref(), Some(&old.uid), "{change:?}");
                }
            }
        }
        assert!(
            self.store.iter().eq(self.follower.iter().map(|(k, o)| (k, o.clone()))),
            "the changes lead to {:?}",
            self.follower
        );
    }

    fn close(&mut self, reason: CloseReason) {
        if let Some((id, _)) = self.conn.take() {
            self.give(Input::Closed(id, reason));
        }
    }

    fn reject(&mut self, arg: u8) {
        match self.conn.take() {
            Some((id, Conn::Asked(_))) => {
                let code = RESTS[usize::from(arg) % RESTS.len()];
                let retry_after = (arg >= 200).then(|| Duration::from_secs(u64::from(arg)));
                self.give(Input::Rejected(id, Rejection { code, status: status(code, ""), retry_after }));
            }
            conn => self.conn = conn,
        }
    }

    fn error_frame(&mut self, arg: u8) {
        if let Some((id, Conn::Watch { .. })) = self.conn {
            let code = RESTS[usize::from(arg) % RESTS.len()];
            self.give(Input::Frame(id, Frame::Error(status(code, ""))));
            assert_ne!(self.conn.as_ref().map(|c| c.0), Some(id), "an ERROR ends a watch");
        }
    }

    /// The next event comes in a form that cannot be read, or does not come at all.
    fn bad_frame(&mut self, arg: u8) {
        let Some((id, Conn::Watch { sent, initial: None, dead: false, .. })) = &mut self.conn else { return };
        let Some((rv, _, object)) = self.data.log.iter().find(|e| e.0 > *sent) else { return };
        *sent = *rv;
        let key = arg.is_multiple_of(2).then(|| object.key());
        let frame = if arg < 200 {
            Frame::Bad(BadObject { key, resource_version: object.rv.clone(), error: "bad".into() })
        } else {
            Frame::Bad(BadObject { key: None, resource_version: String::new(), error: "too long".into() })
        };
        let id = *id;
        self.give(Input::Frame(id, frame));
    }

    /// An old event is told again.
    fn replay(&mut self, arg: u8) {
        let Some((id, Conn::Watch { sent, initial: None, .. })) = &self.conn else { return };
        let old: Vec<_> = self.data.log.iter().filter(|e| e.0 <= *sent).collect();
        let Some((_, verb, object)) = old.get(usize::from(arg) % old.len().max(1)) else { return };
        // An event of an object that is gone cannot be told from news.
        if self.store.get(&object.key()).is_none_or(|o| o.uid != object.uid) {
            return;
        }
        let (id, frame) = (*id, frame(*verb, object.clone()));
        self.give(Input::Frame(id, frame));
    }

    /// Word of a request that was never made, or is long over.
    fn stray(&mut self, arg: u8) {
        let id = ReqId(u64::from(arg) + if arg < 128 { 1_000_000 } else { 0 });
        if self.conn.as_ref().is_some_and(|c| c.0 == id) {
            return;
        }
        let before = self.told.len();
        let object = Obj { name: 1, uid: "stray".into(), rv: "999999".into() };
        self.give(match arg % 5 {
            0 => Input::Opened(id),
            1 => Input::Frame(id, Frame::Added(object)),
            2 => Input::Item(id, object),
            3 => Input::ListEnd(id, ListMeta { resource_version: "999999".into(), ..ListMeta::default() }),
            _ => Input::Closed(id, CloseReason::Clean),
        });
        assert_eq!(self.told.len(), before, "a stray input had consequences");
    }

    /// The server does one thing for the outstanding request; whether there was anything to do.
    fn serve(&mut self) -> bool {
        let Some((id, conn)) = self.conn.take() else { return false };
        let rv = self.data.rv;
        match conn {
            Conn::Asked(Ask::List { limit, continue_token, resource_version }) => {
                self.answer_list(id, limit, continue_token, resource_version);
            }
            Conn::Asked(Ask::Watch { resource_version, timeout_seconds, send_initial_events }) => {
                self.answer_watch(id, &resource_version, timeout_seconds, send_initial_events);
            }
            Conn::List { mut items, end } => {
                if items.is_empty() {
                    self.give(Input::ListEnd(id, end));
                } else {
                    let item = items.remove(0);
                    self.conn = Some((id, Conn::List { items, end }));
                    self.give(Input::Item(id, item));
                }
            }
            Conn::Watch { dead: true, .. } => {
                self.conn = Some((id, conn));
                return false;
            }
            Conn::Watch { sent, initial: Some((mut items, at)), ends, bookmark, dead } => {
                if items.is_empty() {
                    let initial = (!self.end_bookmarks).then_some((items, at));
                    self.conn = Some((id, Conn::Watch { sent, initial, ends, bookmark, dead }));
                    if !self.end_bookmarks {
                        return false;
                    }
                    let end = Frame::Bookmark { resource_version: at.to_string(), initial_events_end: true };
                    self.give(Input::Frame(id, end));
                } else {
                    let item = items.remove(0);
                    self.conn =
                        Some((id, Conn::Watch { sent, initial: Some((items, at)), ends, bookmark, dead }));
                    self.give(Input::Frame(id, Frame::Added(item)));
                }
            }
            Conn::Watch { sent, initial: None, ends, bookmark, dead } => {
                let next = self.data.log.iter().find(|e| e.0 > sent).cloned();
                // At a version that was forgotten meanwhile, the server ends the watch.
                if sent < self.data.compacted {
                    self.conn = Some((id, Conn::Watch { sent, initial: None, ends, bookmark, dead }));
                    self.give(Input::Frame(id, Frame::Error(status(410, "Expired"))));
                } else if let Some((to, verb, object)) = next {
                    self.conn = Some((id, Conn::Watch { sent: to, initial: None, ends, bookmark, dead }));
                    self.give(Input::Frame(id, frame(verb, object)));
                } else if self.now >= ends {
                    self.give(Input::Closed(id, CloseReason::Clean));
                } else if self.now >= bookmark && sent <= rv {
                    let bookmark = self.now + Duration::from_secs(60);
                    self.conn = Some((id, Conn::Watch { sent: rv, initial: None, ends, bookmark, dead }));
                    let mark =
                        Frame::Bookmark { resource_version: rv.to_string(), initial_events_end: false };
                    self.give(Input::Frame(id, mark));
                } else {
                    self.conn = Some((id, Conn::Watch { sent, initial: None, ends, bookmark, dead }));
                    return false;
                }
            }
        }
        true
    }

    fn answer_list(&mut self, id: ReqId, limit: Option<u32>, token: Option<String>, at: Option<String>) {
        let (all, rv) = match token {
            Some(token) => {
                assert_eq!(at, None, "a server refuses a token with a version");
                let page = token.parse::<usize>().ok().and_then(|n| self.pages.get(n).cloned());
                match page {
                    Some((rest, rv)) if rv >= self.data.compacted => (rest, rv),
                    _ => return self.give_status(id, status(410, "Expired")),
                }
            }
            None => {
                let asked = at.as_deref().and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
                if asked > self.data.rv {
                    return self.give_status(id, too_large());
                }
                (self.data.objects.values().cloned().collect(), self.data.rv)
            }
        };
        let mut items = all;
        let mut end = ListMeta { resource_version: rv.to_string(), ..ListMeta::default() };
        // A limit at a version is ignored.
        if let Some(limit) = limit.filter(|l| at.is_none() && (*l as usize) < items.len()) {
            let rest = items.split_off(limit as usize);
            end.continue_token = self.pages.len().to_string();
            self.pages.push((rest, rv));
        }
        self.conn = Some((id, Conn::List { items, end }));
        self.give(Input::Opened(id));
    }

    fn answer_watch(&mut self, id: ReqId, from: &str, timeout: u32, stream: bool) {
        let from = from.parse::<u64>().unwrap_or(0);
        if stream && !self.streams_work {
            return self.give_status(id, status(422, "Invalid"));
        }
        let ends = self.now + Duration::from_secs(timeout.into());
        let bookmark = self.now + Duration::from_secs(60);
        if stream && from > self.data.rv {
            let ask =
                Ask::Watch { resource_version: String::new(), timeout_seconds: 0, send_initial_events: true };
            self.conn = Some((id, Conn::Asked(ask)));
            return self.give(Input::Frame(id, Frame::Error(too_large())));
        }
        if !stream && from < self.data.compacted {
            // In both ways that servers have.
            if from.is_multiple_of(2) {
                return self.give_status(id, status(410, "Expired"));
            }
            let conn = Conn::Watch { sent: from, initial: None, ends, bookmark, dead: false };
            self.conn = Some((id, conn));
            return self.give(Input::Frame(id, Frame::Error(status(410, "Gone"))));
        }
        let initial = stream.then(|| (self.data.objects.values().cloned().collect(), self.data.rv));
        let sent = if stream { self.data.rv } else { from };
        self.conn = Some((id, Conn::Watch { sent, initial, ends, bookmark, dead: false }));
        self.give(Input::Opened(id));
    }

    fn give_status(&mut self, id: ReqId, status: Status) {
        self.give(Input::Rejected(id, Rejection { code: status.code, status, retry_after: None }));
    }

    /// Time goes on; deadlines are served, the server does nothing.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        let mut served = 0;
        while let Some(due) = self.watcher.next_deadline().filter(|d| d.at <= until) {
            self.now = self.now.max(due.at);
            self.give(Input::Deadline);
            let next = self.watcher.next_deadline();
            assert!(next.is_none_or(|n| n.at > due.at), "{due:?} was served and came back");
            served += 1;
            assert!(served < 10_000, "deadlines without end");
        }
        self.now = until;
    }

    /// The faults are over: in an hour at most, the store is what the server has.
    fn settle(&mut self) {
        self.streams_work = true;
        self.end_bookmarks = true;
        let until = self.now + Duration::from_secs(3_600);
        let before = self.requests;
        while self.now < until {
            while self.serve() {}
            let server = match &self.conn {
                Some((_, Conn::Watch { ends, bookmark, dead: false, .. })) => Some((*ends).min(*bookmark)),
                _ => None,
            };
            let due = self.watcher.next_deadline().map(|d| d.at);
            let next = [server, due].into_iter().flatten().min().unwrap_or(until).min(until);
            let span = next.since(self.now).max(Duration::from_millis(1));
            self.pass(span);
        }
        while self.serve() {}
        let status = self.watcher.status();
        assert_eq!(status.phase, Phase::Watching, "{status:?}");
        assert!(self.requests - before < 200, "{} requests in a quiet hour", self.requests - before);
        let expected: Vec<_> = self.data.objects.values().map(|o| (o.key(), o.clone())).collect();
        let mut found: Vec<_> = self.store.iter().map(|(k, o)| (k.clone(), o)).collect();
        found.sort_by_key(|(_, o)| o.name);
        assert_eq!(found, expected, "the store is not what the server has");
    }
}

fn frame(verb: Verb, object: Obj) -> Frame<Obj> {
    match verb {
        Verb::Added => Frame::Added(object),
        Verb::Modified => Frame::Modified(object),
        Verb::Deleted => Frame::Deleted(object),
    }
}
