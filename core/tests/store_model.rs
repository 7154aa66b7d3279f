//! The fuzz target `store`, driven by random bytes: a store with indexes against a naive model, and what it keeps alive.

mod cases;

#[path = "../../fuzz/src/store.rs"]
#[allow(unreachable_pub, reason = "it is public where it lives")]
mod store;

#[test]
fn the_store_is_what_a_plain_map_is_and_holds_no_more() {
    fn prop(data: Vec<u8>) -> bool {
        store::run(&data);
        true
    }
    cases::cases(2_000).quickcheck(prop as fn(Vec<u8>) -> bool);
}
