use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use quickcheck::{Arbitrary, Gen};

use super::*;
use crate::api::Status;
use crate::backoff::Policy;
use crate::machine::{Machine, Outputs};
use crate::object::{Key, OwnerReference, Resource};
use crate::time::Time;

mod memory;

#[derive(Clone, Debug, PartialEq)]
struct Obj(u8, String);

impl Resource for Obj {
    fn key(&self) -> Key {
        Key::cluster(&self.0.to_string())
    }
    fn uid(&self) -> &str {
        ""
    }
    fn resource_version(&self) -> &str {
        &self.1
    }
    fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}
}

type W = Watcher<Obj>;

/// With plain lists.
fn lists() -> Config {
    Config { streaming: false, ..Config::default() }
}

fn step(w: &mut W, now: Time, input: Input<Obj>) -> Vec<Output<Obj>> {
    let mut out = Outputs::new();
    w.handle(now, input, &mut out);
    out.into_iter().collect()
}

fn list_end(rv: &str) -> ListMeta {
    ListMeta { resource_version: rv.into(), ..ListMeta::default() }
}

/// The request that came out last.
fn request(out: &[Output<Obj>]) -> Option<(ReqId, Ask)> {
    out.iter().rev().find_map(|o| match o {
        Output::Request(id, ask) => Some((*id, ask.clone())),
        _ => None,
    })
}

/// Plays a server for `span` of virtual time that answers every request at once as `answer` says; counts requests.
fn requests_in(
    span: Duration,
    config: Config,
    mut answer: impl FnMut(&mut W, Time, ReqId, &Ask) -> Vec<Output<Obj>>,
) -> (usize, usize) {
    let mut w = W::new(config, 7);
    let mut now = Time::ZERO;
    let (mut lists, mut watches) = (0, 0);
    let mut out = step(&mut w, now, Input::Start);
    loop {
        while let Some((id, ask)) = request(&out) {
            match ask {
                Ask::List { .. } => lists += 1,
                Ask::Watch { .. } => watches += 1,
            }
            assert!(lists + watches < 10_000, "hot loop at {now:?}");
            out = answer(&mut w, now, id, &ask);
        }
        let Some(due) = w.next_deadline() else { return (lists, watches) };
        if due.at > Time::ZERO + span {
            return (lists, watches);
        }
        now = due.at;
        out = step(&mut w, now, Input::Deadline);
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_server_that_ends_every_watch_at_once_is_asked_seldom() {
    // An hour at 30 to 60 s a pause, a list for each three watches.
    let (lists, watches) = requests_in(HOUR, lists(), |w, now, id, ask| match ask {
        Ask::List { .. } => step(w, now, Input::ListEnd(id, list_end("10"))),
        Ask::Watch { .. } => step(w, now, Input::Closed(id, CloseReason::Clean)),
    });
    assert!((60..=125).contains(&watches), "{watches} watches");
    assert!((20..=42).contains(&lists), "{lists} lists");
}

#[test]
fn a_server_that_repeats_old_events_and_ends_is_asked_seldom() {
    for versions in [["3", "4"], ["opaque", "other"]] {
        let (_, watches) = requests_in(HOUR, lists(), |w, now, id, ask| match ask {
            Ask::List { .. } => step(w, now, Input::ListEnd(id, list_end("10"))),
            Ask::Watch { .. } => {
                for rv in versions {
                    step(w, now, Input::Frame(id, Frame::Added(Obj(1, rv.into()))));
                }
                step(w, now, Input::Closed(id, CloseReason::Clean))
            }
        });
        assert!((60..=130).contains(&watches), "{watches} watches of a server at {versions:?}");
    }
}

#[test]
fn an_endless_410_is_asked_seldom() {
    let gone = || Rejection {
        code: 410,
        status: Status { reason: "Expired".into(), ..Status::default() },
        retry_after: None,
    };
    // On the watch only; on everything; on everything when lists come as streams.
    for (streaming, lists_work) in [(false, true), (false, false), (true, false)] {
        let config = Config { streaming, ..Config::default() };
        let (lists, watches) = requests_in(HOUR, config, |w, now, id, ask| match ask {
            Ask::List { .. } if lists_work => step(w, now, Input::ListEnd(id, list_end("10"))),
            _ => step(w, now, Input::Rejected(id, gone())),
        });
        assert!(lists + watches <= 260, "{lists} lists, {watches} watches");
    }
}

#[test]
fn a_list_that_fails_after_its_first_item_backs_off() {
    let (lists, _) = requests_in(HOUR, lists(), |w, now, id, _| {
        step(w, now, Input::Opened(id));
        step(w, now, Input::Item(id, Obj(1, "5".into())));
        step(w, now, Input::Closed(id, CloseReason::Broken("reset".into())))
    });
    assert!((60..=130).contains(&lists), "{lists} lists");
}

#[test]
fn overload_never_leads_to_a_list() {
    let (lists, watches) = requests_in(HOUR, lists(), |w, now, id, ask| match ask {
        Ask::List { .. } => step(w, now, Input::ListEnd(id, list_end("10"))),
        Ask::Watch { .. } => {
            let status = Status { code: 429, ..Status::default() };
            let after = Some(Duration::from_secs(50));
            step(w, now, Input::Rejected(id, Rejection { code: 429, status, retry_after: after }))
        }
    });
    assert_eq!(lists, 1);
    assert!((60..=72).contains(&watches), "Retry-After is a lower bound: {watches}");
}

#[test]
fn an_absurd_retry_after_is_bounded() {
    let mut w = W::new(lists(), 1);
    step(&mut w, Time::ZERO, Input::Start);
    let rejection = Rejection { code: 503, status: Status::default(), retry_after: Some(Duration::MAX) };
    step(&mut w, Time::ZERO, Input::Rejected(ReqId(1), rejection));
    let due = w.next_deadline().unwrap();
    assert!(due.at > Time::from_secs(299) && due.at < Time::from_secs(302), "{due:?}");
}

#[test]
fn watch_timeouts_are_spread_over_their_range() {
    let mut seen = Vec::new();
    requests_in(HOUR * 24, lists(), |w, now, id, ask| match ask {
        Ask::List { .. } => step(w, now, Input::ListEnd(id, list_end("10"))),
        Ask::Watch { timeout_seconds, .. } => {
            seen.push(*timeout_seconds);
            step(
                w,
                now,
                Input::Rejected(id, Rejection { code: 503, status: Status::default(), retry_after: None }),
            )
        }
    });
    assert!(seen.iter().all(|s| (290..580).contains(s)), "{seen:?}");
    assert!(seen.iter().min() < Some(&320) && seen.iter().max() > Some(&550), "{seen:?}");
}

#[test]
fn senseless_settings_do_no_harm() {
    let zero = Duration::ZERO;
    for jitter in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
        let config = Config {
            page_size: Some(0),
            timeout: (HOUR, zero),
            guard: zero,
            idle: zero,
            idle_after_bookmark: zero,
            stall: zero,
            very_short: zero,
            steady: zero,
            repair: zero,
            backoff: Policy { base: zero, cap: Duration::MAX, jitter },
            retry_after_max: Duration::MAX,
            streaming_again: zero,
            ..lists()
        };
        let mut w = W::new(config, 1);
        let out = step(&mut w, Time::ZERO, Input::Start);
        let list = Ask::List { limit: None, continue_token: None, resource_version: None };
        assert_eq!(request(&out), Some((ReqId(1), list)));
        for _ in 0..100 {
            let id = ReqId(w.status().watches + 1);
            step(&mut w, Time::ZERO, Input::Closed(id, CloseReason::Refused("x".into())));
            serve(&mut w);
        }
    }
}

/// Serves the next deadline; it must not come back.
fn serve(w: &mut W) -> Vec<Output<Obj>> {
    let Some(due) = w.next_deadline() else { return Vec::new() };
    let out = step(w, due.at, Input::Deadline);
    let next = w.next_deadline();
    assert!(next.is_none_or(|n| n.at > due.at), "{due:?} was served, but {next:?} is next");
    out
}

#[test]
fn error_texts_are_kept_short_and_on_one_line() {
    let mut w = W::new(lists(), 1);
    step(&mut w, Time::ZERO, Input::Start);
    let text = "<html>\r\n".to_string() + &"\u{e4}".repeat(10_000);
    step(&mut w, Time::ZERO, Input::Closed(ReqId(1), CloseReason::Protocol(text)));
    let error = w.status().last_error.unwrap();
    assert!(error.starts_with("<html>  \u{e4}") && error.ends_with("..."), "{error}");
    assert!(error.len() <= 510);
}

#[test]
fn streaming_lists_are_given_up_for_refusals_only() {
    let after = |code: u16| {
        let mut w = W::new(Config::default(), 1);
        step(&mut w, Time::ZERO, Input::Start);
        let rejection = Rejection { code, status: Status { code, ..Status::default() }, retry_after: None };
        let rejected = step(&mut w, Time::ZERO, Input::Rejected(ReqId(1), rejection.clone()));
        // The same as an ERROR event of an open watch.
        let mut w = W::new(Config::default(), 1);
        step(&mut w, Time::ZERO, Input::Start);
        let told = step(&mut w, Time::ZERO, Input::Frame(ReqId(1), Frame::Error(rejection.status)));
        [rejected, told].map(|out| matches!(request(&out), Some((_, Ask::List { .. }))))
    };
    for code in [400, 403, 404, 405, 406, 409, 415, 418, 422] {
        assert_eq!(after(code), [true; 2], "{code}");
    }
    for code in [0, 401, 408, 410, 425, 429, 500, 501, 502, 503, 504, 522] {
        assert_eq!(after(code), [false; 2], "{code}");
    }
}

#[test]
fn what_is_kept_aside_can_be_listed() {
    let mut w = W::new(lists(), 1);
    step(&mut w, Time::ZERO, Input::Start);
    let bad = |name: &str| BadObject {
        key: Some(Key::cluster(name)),
        resource_version: "5".into(),
        error: "labels: not an object".into(),
    };
    step(&mut w, Time::ZERO, Input::BadItem(ReqId(1), bad("7")));
    step(&mut w, Time::ZERO, Input::ListEnd(ReqId(1), list_end("10")));
    step(&mut w, Time::ZERO, Input::Frame(ReqId(2), Frame::Bad(bad("8"))));
    let status = w.status();
    assert_eq!(status.quarantine.values().collect::<Vec<_>>(), [&bad("7"), &bad("8")]);
    let json = serde_json::to_string(&status).unwrap();
    assert!(
        json.contains(r#""quarantine":[{"key":"7","resourceVersion":"5","error":"labels: not an object"}"#),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<WatcherStatus>(&json).unwrap(), status);
    // It is read again: told, and gone from the list; whoever holds an old status still has it.
    let out = step(&mut w, Time::ZERO, Input::Frame(ReqId(2), Frame::Modified(Obj(7, "11".into()))));
    assert!(out.contains(&Output::Notice(Notice::Recovered(Key::cluster("7")))));
    assert_eq!((w.status().quarantine.len(), status.quarantine.len()), (1, 2));
}

#[test]
fn the_quarantine_is_bounded() {
    let mut w = W::new(lists(), 1);
    step(&mut w, Time::ZERO, Input::Start);
    for n in 0..2_000 {
        let key = Some(Key::cluster(&format!("{n}")));
        let bad = BadObject { key, resource_version: String::new(), error: "no".into() };
        step(&mut w, Time::ZERO, Input::BadItem(ReqId(1), bad));
    }
    step(&mut w, Time::ZERO, Input::ListEnd(ReqId(1), list_end("10")));
    let status = w.status();
    assert_eq!((status.quarantine.len(), status.unreadable), (crate::limits::QUARANTINE, 2_000));
}

#[test]
fn time_that_runs_backwards_is_clamped_and_counted() {
    let mut w = W::new(lists(), 1);
    step(&mut w, Time::from_secs(100), Input::Start);
    step(&mut w, Time::from_secs(50), Input::Closed(ReqId(1), CloseReason::Refused("x".into())));
    assert!(w.next_deadline().unwrap().at > Time::from_secs(100));
    assert_eq!(w.status().clamped, 1);
}

/// Any input at all, for requests that may be outstanding or not.
#[derive(Clone, Debug)]
enum Op {
    /// To the outstanding request, or to one that is `.0` older.
    Input(u8, u8, u8),
    Wait(u16),
    Serve,
    Stop,
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        let byte = u8::arbitrary;
        match byte(g) % 32 {
            0..=21 => Self::Input(byte(g).saturating_sub(200), byte(g), byte(g)),
            22..=24 => Self::Wait(u16::arbitrary(g)),
            25..=30 => Self::Serve,
            _ if byte(g) < 16 => Self::Stop,
            _ => Self::Serve,
        }
    }
}

fn any_input(id: ReqId, what: u8, detail: u8) -> Input<Obj> {
    let rv = match detail % 8 {
        0 => String::new(),
        1 => "0".into(),
        2 => "opaque".into(),
        n => format!("{}", u64::from(detail) * u64::from(n)),
    };
    let obj = || Obj(detail % 8, rv.clone());
    let bad = || BadObject {
        key: detail.is_multiple_of(2).then(|| Key::cluster(&format!("{}", detail % 8))),
        resource_version: rv.clone(),
        error: "bad".into(),
    };
    let code = [200, 400, 401, 403, 404, 410, 429, 500, 503, 504][usize::from(detail % 10)];
    let reason = ["", "Expired", "Gone", "Timeout", "Invalid"][usize::from(detail / 16 % 5)];
    let message = if detail > 128 { "Too large resource version: 9" } else { "" };
    let status = Status { code, reason: reason.into(), message: message.into(), ..Status::default() };
    let wait = Some(Duration::from_secs(detail.into()));
    match what % 20 {
        0..=1 => Input::Opened(id),
        2 => Input::Progress(id),
        3..=4 => Input::Item(id, obj()),
        5 => Input::BadItem(id, bad()),
        6..=7 => Input::ListEnd(id, list_end(&rv)),
        8 => Input::ListEnd(id, ListMeta { continue_token: format!("t{detail}"), ..list_end(&rv) }),
        9 => Input::Frame(id, Frame::Added(obj())),
        10 => Input::Frame(id, Frame::Modified(obj())),
        11 => Input::Frame(id, Frame::Deleted(obj())),
        12..=13 => Input::Frame(
            id,
            Frame::Bookmark { resource_version: rv, initial_events_end: detail.is_multiple_of(3) },
        ),
        14 => Input::Frame(id, Frame::Error(status)),
        15 => Input::Frame(id, Frame::Unknown { kind: "X".into(), resource_version: rv }),
        16 => Input::Frame(id, Frame::Bad(bad())),
        17 => Input::Rejected(id, Rejection { code, status, retry_after: wait }),
        18 => Input::Closed(id, CloseReason::Clean),
        _ => Input::Closed(
            id,
            match detail % 4 {
                0 => CloseReason::Refused("r".into()),
                1 => CloseReason::Broken("b".into()),
                2 => CloseReason::Protocol("p".into()),
                _ => CloseReason::TimedOut("t".into()),
            },
        ),
    }
}

/// Plays `ops`, checks what must hold whatever happens, and gives all outputs.
fn play(ops: &[Op], seed: u64, streaming: bool) -> Vec<Output<Obj>> {
    let mut w = W::new(Config { streaming, ..Config::default() }, seed);
    let mut now = Time::ZERO;
    let mut all = step(&mut w, now, Input::Start);
    let (mut last, mut outstanding) = (1u64, Some(1u64));
    let mut version = String::new();
    for op in ops {
        let ended;
        let out = match op {
            Op::Input(behind, what, detail) => {
                let id = ReqId(last.saturating_sub(u64::from(*behind)));
                let input = any_input(id, *what, *detail);
                let over = matches!(input, Input::Rejected(..) | Input::Closed(..) | Input::ListEnd(..));
                let before = w.status();
                let out = step(&mut w, now, input);
                if outstanding != Some(id.0) {
                    assert_eq!(out, [], "{op:?} is about a request that is over");
                    assert_eq!(WatcherStatus { dropped: before.dropped + 1, ..before }, w.status());
                }
                ended = over && outstanding == Some(id.0);
                out
            }
            Op::Wait(ms) => {
                now = now + Duration::from_millis(u64::from(*ms) * 4);
                ended = false;
                step(&mut w, now, Input::Deadline)
            }
            Op::Serve => {
                now = w.next_deadline().map_or(now, |d| d.at.max(now));
                ended = false;
                serve(&mut w)
            }
            Op::Stop => {
                ended = false;
                step(&mut w, now, Input::Stop)
            }
        };
        let relisted = out.iter().any(|o| matches!(o, Output::Event(Event::InitDone { .. })));
        for o in &out {
            match o {
                Output::Request(id, _) => {
                    assert!(id.0 > last, "ids are never used again");
                    assert!(ended || outstanding.is_none(), "two requests at once: {op:?}");
                    (last, outstanding) = (id.0, Some(id.0));
                }
                Output::Cancel(id) => {
                    assert_eq!(outstanding, Some(id.0), "only what is outstanding is cancelled");
                    outstanding = None;
                }
                _ => {}
            }
        }
        let status = w.status();
        if matches!(status.phase, Phase::BackingOff | Phase::Stopped) {
            outstanding = None;
        }
        // Every state but a list and the end has a deadline of its own.
        let waits = !matches!(status.phase, Phase::Stopped | Phase::Probing | Phase::Listing | Phase::New);
        assert!(!waits || w.next_deadline().is_some(), "{status:?} waits for ever");
        let back = crate::object::version::compare(&status.last_version, &version);
        assert!(relisted || back != Some(core::cmp::Ordering::Less), "back to {}", status.last_version);
        version = status.last_version;
        all.extend(out);
    }
    all
}

#[test]
fn whatever_happens() {
    fn prop(ops: Vec<Op>, seed: u64, streaming: bool) -> bool {
        play(&ops, seed, streaming) == play(&ops, seed, streaming)
    }
    crate::cases::cases(3_000).quickcheck(prop as fn(Vec<Op>, u64, bool) -> bool);
}
