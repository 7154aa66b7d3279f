//! Disks that are slow, or do not answer at all.

use std::path::PathBuf;

use steersman_core::record::file::Kind;

use super::*;

/// A directory whose writer is stuck until the sender is dropped.
fn stuck(name: &str, patience: Duration) -> (Directory, Sender<()>, PathBuf) {
    let path = std::env::temp_dir().join(format!("steersman-record-{}-{name}", std::process::id()));
    let (free, until) = mpsc::channel::<()>();
    let run = Run::begin(&path).unwrap();
    let file = run.path().to_owned();
    let write = move |inbox: &Receiver<Message>, waiting: &AtomicUsize| {
        let _ = until.recv();
        writer::run(&file, inbox, waiting);
    };
    (Directory::written_by(run, write, patience).unwrap(), free, path)
}

fn sink(directory: &Directory, name: &str) -> Arc<dyn Sink> {
    directory.open(Header::new(Kind::Manager, name, Redaction::nothing(), serde_json::Value::Null))
}

#[test]
fn a_disk_that_does_not_answer_holds_up_no_end() {
    let (directory, free, path) = stuck("stuck", Duration::from_millis(1));
    let sink = sink(&directory, "manager");
    assert!(sink.record(vec![b'x'; 1000]));
    let error = directory.flush().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(
        error.to_string().ends_with("the disk takes too long: 1000 bytes still wait after 1ms"),
        "{error}"
    );
    drop((sink, directory));
    // Nothing is left for the writer to write into.
    std::fs::remove_dir_all(path).unwrap();
    drop(free);
}

#[test]
fn what_waits_is_never_more_than_the_queue_and_one_record() {
    let (directory, free, path) = stuck("slow", limits::RECORDING_FLUSH * 12);
    let (a, b) = (sink(&directory, "a"), sink(&directory, "b"));
    // One that is as long as records may be is taken, whatever the queue may hold.
    assert!(a.record(vec![b'x'; limits::RECORDING_QUEUE]) && a.record(vec![b'x'; limits::RECORD_BYTES]));
    assert!(!b.record(vec![b'x'; 1]) && !b.record(vec![b'x'; 1]));
    drop(free);
    directory.flush().unwrap();
    let file = directory.path().join("b.000000.rec");
    let text = std::fs::read_to_string(file).unwrap();
    let why = "the disk is too slow: 100663296 bytes wait to be written, more than 33554432";
    assert!(text.contains(why) && !text.contains('x'), "{text}");
    drop((a, b, directory));
    let _ = std::fs::remove_dir_all(path);
}
