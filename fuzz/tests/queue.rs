//! Replays the committed corpus of the queue.

#[test]
fn the_corpus_of_the_queue() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/queue");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        steersman_fuzz::queue::run(&std::fs::read(entry.expect("an entry").path()).expect("a file"));
        files += 1;
    }
    assert!(files > 10);
}
