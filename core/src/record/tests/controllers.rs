//! Controllers.

use super::*;

fn run_controller(memory: &Memory, config: controller::Config<Object>) {
    let mut feeding = source(SECRETS, listing(), &super::config(), &Memory::default());
    let mut controller = Recorded::controller(Controller::new(config, 3), 3, Some(memory));
    let (mut out, mut said) = (Outputs::new(), Outputs::new());
    let conn = ConnId(1);
    controller.handle(Time::ZERO, controller::Input::Start, &mut said);
    feeding.handle(Time::ZERO, source::Input::Start, &mut out);
    feeding.handle(
        Time::ZERO,
        source::Input::Net { conn, event: NetEvent::Connected { reused: false } },
        &mut out,
    );
    let frames = [
        format!(r#"{{"type":"MODIFIED","object":{}}}"#, secret("a", 9, DATA)),
        format!(r#"{{"type":"ADDED","object":{}}}"#, secret("c", 10, DATA)),
        format!(r#"{{"type":"DELETED","object":{}}}"#, secret("a", 11, DATA)),
    ];
    let first = answer(&list(8, &[secret("a", 5, DATA), secret("b", 6, DATA)]));
    for (n, bytes) in [first, watch(&frames.join("\n"), 50)].into_iter().enumerate() {
        let now = Time::from_secs(n as u64);
        feeding.handle(now, source::Input::Net { conn, event: NetEvent::Received(&bytes) }, &mut out);
        for output in out.drain() {
            if let Output::Delta(delta) = output {
                controller.handle(now, controller::Input::Delta { source: SourceId(0), delta }, &mut said);
            }
        }
    }
    let key = Key::namespaced("prod", "b");
    let now = Time::from_secs(3);
    controller.handle(now, controller::Input::Trigger { key, priority: Priority::NORMAL }, &mut said);
    for _ in 0..4 {
        let runs: Vec<_> = said
            .drain()
            .filter_map(|o| if let controller::Output::Run(run) = o { Some(run.id) } else { None })
            .collect();
        for (id, n) in runs.into_iter().zip(0..) {
            let outcome = match n % 3 {
                0 => controller::Outcome::AwaitChange,
                1 => controller::Outcome::Error("no".into()),
                _ => controller::Outcome::Requeue(Duration::from_secs(9)),
            };
            let write = crate::api::Written {
                group: String::new(),
                plural: "secrets".to_owned(),
                key: Key::namespaced("prod", "b"),
                uid: "u-b".to_owned(),
                labels: [("app".to_owned(), "b".to_owned())].into(),
                now: crate::api::WrittenState::At("99".to_owned()),
            };
            controller.handle(now, controller::Input::Wrote { id, write }, &mut said);
            controller.handle(now, controller::Input::Done { id, outcome, started: now }, &mut said);
        }
        if let Some(next) = controller.next_deadline() {
            controller.handle(next.at, controller::Input::Deadline, &mut said);
        }
    }
    controller.handle(Time::from_secs(99), controller::Input::Stop { grace: None }, &mut said);
}

#[test]
fn a_controller_is_replayed_with_views_made_again() {
    let memory = Memory::default();
    run_controller(&memory, controller::Config::new("c", SECRETS).concurrency(2));
    let text = memory.text();
    assert!(text.contains("u-a") && text.contains("\"run 1: ") && !text.contains(DATA), "{text}");
    let compared = memory.compare();
    assert_eq!((compared.first, compared.skipped), (None, 0));
    assert!(compared.steps >= 8);
    // One at a time instead of two: the first delta says so.
    let recording = memory.read();
    let replay = Replay::controller(controller::Config::new("c", SECRETS), &recording).unwrap();
    let first = replay.compare(&recording).unwrap().first.unwrap();
    assert_eq!(first.number, 1, "{first:?}");
}

#[test]
fn functions_of_a_controller_are_asked_for() {
    let memory = Memory::default();
    let config = || {
        controller::Config::<Object>::new("c", SECRETS).filter(|_| true).watches(CONFIGMAPS, |_| Vec::new())
    };
    run_controller(&memory, config());
    let recording = memory.read();
    let error = Replay::of(&recording).unwrap_err().to_string();
    assert_eq!(error, "controller c: secrets.v1 has predicates, which only your program has");
    let compared = Replay::controller(config(), &recording).unwrap().compare(&recording).unwrap();
    assert_eq!(compared.first, None);
    let other = controller::Config::new("c", SECRETS);
    let error = Replay::controller(other, &recording).unwrap_err().to_string();
    assert_eq!(
        error,
        "the recorded controller watches [secrets.v1; configmaps.v1], the given one [secrets.v1]"
    );
}

#[test]
fn whoever_listens_late_has_the_whole_view_recorded() {
    let memory = Memory::default();
    let mut controller =
        Recorded::controller(Controller::new(controller::Config::new("c", SECRETS), 3), 3, Some(&memory));
    let mut out = Outputs::new();
    let object = |name| Object::from_json(secret(name, 5, DATA).as_bytes()).unwrap();
    let delta = added(&[object("a"), object("b")]);
    controller.handle(Time::ZERO, controller::Input::Start, &mut out);
    controller.handle(Time::ZERO, controller::Input::Delta { source: SourceId(0), delta }, &mut out);
    assert!(memory.text().contains("views of [2] objects"));
    assert_eq!(memory.compare().first, None);
}

#[test]
fn what_reconciles_and_functions_quote_is_masked() {
    let quoted = quoted();
    let memory = Memory::default();
    let machine = Controller::new(controller::Config::new("c", SECRETS), 3);
    let mut controller = Recorded::controller(machine, 3, Some(&memory));
    let mut out = Outputs::new();
    let delta = added(&[Object::from_json(secret("a", 5, "AAAA").as_bytes()).unwrap()]);
    controller.handle(Time::ZERO, controller::Input::Start, &mut out);
    controller.handle(Time::ZERO, controller::Input::Delta { source: SourceId(0), delta }, &mut out);
    for (id, make) in
        [controller::Outcome::Error, controller::Outcome::Panicked, controller::Outcome::Terminal]
            .into_iter()
            .enumerate()
    {
        let (id, now) = (controller::ReconcileId(id as u64 + 1), Time::from_secs(id as u64));
        let done = controller::Input::Done { id, outcome: make(quoted.clone()), started: now };
        controller.handle(now, done, &mut out);
        controller.handle(Time::from_secs(id.0), controller::Input::Deadline, &mut out);
    }
    let text = memory.text();
    assert!(text.contains("notice Failed") && text.contains("notice GaveUp"), "{text}");
    assert!(text.contains("patch: Invalid value:") && !text.contains(DATA), "{text}");
    assert_eq!(memory.compare().first, None);
}

#[test]
fn what_a_mapping_function_says_when_it_panics_is_masked() {
    for (resource, masked) in [(SECRETS, true), (CONFIGMAPS, false)] {
        let memory = Memory::default();
        let config = || {
            controller::Config::<Object>::new("c", CONFIGMAPS)
                .watches(resource.clone(), |o: &Object| panic!("{} bad: {DATA} {}", o.name(), quoted()))
        };
        let mut controller = Recorded::controller(Controller::new(config(), 3), 3, Some(&memory));
        let mut out = Outputs::new();
        let delta = added(&[Object::from_json(secret("a", 5, "AAAA").as_bytes()).unwrap()]);
        controller.handle(Time::ZERO, controller::Input::Start, &mut out);
        controller.handle(Time::ZERO, controller::Input::Delta { source: SourceId(1), delta }, &mut out);
        let text = memory.text();
        assert!(text.contains("notice MappingPanicked"), "{text}");
        assert_eq!(text.contains("(masked)"), masked, "{text}");
        let quotes = usize::from(!masked);
        assert_eq!(text.matches(DATA).count(), quotes, "what was not quoted stands there: {text}");
        let recording = memory.read();
        let compared = Replay::controller(config(), &recording).unwrap().compare(&recording).unwrap();
        assert_eq!(compared.first, None);
    }
}
