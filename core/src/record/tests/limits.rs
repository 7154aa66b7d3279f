//! What is too large to be recorded, and what costs nothing any more.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::limits::RECORD_BYTES;

/// A config map whose data alone is so long.
fn large(name: &str, bytes: usize) -> Object {
    let data = "x".repeat(bytes);
    let json = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","uid":"u-{name}","resourceVersion":"5"}},"data":{{"k":"{data}"}}}}"#
    );
    Object::from_json(json.as_bytes()).unwrap()
}

fn controller(recorder: &dyn Recorder) -> Recorded<Controller<Object>> {
    let machine = Controller::new(controller::Config::new("c", CONFIGMAPS), 3);
    Recorded::controller(machine, 3, Some(recorder))
}

fn delta(objects: &[Object]) -> controller::Input<Object> {
    controller::Input::Delta { source: SourceId(0), delta: added(objects) }
}

#[test]
fn a_delta_that_is_too_large_ends_the_recording_of_its_controller() {
    let memory = Memory::default();
    let (mut machine, mut out) = (controller(&memory), Outputs::new());
    machine.handle(Time::ZERO, controller::Input::Start, &mut out);
    // The last one alone is short; the view before it is not.
    let objects = [large("a", RECORD_BYTES / 2), large("b", RECORD_BYTES / 2), large("c", 10)];
    machine.handle(Time::ZERO, delta(&objects), &mut out);
    machine.handle(Time::ZERO, controller::Input::Deadline, &mut out);
    let recording = memory.read();
    assert_eq!(recording.records.len(), 1);
    let End::Ended(why) = &recording.end else { panic!("{:?}", recording.end) };
    let bytes = objects.iter().chain(objects.last()).map(|o| o.json().len()).sum::<usize>();
    assert_eq!(
        *why,
        format!("a record of {bytes} bytes is longer than 67108864"),
        "as long as it is uncopied"
    );
    assert!(machine.status().is_ready(), "the controller itself goes on");
    assert_eq!(memory.compare().first, None);
}

#[test]
fn an_answer_or_a_body_that_is_too_large_ends_the_recording_of_its_call_alone() {
    let memory = Memory::default();
    let calls = Calls::new(&memory);
    let call = |request| {
        let endpoint = Arc::new(Endpoint::new(&config()));
        Calls::call(Some(&calls), Call::<Raw>::new(endpoint, Authenticator::none(), request, 1), 1)
    };
    let get = || Api::<kinds::ConfigMap>::namespaced("prod").get("b").into_raw();
    let mut put = get();
    put.body = Some(alloc::vec![b'x'; RECORD_BYTES + 1]);
    let mut unrecorded = call(put);
    let (mut answered, mut out) = (call(get()), Outputs::new());
    let bytes = alloc::vec![b'x'; RECORD_BYTES + 1];
    unrecorded.handle(Time::ZERO, CallInput::Start, &mut out);
    answered.handle(Time::ZERO, CallInput::Start, &mut out);
    for event in [NetEvent::Connected { reused: false }, NetEvent::Received(&bytes), NetEvent::Eof] {
        answered.handle(Time::ZERO, CallInput::Net { conn: ConnId(1), event }, &mut out);
    }
    call(get()).handle(Time::ZERO, CallInput::Start, &mut out);
    let recording = memory.read();
    let mut replay = Replay::of(&recording).unwrap();
    let told: Vec<_> = recording
        .numbered()
        .map(|record| replay.step(record).unwrap())
        .map(|step| format!("{} {}", step.call.unwrap(), step.told))
        .collect();
    let why = "not recorded from here on: a record of 67108865 bytes is longer than 67108864";
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!((&*told[0], &*told[4]), (&*format!("0 {why}"), &*format!("1 {why}")), "{told:?}");
    assert!(told[5].starts_with("2 made: ") && told[6] == "2 start", "{told:?}");
    assert_eq!(memory.compare().first, None);
}

/// Takes so many records, and counts what it is asked.
#[derive(Clone, Default)]
struct Few(Arc<AtomicUsize>, usize);

impl Recorder for Few {
    fn open(&self, _: Header) -> Arc<dyn Sink> {
        Arc::new(self.clone())
    }
}

impl Sink for Few {
    fn record(&self, _: Vec<u8>) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) + 1 < self.1
    }
}

#[test]
fn after_the_sink_has_said_no_nothing_is_made_for_it() {
    let few = Few(Arc::default(), 4);
    let calls = Calls::new(&few);
    let call = || {
        let endpoint = Arc::new(Endpoint::new(&config()));
        let get = Api::<kinds::ConfigMap>::namespaced("prod").get("b").into_raw();
        Calls::call(Some(&calls), Call::<Raw>::new(endpoint, Authenticator::none(), get, 1), 1)
    };
    let (mut first, mut second, mut out) = (call(), call(), Outputs::new());
    first.handle(Time::ZERO, CallInput::Start, &mut out);
    // The fourth record is the last one that is taken.
    first.handle(Time::ZERO, CallInput::Deadline, &mut out);
    for one in [&mut first, &mut second, &mut call()] {
        one.handle(Time::ZERO, CallInput::Start, &mut out);
        one.handle(Time::ZERO, CallInput::Abort, &mut out);
        assert!(one.is_done() && one.tap.is_none());
    }
    assert_eq!(few.0.load(Ordering::Relaxed), 4);
}
