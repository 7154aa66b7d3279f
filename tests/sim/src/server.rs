//! The API servers: one that writes, and followers that lag. Each speaks HTTP over the simulated network.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use steersman_apiserver::machine::{ApiRequest, ApiServer, Commit, Input, Options, Output};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::net::ConnId;
use steersman_core::rng::Rng;
use steersman_core::time::Time;
use steersman_core::wire::http::{
    self, BodyFraming, HttpLimits, IncomingRequest, RequestDecoder, RequestEvent,
};

use crate::base::{Base, Event};
use crate::faults::Ill;
use crate::net::{Dir, LinkId, Segment};
use crate::trace::{Kind, Lane};

/// One address behind which requests are answered.
pub(crate) struct Node {
    /// The state that it shows; the first node shows the truth.
    follower: Option<ApiServer>,
    fronts: BTreeMap<LinkId, Front>,
    /// Refuses connections.
    pub(crate) shut: bool,
    /// How long after a commit it hears of it, at least and at most.
    lag: (Duration, Duration),
    /// Hears nothing.
    pub(crate) frozen: bool,
    heard: VecDeque<(Time, Commit)>,
    scheduled: Option<Time>,
}

/// The server's end of a connection.
struct Front {
    decoder: RequestDecoder,
    early: Vec<u8>,
    busy: bool,
    keep_alive: bool,
    http10: bool,
    head: bool,
}

/// A disturbance of requests.
#[derive(Clone, Debug)]
pub(crate) struct Sickness {
    pub(crate) ill: Ill,
    pub(crate) verb: Option<String>,
    pub(crate) replica: Option<usize>,
    pub(crate) skip: u32,
    pub(crate) times: u32,
}

/// All servers of the cluster.
pub(crate) struct Servers {
    pub(crate) truth: ApiServer,
    pub(crate) nodes: Vec<Node>,
    pub(crate) sick: Vec<Sickness>,
    scheduled: Option<Time>,
    rng: Rng,
    out: Outputs<Output>,
    /// Versions that were made since the beginning.
    pub(crate) commits: u64,
    /// When the last one was made.
    pub(crate) last_commit: Time,
}

impl Servers {
    pub(crate) fn new(options: Options, wall: steersman_core::time::UnixMillis, rng: Rng) -> Self {
        let mut truth = ApiServer::new(options, wall);
        truth.keep_commits();
        drop(truth.take_commits());
        Self {
            truth,
            nodes: Vec::new(),
            sick: Vec::new(),
            scheduled: None,
            rng,
            out: Outputs::new(),
            commits: 0,
            last_commit: Time::ZERO,
        }
    }

    /// Opens the addresses: the first one for the truth, the others for followers with such a lag.
    pub(crate) fn open(&mut self, followers: &[(Duration, Duration)]) {
        self.nodes.push(Node::new(None, (Duration::ZERO, Duration::ZERO)));
        for lag in followers {
            self.nodes.push(Node::new(Some(self.truth.follower()), *lag));
        }
    }

    /// A connection arrives. Whether it is taken.
    pub(crate) fn accept(&mut self, node: usize, link: LinkId) -> bool {
        let node = &mut self.nodes[node];
        if node.shut {
            return false;
        }
        node.fronts.insert(link, Front::new());
        true
    }

    /// Something arrives from a client.
    pub(crate) fn arrived(&mut self, base: &mut Base, link: LinkId, segment: Segment) {
        let Some(l) = base.net.links.get(&link) else { return };
        let (node, process) = (l.node, l.who.process);
        match segment {
            Segment::Bytes(bytes) => {
                let Some(front) = self.nodes[node].fronts.get_mut(&link) else { return };
                front.early.extend_from_slice(&bytes);
                self.read(base, node, link, process);
            }
            Segment::Fin | Segment::Reset | Segment::Dead => self.gone(base, link),
        }
        self.settle(base);
    }

    /// The server's end of a connection is over.
    pub(crate) fn gone(&mut self, base: &mut Base, link: LinkId) {
        let Some(l) = base.net.links.get_mut(&link) else { return };
        l.server = false;
        let node = l.node;
        base.net.tidy(link);
        if self.nodes[node].fronts.remove(&link).is_some() {
            let input = || Input::Gone { conn: ConnId(link.0) };
            self.truth.handle(base.now, input(), &mut self.out);
            if let Some(follower) = &mut self.nodes[node].follower {
                follower.handle(base.now, input(), &mut self.out);
            }
        }
    }

    /// Closes a connection from the server's side, with what is on its way or without.
    fn close(&mut self, base: &mut Base, link: LinkId, how: Segment) {
        base.end(link, Dir::Down, how);
        self.gone(base, link);
    }

    /// Takes requests off what has come.
    fn read(&mut self, base: &mut Base, node: usize, link: LinkId, process: usize) {
        loop {
            let Some(front) = self.nodes[node].fronts.get_mut(&link).filter(|f| !f.busy) else { return };
            let mut rest = front.early.as_slice();
            let event = front.decoder.next(&mut rest);
            let used = front.early.len() - rest.len();
            front.early.drain(..used);
            let IncomingRequest { head, body } = match event {
                Ok(Some(RequestEvent::Request(request))) => request,
                Ok(Some(RequestEvent::ExpectsContinue)) => {
                    let mut out = Vec::new();
                    http::write_continue(&mut out);
                    base.send(link, Dir::Down, out);
                    continue;
                }
                Ok(None) => return,
                Err(error) => {
                    let mut out = Vec::new();
                    let headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")];
                    let body = format!("{error}\n");
                    http::write_response(&mut out, error.response_code(), &headers, body.as_bytes());
                    base.send(link, Dir::Down, out);
                    return self.close(base, link, Segment::Fin);
                }
            };
            (front.busy, front.keep_alive, front.http10) = (true, head.keep_alive, head.http10);
            front.head = head.method.as_str() == "HEAD";
            let request = ApiRequest {
                method: head.method.as_str().to_owned(),
                path: head.path().to_owned(),
                query: head.query().to_owned(),
                headers: head.headers,
                body,
                ..ApiRequest::default()
            };
            base.eyes.requests += 1;
            if base.trace.is_on() {
                let ApiRequest { method, path, query, .. } = &request;
                let mark = if query.is_empty() { "" } else { "?" };
                base.say(
                    Lane::Server(node),
                    Kind::Gets,
                    format_args!("gets {method} {path}{mark}{query} from replica {process}"),
                );
            }
            self.serve(base, node, link, process, request);
        }
    }

    fn serve(&mut self, base: &mut Base, node: usize, link: LinkId, process: usize, request: ApiRequest) {
        let conn = ConnId(link.0);
        match self.sickness(process, &request) {
            None => {}
            Some(Ill::Hang) => return,
            Some(Ill::Drop) => return self.close(base, link, Segment::Reset),
            Some(Ill::DropAfter) => {
                self.run(base, node, conn, request);
                // Its outputs are lost with the connection, those to others are not.
                return self.close(base, link, Segment::Reset);
            }
            Some(Ill::Twice) => {
                // Outputs of the first go to others only.
                self.run(base, node, ConnId(u64::MAX), request.clone());
                self.truth.handle(base.now, Input::Gone { conn: ConnId(u64::MAX) }, &mut self.out);
            }
            Some(Ill::Conflict) => {
                return self.refuse(base, link, 409, "Conflict", "the object has been modified", None);
            }
            Some(Ill::TooMany(secs)) => {
                return self.refuse(base, link, 429, "TooManyRequests", "too many requests", Some(secs));
            }
            Some(Ill::Error) => {
                return self.refuse(base, link, 500, "InternalError", "an error of a simulated server", None);
            }
            Some(Ill::Unavailable) => {
                return self.refuse(
                    base,
                    link,
                    503,
                    "ServiceUnavailable",
                    "a simulated server is not ready",
                    None,
                );
            }
        }
        self.run(base, node, conn, request);
    }

    /// Gives a request to the state that answers it.
    fn run(&mut self, base: &mut Base, node: usize, conn: ConnId, mut request: ApiRequest) {
        let wall = base.wall();
        if node > 0 && verb(&request) == "watch" {
            at_least(&mut request, self.truth.revision());
        }
        let cached = ApiServer::reads_cache(&request);
        let input = Input::Request { conn, wall, request };
        match &mut self.nodes[node].follower {
            Some(follower) if cached => follower.handle(base.now, input, &mut self.out),
            _ => self.truth.handle(base.now, input, &mut self.out),
        }
    }

    fn refuse(
        &mut self,
        base: &mut Base,
        link: LinkId,
        code: u16,
        reason: &str,
        message: &str,
        retry: Option<u32>,
    ) {
        let body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        let mut headers = vec![("Content-Type", "application/json".to_owned())];
        headers.extend(retry.map(|secs| ("Retry-After", secs.to_string())));
        let body = body.to_string().into_bytes().into();
        self.write(base, Output::Respond { conn: ConnId(link.0), status: code, headers, body });
    }

    /// The disturbance that meets this request, if one does.
    fn sickness(&mut self, process: usize, request: &ApiRequest) -> Option<Ill> {
        if self.sick.is_empty() {
            return None;
        }
        let verb = verb(request);
        let writes = request.method != "GET";
        let place = self.sick.iter_mut().position(|s| {
            let meant = match s.ill {
                Ill::Conflict => matches!(verb, "update" | "patch"),
                Ill::Twice => writes,
                _ => true,
            };
            if !meant
                || s.verb.as_deref().is_some_and(|v| v != verb)
                || s.replica.is_some_and(|r| r != process)
            {
                return false;
            }
            if s.skip > 0 {
                s.skip -= 1;
                return false;
            }
            true
        })?;
        let sick = &mut self.sick[place];
        sick.times = sick.times.saturating_sub(1);
        let ill = sick.ill;
        if sick.times == 0 {
            self.sick.remove(place);
        }
        Some(ill)
    }

    /// Sends what the machines want sent, feeds the followers, and sees to deadlines.
    pub(crate) fn settle(&mut self, base: &mut Base) {
        while !self.out.is_empty() {
            // Writing the end of an answer may lead to the next request of that connection.
            let mut out = std::mem::take(&mut self.out);
            for output in out.drain() {
                self.write(base, output);
            }
            if self.out.is_empty() {
                self.out = out;
            }
        }
        for commit in self.truth.take_commits() {
            self.commits += 1;
            self.last_commit = base.now;
            base.eyes.made = self.commits;
            base.eyes.commits.push(self.commits);
            if base.trace.is_on() {
                let (kind, key, what) = (commit.kind(), commit.key(), commit.what());
                let version = commit.version();
                let change = match what {
                    "created" => Kind::Creates,
                    "deleted" => Kind::Deletes,
                    _ => Kind::Updates,
                };
                // Numbers begin when the servers open.
                let n =
                    if self.nodes.is_empty() { "given".into() } else { format!("commit {}", self.commits) };
                base.say_of(
                    Lane::Cluster,
                    change,
                    format_args!("{kind} {key}"),
                    format_args!("{n}: {kind} {key} {what} at version {version}"),
                );
            }
            for n in 1..self.nodes.len() {
                let (from, to) = self.nodes[n].lag;
                let at = base.now + self.rng.between(from, to);
                let node = &mut self.nodes[n];
                // In order, however they lag.
                let at = node.heard.back().map_or(at, |(last, _)| at.max(*last));
                node.heard.push_back((at, commit.clone()));
                base.at(at, Event::Lag(n));
            }
        }
        let deadline = self.truth.next_deadline().map(|d| d.at.max(base.now));
        if let Some(at) = deadline.filter(|at| self.scheduled.is_none_or(|s| *at < s)) {
            self.scheduled = Some(at);
            base.at(at, Event::Truth);
        }
        for (n, node) in self.nodes.iter_mut().enumerate() {
            let deadline =
                node.follower.as_ref().and_then(Machine::next_deadline).map(|d| d.at.max(base.now));
            if let Some(at) = deadline.filter(|at| node.scheduled.is_none_or(|s| *at < s)) {
                node.scheduled = Some(at);
                base.at(at, Event::Follower(n));
            }
        }
    }

    /// The truth may have a deadline.
    pub(crate) fn wake_truth(&mut self, base: &mut Base) {
        if self.scheduled.take_if(|at| *at <= base.now).is_none() {
            return;
        }
        if self.truth.next_deadline().is_some_and(|d| d.at <= base.now) {
            self.truth.handle(base.now, Input::Deadline { wall: base.wall() }, &mut self.out);
        }
        self.settle(base);
    }

    /// A follower may have a deadline.
    pub(crate) fn wake_follower(&mut self, base: &mut Base, n: usize) {
        let node = &mut self.nodes[n];
        if node.scheduled.take_if(|at| *at <= base.now).is_none() {
            return;
        }
        if let Some(follower) = &mut node.follower
            && follower.next_deadline().is_some_and(|d| d.at <= base.now)
        {
            follower.handle(base.now, Input::Deadline { wall: base.wall() }, &mut self.out);
        }
        self.settle(base);
    }

    /// A follower hears of what it has not heard of.
    pub(crate) fn lag(&mut self, base: &mut Base, n: usize) {
        let node = &mut self.nodes[n];
        if node.frozen {
            return;
        }
        let Some(follower) = &mut node.follower else { return };
        while let Some((at, commit)) = node.heard.front()
            && *at <= base.now
        {
            base.say(Lane::Server(n), Kind::Follows, format_args!("hears of version {}", commit.version()));
            follower.follow(base.now, commit, &mut self.out);
            node.heard.pop_front();
        }
        self.settle(base);
    }

    /// A server goes down; its connections die.
    pub(crate) fn go_down(&mut self, base: &mut Base, n: usize) {
        self.nodes[n].shut = true;
        base.say(Lane::Server(n), Kind::Down, format_args!("goes down"));
        let links: Vec<LinkId> = self.nodes[n].fronts.keys().copied().collect();
        for link in links {
            self.close(base, link, Segment::Fin);
        }
        self.settle(base);
    }

    /// A server comes back, and remembers no events.
    pub(crate) fn come_up(&mut self, base: &mut Base, n: usize) {
        self.nodes[n].shut = false;
        if n == 0 {
            self.truth.forget_events();
        } else {
            let node = &mut self.nodes[n];
            node.heard.clear();
            node.follower = Some(self.truth.follower());
        }
        base.say(Lane::Server(n), Kind::Back, format_args!("is back"));
    }

    /// Does something to the machines, and all that follows.
    pub(crate) fn with<R>(
        &mut self,
        base: &mut Base,
        f: impl FnOnce(&mut ApiServer, &mut Outputs<Output>) -> R,
    ) -> R {
        let result = f(&mut self.truth, &mut self.out);
        self.settle(base);
        result
    }

    /// Something for every machine.
    pub(crate) fn each(&mut self, mut f: impl FnMut(&mut ApiServer)) {
        f(&mut self.truth);
        self.nodes.iter_mut().filter_map(|n| n.follower.as_mut()).for_each(f);
    }

    fn write(&mut self, base: &mut Base, output: Output) {
        let link = LinkId(conn_of(&output).0);
        let Some(node) = base.net.links.get(&link).map(|l| l.node) else { return };
        let Some(front) = self.nodes[node].fronts.get_mut(&link) else { return };
        let mut bytes = Vec::new();
        let mut done = false;
        match output {
            Output::Respond { status, mut headers, body, .. } => {
                front.stamp(&mut headers, front.keep_alive);
                if front.head {
                    let framing = BodyFraming::Length(body.len() as u64);
                    http::write_response_head(&mut bytes, status, &headers, framing);
                } else {
                    http::write_response(&mut bytes, status, &headers, &body);
                }
                done = true;
            }
            Output::StreamHead { status, mut headers, .. } => {
                front.stamp(&mut headers, front.keep_alive || front.http10);
                let framing = if front.http10 { BodyFraming::UntilClose } else { BodyFraming::Chunked };
                http::write_response_head(&mut bytes, status, &headers, framing);
            }
            Output::StreamChunk { bytes: chunk, .. } if front.http10 => bytes.extend_from_slice(&chunk),
            Output::StreamChunk { bytes: chunk, .. } => http::write_chunk(&mut bytes, &chunk),
            Output::StreamEnd { .. } => {
                if !front.http10 {
                    http::write_last_chunk(&mut bytes);
                }
                done = true;
            }
            Output::Close { .. } => return self.close(base, link, Segment::Reset),
            _ => {}
        }
        let last = done && (!front.keep_alive || front.http10);
        front.busy &= !done;
        if !bytes.is_empty() {
            base.send(link, Dir::Down, bytes);
        }
        if last {
            self.close(base, link, Segment::Fin);
        } else if done && let Some(l) = base.net.links.get(&link) {
            let process = l.who.process;
            self.read(base, node, link, process);
        }
    }
}

impl Node {
    fn new(follower: Option<ApiServer>, lag: (Duration, Duration)) -> Self {
        Self {
            follower,
            fronts: BTreeMap::new(),
            shut: false,
            lag,
            frozen: false,
            heard: VecDeque::new(),
            scheduled: None,
        }
    }
}

impl Front {
    fn new() -> Self {
        Self {
            decoder: RequestDecoder::new(HttpLimits::default()),
            early: Vec::new(),
            busy: false,
            keep_alive: true,
            http10: false,
            head: false,
        }
    }

    fn stamp(&self, headers: &mut Vec<(&'static str, String)>, keep_alive: bool) {
        if !keep_alive {
            headers.push(("Connection", "close".to_owned()));
        }
    }
}

fn conn_of(output: &Output) -> ConnId {
    match output {
        Output::Respond { conn, .. }
        | Output::StreamHead { conn, .. }
        | Output::StreamChunk { conn, .. }
        | Output::StreamEnd { conn }
        | Output::Close { conn } => *conn,
        _ => ConnId(u64::MAX),
    }
}

/// A streamed list that must not be old waits until the cache is as new as the store was when it was asked for.
fn at_least(request: &mut ApiRequest, revision: u64) {
    let given = |name: &str| {
        let value = request.query.split('&').find_map(|q| q.strip_prefix(name)?.strip_prefix('='));
        value.is_some_and(|v| !v.is_empty())
    };
    if given("sendInitialEvents") && !given("resourceVersion") {
        // The first one counts.
        request.query = format!("resourceVersion={revision}&{}", request.query);
    }
}

/// The verb as faults name it.
pub(crate) fn verb(request: &ApiRequest) -> &'static str {
    match request.method.as_str() {
        "GET" if request.query.split('&').any(|q| matches!(q, "watch=true" | "watch=1")) => "watch",
        "GET" => {
            // /api/v1/..., /apis/group/version/...: an object has one more segment than its collection.
            let mut parts = request.path.trim_matches('/').split('/');
            let skip = if parts.next() == Some("api") { 1 } else { 2 };
            let rest = parts.skip(skip).count();
            if matches!(rest, 0 | 1 | 3) { "list" } else { "get" }
        }
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}
