//! The fuzz target `watcher`, driven by random bytes: watcher and store against a tiny server with every fault.

mod cases;

#[path = "../../fuzz/src/watcher.rs"]
#[allow(unreachable_pub, reason = "it is public where it lives")]
mod watcher;

#[test]
fn the_store_is_what_the_server_has_whatever_happened() {
    fn prop(data: Vec<u8>) -> bool {
        watcher::run(&data);
        true
    }
    cases::cases(1_500).quickcheck(prop as fn(Vec<u8>) -> bool);
}
