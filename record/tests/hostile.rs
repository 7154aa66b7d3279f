//! Files that are no recordings, or damaged, or forged: each is replayed or told in one line, and nothing panics.

mod common;

use std::fs;

use common::{Place, line, run};
use serde_json::{Value, json};
use steersman_core::rng::Rng;
use steersman_record::Directory;

/// What a file may say instead.
fn odd(rng: &mut Rng) -> Value {
    match rng.below(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(u64::MAX),
        4 => json!(i64::MIN),
        5 => json!(1e300),
        6 => json!(1_u64 << 32),
        7 => json!(""),
        8 => json!("\u{0}\u{1F600}/../%0d%0a"),
        9 => json!("x".repeat(10_000)),
        10 => json!([]),
        11 => json!({}),
        12 => json!([[[[[[{"a": [1, "Start"]}]]]]]]),
        _ => json!({"secs": u64::MAX, "nanos": u32::MAX}),
    }
}

/// Changes one place of a value.
fn forge(value: &mut Value, rng: &mut Rng) {
    match value {
        Value::Object(members) if !members.is_empty() && rng.below(12) > 0 => {
            let n = rng.below(members.len() as u64) as usize;
            let name = members.keys().nth(n).unwrap().clone();
            match rng.below(20) {
                0 => drop(members.remove(&name)),
                1 => drop(members.insert("other".into(), odd(rng))),
                _ => forge(members.get_mut(&name).unwrap(), rng),
            }
        }
        Value::Array(items) if !items.is_empty() && rng.below(12) > 0 => {
            let n = rng.below(items.len() as u64) as usize;
            match rng.below(20) {
                0 => drop(items.remove(n)),
                1 => items.push(items[n].clone()),
                _ => forge(&mut items[n], rng),
            }
        }
        Value::Number(n) if rng.below(2) == 0 => {
            let n = n.as_u64().unwrap_or_default();
            *value = json!(if rng.below(2) == 0 { n.wrapping_add(1) } else { n.wrapping_sub(1) });
        }
        value => *value = odd(rng),
    }
}

fn forged(lines: &[&str], rng: &mut Rng) -> String {
    let mut values: Vec<Value> = lines.iter().map(|l| serde_json::from_str(&l[18..]).unwrap()).collect();
    for _ in 0..=rng.below(3) {
        let n = rng.below(values.len() as u64) as usize;
        match rng.below(10) {
            0 if values.len() > 2 => drop(values.remove(n)),
            1 => values.push(values[n].clone()),
            2 => {
                let other = rng.below(values.len() as u64) as usize;
                values.swap(n, other);
            }
            _ => forge(&mut values[n], rng),
        }
    }
    values.iter().map(|value| line(&value.to_string())).collect()
}

fn check(what: &str, path: &std::path::Path) {
    for args in [&["--diff"][..], &[], &["--until", "1"]] {
        let (status, out, errors) = run(args, path);
        assert!(!out.contains("Panicked"), "{what}: {out}");
        // What can only be read is told before what cannot be read either.
        let lines: Vec<_> = errors.lines().collect();
        let (error, before) = lines.split_last().unwrap_or((&"", &[]));
        assert!(status < 2 || error.starts_with("steersman-replay: "), "{what}: {errors}");
        assert!(before.iter().all(|line| line.ends_with("this is what was recorded")), "{what}: {errors}");
        assert!(status == 0 || !(out.is_empty() && errors.is_empty()), "{what}");
    }
}

#[test]
fn whatever_stands_in_a_file_nothing_panics() {
    let place = Place::new("hostile");
    let directory = Directory::new(&place.0).unwrap();
    let kinds = common::one_of_each(&directory);
    let whole: Vec<_> = kinds.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let path = place.0.join("any.000000.rec");
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let text = &whole[rng.below(whole.len() as u64) as usize];
        let lines: Vec<_> = text.lines().collect();
        let bytes = match rng.below(8) {
            // Bytes of any kind.
            0 => (0..rng.below(300)).map(|_| rng.below(256) as u8).collect(),
            // The beginning.
            1 => text.as_bytes()[..rng.below(text.len() as u64) as usize].to_vec(),
            // Some bytes are others.
            2 => {
                let mut bytes = text.clone().into_bytes();
                for _ in 0..=rng.below(4) {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.below(256) as u8;
                }
                bytes
            }
            // Every checksum is right, and what it says is not.
            _ => forged(&lines, &mut rng).into_bytes(),
        };
        fs::write(&path, &bytes).unwrap();
        check(&format!("seed {seed}: {}", String::from_utf8_lossy(&bytes)), &path);
    }
}

#[test]
fn what_has_no_end_is_not_read_to_it() {
    let (status, _, errors) = run(&[], "/dev/zero".as_ref());
    assert!(status == 2 && errors.contains("/dev/zero: not a regular file"), "{errors}");
    let place = Place::new("large");
    fs::create_dir_all(&place.0).unwrap();
    let path = place.0.join("large.rec");
    // A terabyte, of which nothing is stored.
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let (status, _, errors) = run(&[], &path);
    assert!(status == 2 && errors.contains("not a recording"), "{errors}");
}
