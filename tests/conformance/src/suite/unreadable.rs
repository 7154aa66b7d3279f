//! Objects that cannot be read.

use std::sync::Arc;

use steersman_core::api::FromObject;
use steersman_core::controller::{Action, Builder};
use steersman_core::object::{Object, ObjectError};

use super::executor::{Executor, Work};
use super::stage::{Diary, Entry, NAMESPACE, Running, Stage, maps};
use crate::servers::Servers;

/// A ConfigMap whose `data.v` is a number.
#[derive(Debug)]
struct Counted {
    name: String,
    n: u64,
}

impl FromObject for Counted {
    fn from_object(object: &Object) -> Result<Self, ObjectError> {
        let text: String = object.get(&["data", "v"])?.unwrap_or_default();
        let n = text.parse().map_err(|_| ObjectError::new(format!("data.v is {text:?}, not a number")))?;
        Ok(Self { name: object.name().to_owned(), n })
    }
}

/// An object that is not of the reconcile's type fails for good, until it changes; the others run.
pub fn a_type_that_does_not_fit_one_object<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "1");
    stage.make("bad", "many");
    stage.make("c", "3");
    let diary = Diary::default();
    let work: Work<Counted> = Arc::new({
        let diary = diary.clone();
        move |map, cx| {
            let value = map.n.to_string();
            drop(diary.begin(Entry { name: map.name.clone(), value, attempt: cx.attempt, over: false }));
            Ok(Action::await_change())
        }
    });
    let running = Running::<E>::start(&stage.server.kubeconfig(), |m| E::add(m, Builder::of(maps()), work));
    diary.saw("a", "1");
    diary.saw("c", "3");
    let status = running.until("the bad one has failed", |s| {
        s.controllers[0].results.terminal == 1 && s.controllers[0].results.success == 2
    });
    assert_eq!((status.controllers[0].waiting, status.controllers[0].retries), (0, 0), "no second try");
    stage.set("bad", "2");
    diary.saw("bad", "2");
    running.stop();
}

/// Stored bytes that are no object, in the first list and in the watch: the others go on. The embedded server alone can
/// be made to send such things.
pub fn bytes_that_are_no_object<E: Executor>() {
    let stage = Stage::on(Servers::embedded());
    let put = |name: &str, raw: &[u8]| {
        let server = stage.server.as_embedded().unwrap_or_else(|| panic!("it is the embedded one"));
        assert!(server.with_machine(|m, now, out| m.put_raw(now, "configmaps", NAMESPACE, name, raw, out)));
    };
    stage.make("a", "1");
    put("listed", b"{\"metadata\":{\"name\":7}}");
    let diary = Diary::default();
    let running = stage.watch::<E>(&diary);
    diary.saw("a", "1");
    running.until("one is set aside", |s| {
        s.sources[0].status.as_ref().is_some_and(|s| s.watcher.unreadable >= 1)
    });
    running.ready();
    stage.set("a", "2");
    diary.saw("a", "2");
    let before = running.status().sources[0].status.as_ref().map_or(0, |s| s.watcher.unreadable);
    put("watched", b"{\"metadata\":[]}");
    stage.set("a", "3");
    diary.saw("a", "3");
    let more = |s: &steersman_core::manager::status::ManagerStatus, n: u64| {
        s.sources[0].status.as_ref().is_some_and(|s| s.watcher.unreadable >= n)
    };
    running.until("the watched one is counted", |s| more(s, before + 1));
    running.stop();
}

/// A line in the watch that is no JSON at all: the others go on.
pub fn a_line_that_is_no_event<E: Executor>() {
    let stage = Stage::on(Servers::embedded());
    let server = stage.server.as_embedded().unwrap_or_else(|| panic!("it is the embedded one"));
    stage.make("a", "1");
    let diary = Diary::default();
    let running = stage.watch::<E>(&diary);
    diary.saw("a", "1");
    assert!(server.wait_until(super::stage::LIMIT, |m| m.counters().watches == 1));
    server.with_machine(|m, _, out| {
        m.inject_frame("configmaps", b"{\"type\":\"MODIFIED\",\"object\":{{{\n", out)
    });
    stage.set("a", "2");
    diary.saw("a", "2");
    running
        .until("it is counted", |s| s.sources[0].status.as_ref().is_some_and(|s| s.watcher.unreadable >= 1));
    stage.make("b", "1");
    diary.saw("b", "1");
    running.stop();
}
