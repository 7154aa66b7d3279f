use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::*;
use crate::cases::cases;

/// Hashes from the worst to good ones.
fn hash(how: u8, key: u8) -> u32 {
    let n = u32::from(key);
    match how % 6 {
        0 => 7,
        // One home, few tags; tags that differ by one.
        1 => n % 4,
        2 => n % 3 + 255,
        // One tag, many homes.
        3 => n << 24,
        // At the end of the table, so that a search begins anew at its start.
        4 => u32::MAX - n % 5,
        _ => n.wrapping_mul(0x9e37_79b9),
    }
}

/// Keys are their own numbers.
fn takes_and_finds(how: u8, ops: Vec<(bool, u8)>) {
    let mut index = Index::new();
    let mut map = BTreeMap::<u8, Place>::new();
    for (n, (add, key)) in ops.into_iter().enumerate() {
        match map.remove(&key) {
            Some(place) => index.remove(place),
            None if add => {
                if index.is_full() {
                    let mut ids: Vec<Id> = index.ids().collect();
                    ids.sort_unstable();
                    assert!(ids.iter().copied().eq(map.keys().map(|key| Id::from(*key))), "{ids:?}");
                    index = Index::with_room_for(map.len() + 1);
                    for (key, place) in &mut map {
                        *place = index.claim(hash(how, *key));
                        index.set(*place, (*key).into());
                    }
                }
                let place = index.claim(hash(how, key));
                index.set(place, key.into());
                assert!(map.values().all(|other| *other != place), "two at {place}");
                map.insert(key, place);
            }
            None => {}
        }
        // To look for all of them takes long.
        let all = if n % 16 == 0 { 0..=u8::MAX } else { key..=key };
        for key in all {
            let here = |place| (map.get(&key) == Some(&place)).then(|| index.get(place));
            let there = map.contains_key(&key).then_some(Id::from(key));
            assert_eq!(index.find(hash(how, key), here), there, "{key}");
        }
    }
}

#[test]
fn it_finds_what_a_map_finds() {
    cases(200).quickcheck(takes_and_finds as fn(u8, Vec<(bool, u8)>));
}

/// Every way of hashing, through several sizes of the table and back.
#[test]
fn bad_hashes_only_take_longer() {
    for how in 0..6 {
        let fill = (0..=u8::MAX).map(|key| (true, key));
        let empty = (0..=u8::MAX).rev().map(|key| (false, key));
        takes_and_finds(how, fill.clone().chain(empty).chain(fill).collect());
    }
}

#[test]
fn places_are_found_again_when_many_have_come_and_gone() {
    let mut index = Index::with_room_for(7);
    let places = index.places();
    for round in 0..10_000_u32 {
        let hash = round.wrapping_mul(0x9e37_79b9);
        if index.is_full() {
            index = Index::with_room_for(1);
        }
        let place = index.claim(hash);
        assert!((place as usize) < places);
        index.remove(place);
    }
    assert_eq!(index.find(0, |_| Some(0)), None);
    assert_eq!(index.ids().count(), 0);
}
