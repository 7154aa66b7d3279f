//! The guards that `KNOWN_BUGS.md` names exist.

#![expect(clippy::disallowed_methods, reason = "the test reads its own sources; the core does not")]

use std::fs;
use std::path::Path;

/// `a::b::c` -> the function `c` in one of `a/b.rs`, `a/b/mod.rs`.
fn exists(root: &Path, guard: &str) -> bool {
    if guard.starts_with("transcripts/") {
        return root.join("tests").join(guard).is_file();
    }
    let Some((module, function)) = guard.rsplit_once("::") else { return false };
    let path = root.join("src").join(module.replace("::", "/"));
    [path.with_extension("rs"), path.join("mod.rs")]
        .iter()
        .any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {function}("))))
}

#[test]
fn every_guard_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("tests/KNOWN_BUGS.md")).unwrap();
    let mut guards = 0;
    for row in table.lines().filter(|l| l.starts_with("| ") && !l.contains("| guarded by |")) {
        let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for guard in last.split('`').skip(1).step_by(2) {
            assert!(exists(root, guard), "{guard} is gone; it guards: {row}");
            guards += 1;
        }
    }
    assert!(guards > 40, "{guards}");
    assert!(!exists(root, "watcher::tests::no_such_test"));
}
