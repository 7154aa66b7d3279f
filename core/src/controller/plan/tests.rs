use alloc::string::ToString;
use alloc::vec;

use super::*;
use crate::api::kinds::ConfigMap;
use crate::api::{Api, Status};
use crate::controller::{Priority, ReconcileId};
use crate::time::Time;

fn object(name: &str) -> Object {
    let json =
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"n"}}}}"#);
    Object::from_json(json.as_bytes()).unwrap()
}

fn a_run() -> Run<Object> {
    let views = vec![[object("a")].into_iter().collect(), [object("b"), object("c")].into_iter().collect()];
    Run {
        id: ReconcileId(1),
        key: Key::namespaced("n", "a"),
        object: object("a"),
        views: views.into(),
        since: Time::ZERO,
        attempt: 3,
        priority: Priority::NORMAL,
    }
}

fn start<F>(plan: F) -> (PlanRun<F>, PlanOutput)
where
    F: Fn(&Planning<'_>) -> Result<Step, Failure> + Send + Sync + 'static,
{
    PlanRun::start(Arc::new(plan), a_run())
}

fn get(name: &str) -> Request<Raw> {
    Api::<ConfigMap>::namespaced("n").get(name).into_raw()
}

fn refusal(code: u16, reason: &str) -> Error {
    let mut status = Status::failure(code, reason, format!("configmaps \"x\" {reason}"));
    status.details = Some(crate::api::StatusDetails { name: "x".into(), ..Default::default() });
    Error::new(ErrorKind::Api(status), "get configmaps n/x", "host:1")
}

fn done() -> Result<Step, Failure> {
    Ok(Step::Done(Action::await_change()))
}

#[test]
fn a_plan_sees_its_object_and_the_views() {
    let (run, next) = start(|cx| {
        assert_eq!((cx.key().to_string().as_str(), cx.attempt(), cx.round()), ("n/a", 3, 0));
        assert_eq!(cx.view(SourceId(0)).len(), 1);
        assert!(cx.view(SourceId(1)).get(&Key::namespaced("n", "c")).is_some());
        assert!(cx.view(SourceId(7)).is_empty());
        assert!(cx.answers().is_empty());
        done()
    });
    assert_eq!(next, PlanOutput::Finished(Outcome::AwaitChange));
    assert_eq!(run.run().id, ReconcileId(1));
}

#[test]
fn answers_come_by_round_and_in_order() {
    let (mut run, next) = start(|cx| match cx.round() {
        0 => Ok(Step::send([get("x"), get("y")])),
        1 => {
            assert_eq!(cx.answer::<Option<Object>>(0)?, None, "not found is an answer");
            assert_eq!(cx.answer::<Object>(1)?.name(), "y");
            assert!(matches!(cx.answer::<Object>(0), Err(Failure::Error(_))));
            assert!(matches!(cx.answer::<Object>(2), Err(Failure::Terminal(_))));
            Ok(Step::send([get("z")]))
        }
        _ => {
            assert_eq!((cx.rounds().len(), cx.rounds()[0].len(), cx.answers().len()), (2, 2, 1));
            Ok(Step::Done(Action::requeue(core::time::Duration::from_secs(5))))
        }
    });
    assert_eq!(next, PlanOutput::Send(vec![get("x"), get("y")]));
    let y = Raw(object("y").raw().to_vec());
    let next = run.answered(vec![Err(refusal(404, "NotFound")), Ok(y.clone())]);
    assert_eq!(next, PlanOutput::Send(vec![get("z")]));
    let next = run.answered(vec![Ok(y)]);
    assert_eq!(next, PlanOutput::Finished(Outcome::Requeue(core::time::Duration::from_secs(5))));
}

#[test]
fn send_then_ends_without_another_call_if_all_is_well() {
    let once = |cx: &Planning<'_>| {
        assert_eq!(cx.round(), 0, "it is not called again");
        Ok(Step::send_then([get("x"), get("y"), get("z")], Action::await_change()))
    };
    let ok = || Ok(Raw(b"{}".to_vec()));
    let (mut run, _) = start(once);
    assert_eq!(run.answered(vec![ok(), ok(), ok()]), PlanOutput::Finished(Outcome::AwaitChange));
    let (mut run, _) = start(once);
    let PlanOutput::Finished(Outcome::Error(e)) =
        run.answered(vec![Err(refusal(409, "Conflict")), ok(), Err(refusal(403, "Forbidden"))])
    else {
        panic!("an error")
    };
    assert!(e.contains("Conflict") && e.contains("Forbidden") && e.contains("host:1"), "{e}");
    let misuse = || Err(Error::new(ErrorKind::Misuse("no name".into()), "get configmaps", "host:1"));
    let (mut run, _) = start(once);
    let next = run.answered(vec![misuse(), ok(), misuse()]);
    assert!(matches!(next, PlanOutput::Finished(Outcome::Terminal(_))), "{next:?}");
    let (mut run, _) = start(once);
    let next = run.answered(vec![misuse(), ok(), Err(refusal(500, "InternalError"))]);
    assert!(matches!(next, PlanOutput::Finished(Outcome::Error(_))), "{next:?}");
}

#[test]
fn nothing_to_send_is_not_sent() {
    let (_, next) = start(|_| Ok(Step::send_then([], Action::await_change())));
    assert_eq!(next, PlanOutput::Finished(Outcome::AwaitChange));
    let (_, next) = start(|cx| if cx.round() == 3 { done() } else { Ok(Step::send([])) });
    assert_eq!(next, PlanOutput::Finished(Outcome::AwaitChange));
}

#[test]
fn a_plan_that_asks_on_and_on_fails() {
    let limit = |next: PlanOutput| {
        let PlanOutput::Finished(Outcome::Error(e)) = next else { panic!("{next:?}") };
        assert!(e.contains("32 rounds"), "{e}");
    };
    limit(start(|_| Ok(Step::send([]))).1);
    let (mut run, mut next) = start(|_| Ok(Step::send([get("x")])));
    let mut rounds = 0;
    while let PlanOutput::Send(_) = next {
        rounds += 1;
        next = run.answered(vec![Ok(Raw::default())]);
    }
    assert_eq!(rounds, MAX_ROUNDS);
    limit(next);
}

#[test]
fn failures_are_outcomes() {
    let (_, next) = start(|_| Err(Failure::error("later")));
    assert_eq!(next, PlanOutput::Finished(Outcome::Error("later".into())));
    let (_, next) = start(|_| Err(Failure::terminal("never")));
    assert_eq!(next, PlanOutput::Finished(Outcome::Terminal("never".into())));
    // What cannot be read now cannot be read in a moment either.
    let (_, next) = start(|cx| {
        cx.object().get::<u32>(&["metadata", "name"])?;
        done()
    });
    assert!(matches!(next, PlanOutput::Finished(Outcome::Terminal(_))), "{next:?}");
}

#[cfg(feature = "std")]
#[test]
fn a_panic_is_an_outcome() {
    let (mut run, next) = start(|_| panic!("boom {}", 7));
    assert_eq!(next, PlanOutput::Finished(Outcome::Panicked("boom 7".into())));
    assert!(matches!(run.answered(vec![]), PlanOutput::Finished(Outcome::Terminal(_))));
}

#[test]
fn answers_that_do_not_fit_are_an_error() {
    let (mut run, _) = start(|_| Ok(Step::send([get("x"), get("y")])));
    assert!(matches!(run.answered(vec![]), PlanOutput::Finished(Outcome::Error(_))));
    assert!(matches!(run.answered(vec![]), PlanOutput::Finished(Outcome::Terminal(_))));
}

#[test]
fn a_trait_object_is_a_plan_and_debug_shows_no_answers() {
    struct Ask;
    impl Plan for Ask {
        fn plan(&self, _: &Planning<'_>) -> Result<Step, Failure> {
            Ok(Step::send([get("x")]))
        }
    }
    let plan: Arc<dyn Plan> = Arc::new(Ask);
    let (mut run, next) = PlanRun::start(plan, a_run());
    assert!(matches!(next, PlanOutput::Send(_)));
    let _ = run.answered(vec![Ok(Raw(b"hunter2".to_vec()))]);
    let shown = format!(
        "{run:?} {:?}",
        Planning::new(&object("a")).with_answers(&[vec![Ok(Raw(b"hunter2".to_vec()))]])
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}
