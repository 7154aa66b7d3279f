//! Plainer values come to an end.

use super::*;

#[test]
fn plainer_numbers_are_plainer() {
    assert_eq!(plainer_number(0), [0u64; 0]);
    assert_eq!(plainer_number(1), [0]);
    assert_eq!(plainer_number(1_534), [0, 1, 1_000, 2_000, 1_500, 1_600, 1_530, 1_540, 767, 1_533]);
    for n in (0..5_000).chain([u64::MAX, u64::MAX / 7, 10_000_000_000_000_000_000]) {
        for candidate in plainer_number(n) {
            assert!((digits(candidate), candidate) < (digits(n), n), "{candidate} for {n}");
        }
    }
}

#[test]
fn every_leaf_has_a_place() {
    let mut value = serde_json::json!({"a": [1, {"b": true}], "c": "text", "d": null, "e": -3});
    let mut found = Vec::new();
    while let Some(leaf) = leaf(&mut value, &mut found.len()) {
        found.push(leaf.clone());
    }
    assert_eq!(found, [Value::from(1), Value::from(true), Value::from(-3)]);
    assert_eq!(plainer(&found[2]), [Value::from(0), Value::from(-1), Value::from(-2)]);
    assert_eq!(plainer(&Value::from(true)), [Value::from(false)]);
}
