use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quickcheck::{Arbitrary, Gen};

use super::codec::{Found, Places, Reader, Stamp, Work};
use super::*;
use crate::object::{Key, Object, Resource};
use crate::rng::Rng;

fn packed(dictionary: &[u8], stamp: Stamp<'_>, text: &[u8]) -> Vec<u8> {
    let (mut work, mut places, mut out) = (Work::default(), Places::new(12), Vec::new());
    places.learn(dictionary, 0);
    let begun = work.begin(stamp, |buffer| {
        buffer.extend_from_slice(text);
        true
    });
    assert_eq!(begun, Some(stamp.uid.len() + stamp.version.len()));
    work.pack(stamp, dictionary, &mut places, &mut out, &mut |found| {
        let (Found::Nowhere(from, to) | Found::At(from, to)) = found;
        assert!(from < to);
    });
    out
}

/// Bytes that repeat themselves and each other, of few letters, digits among them.
#[derive(Clone, Debug)]
struct Text(Vec<u8>);

impl Arbitrary for Text {
    fn arbitrary(g: &mut Gen) -> Self {
        const PIECES: [&[u8]; 8] = [
            b"\"name\":\"",
            b"metadata",
            b"0123456789abcdef",
            b"ffff",
            b"x",
            b"\xff\0",
            b"\",\"",
            b"aaaaaaaa",
        ];
        let mut text = Vec::new();
        for _ in 0..u8::arbitrary(g) % 40 {
            match u8::arbitrary(g) % 4 {
                0 => text.push(u8::arbitrary(g)),
                1 if !text.is_empty() => {
                    let from = usize::arbitrary(g) % text.len();
                    text.extend_from_within(from..);
                }
                _ => text.extend_from_slice(PIECES[usize::arbitrary(g) % PIECES.len()]),
            }
            text.truncate(5000);
        }
        Self(text)
    }
}

#[test]
fn what_is_packed_can_be_unpacked() {
    fn prop(dictionary: Text, text: Text, uid: String, version: Option<u64>, usual: bool) -> bool {
        let uid = if usual { "0c1f6a52-77aa-4b6f-9f3e-0123456789ab" } else { &*uid };
        let version = version.map_or_else(String::new, |version| format!("{version}"));
        let packed = packed(&dictionary.0, Stamp { uid, version: &version }, &text.0);
        let reader = Reader::new(&packed);
        let read = reader.clone().stamp().unwrap();
        assert_eq!((read.total, &*read.uid, &*read.version), (text.0.len(), uid, &*version));
        assert!(reader.clone().header().is_some());
        let (whole, start) = reader.unpack(&dictionary.0).unwrap();
        whole[start..] == text.0
    }
    crate::cases::cases(2000).quickcheck(prop as fn(Text, Text, String, Option<u64>, bool) -> bool);
}

#[test]
fn any_bytes_are_unpacked_or_refused() {
    fn prop(dictionary: Text, text: Text, noise: Vec<(usize, u8)>, other: Vec<u8>) -> bool {
        let mut packed = packed(&dictionary.0, Stamp { uid: "uid", version: "12" }, &text.0);
        for (at, byte) in noise {
            let length = packed.len();
            packed[at % length] = byte;
        }
        for bytes in [&packed, &other, &packed[..packed.len() / 2].to_vec()] {
            let reader = Reader::new(bytes);
            // What claims to be huge is not made here.
            if reader.clone().total().is_some_and(|total| total > 1 << 20) {
                continue;
            }
            let _ = (reader.clone().stamp(), reader.clone().header());
            if let Some((mut whole, start)) = reader.clone().unpack(&dictionary.0) {
                assert_eq!(reader.clone().total(), Some(whole.len() - start));
                drop(Object::from_packable(&mut whole[start..]));
            }
        }
        true
    }
    crate::cases::cases(2000).quickcheck(prop as fn(Text, Text, Vec<(usize, u8)>, Vec<u8>) -> bool);
}

#[test]
fn digits_take_half_and_what_goes_on_takes_two_bytes() {
    let dictionary = b"{\"uid\":\"0000000000000000\",\"phase\":\"Running\",\"node\":\"n-000\",\"restartPolicy\":\"Always\"}";
    let text = b"{\"uid\":\"0123456789abcdef\",\"phase\":\"Running\",\"node\":\"n-417\",\"restartPolicy\":\"Always\"}";
    let packed = packed(dictionary, Stamp { uid: "", version: "" }, text);
    // Three copies of two bytes, those of 17 and more of three, and the digits.
    assert!(packed.len() <= 5 + 3 * 3 + 2 + 8 + 2, "{}: {packed:x?}", packed.len());
}

/// A pod of one of these workloads.
fn pod(workload: u64, n: u64) -> Object {
    let (mut of, mut own) = (Rng::new(workload), Rng::new(1000 + n));
    let mut hex =
        |digits: usize| format!("{:016x}{:016x}", own.next_u64(), own.next_u64())[..digits].to_owned();
    let env: Vec<_> =
        (0..8).map(|i| format!(r#"{{"name":"SETTING_{i}","value":"{:x}"}}"#, of.next_u64())).collect();
    let uid = format!("{}-{}-{}-{}-{}", hex(8), hex(4), hex(4), hex(4), hex(12));
    let json = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"app-{workload}-{n}","namespace":"shop","uid":"{uid}",
        "resourceVersion":"{}","ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"app-{workload}",
        "uid":"rs-{workload}","controller":true}}]}},"spec":{{"containers":[{{"name":"main","image":"registry.example/shop",
        "env":[{}],"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}}],
        "restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"}},
        "status":{{"phase":"Running","containerID":"containerd://{}{}"}}}}"#,
        100_000 + n,
        env.join(","),
        hex(32),
        hex(32),
    );
    Object::from_json(json.as_bytes()).unwrap()
}

#[test]
fn a_packer_learns_what_the_objects_have_in_common() {
    let (mut packer, mut size) = (Packer::default(), PackedSize::default());
    let all: Vec<_> = (0..2000).map(|n| pod(n / 10 % 12, n)).collect();
    let kept: Vec<_> = all.iter().map(|pod| packer.keep(pod)).collect();
    for (pod, kept) in all.iter().zip(&kept) {
        assert_eq!(&kept.get(), pod);
        assert_eq!((kept.stamp().uid(), kept.stamp().version()), (pod.uid(), pod.resource_version()));
        size += kept.size();
    }
    assert!(size.objects > 1990 && size.kept * 9 < size.whole, "{size:?}");
    assert!(packer.keep(&all[0]).is_same_life(&kept[0]) && !kept[0].is_same_life(&kept[1]));
    assert!(kept[0].is_same_life(&Kept::Whole(all[0].clone())));
    // And when they are other ones.
    let size = |packer: &mut Packer, from: u64, to: u64| {
        let mut size = PackedSize::default();
        (from..to).for_each(|n| size += packer.keep(&pod(n / 10 % 12 + n / 20_000 * 100, n)).size());
        size
    };
    size(&mut packer, 20_000, 22_000);
    let later = size(&mut packer, 22_000, 23_000);
    assert!(later.kept * 7 < later.whole, "{later:?}");
}

#[test]
fn what_does_not_shrink_stays_whole() {
    let mut packer = Packer::default();
    let mut own = Rng::new(1);
    for n in 0..3000 {
        let noise: String = (0..40).map(|_| format!("{:016X}", own.next_u64())).collect();
        let json = format!(r#"{{"metadata":{{"name":"n{n}","uid":"u{n}"}},"data":"{noise}"}}"#);
        let object = Object::from_json(json.as_bytes()).unwrap();
        assert_eq!(packer.keep(&object).get(), object);
    }
}

#[test]
fn a_dictionary_that_fits_no_longer_is_replaced() {
    let mut packer = Packer::default();
    let mut words = Rng::new(7);
    // Each era has more of its own than a dictionary holds.
    let mut era = |packer: &mut Packer, name: &str, count: usize| {
        let kinds: Vec<String> = (0..60)
            .map(|_| (0..100).map(|_| format!("{:X}-", words.next_u64())).collect::<String>())
            .collect();
        let (mut kept, mut whole) = (0, 0);
        for n in 0..count {
            let json = format!(r#"{{"metadata":{{"name":"{name}-{n}"}},"data":"{}"}}"#, kinds[n % 20]);
            let object = Object::from_json(json.as_bytes()).unwrap();
            let keep = packer.keep(&object);
            assert_eq!(keep.get(), object);
            if n > count / 4 * 3 {
                kept += keep.size().kept;
                whole += keep.size().whole;
            }
        }
        whole / kept.max(1)
    };
    let (first, second) = (era(&mut packer, "a", 2000), era(&mut packer, "b", 12_000));
    assert!(first > 5 && second > 5, "{first} {second}");
}

/// What was learned of objects that are half noise leaves room for what comes after them.
#[test]
fn a_packer_that_has_met_much_noise_still_learns() {
    let (mut packer, mut noise) = (Packer::default(), Rng::new(5));
    let shapes: Vec<Vec<String>> = (0..5)
        .map(|_| (0..12).map(|_| format!("{:016x}-{:016x}", noise.next_u64(), noise.next_u64())).collect())
        .collect();
    for n in 0..8000 {
        let mut data = String::new();
        for word in &shapes[n / 1600] {
            data += &format!("{word}:{:x}:{};", noise.next_u64(), noise.next_u64() % 100_000);
        }
        let json = format!(r#"{{"metadata":{{"name":"n{n}","uid":"u{n}"}},"data":"{data}"}}"#);
        packer.keep(&Object::from_json(json.as_bytes()).unwrap());
    }
    let text: String = (0..90).map(|_| format!("{:032X}", noise.next_u64())).collect();
    let mut size = PackedSize::default();
    for n in 0..3000 {
        let json = format!(r#"{{"metadata":{{"name":"m{n}","uid":"v{n}"}},"data":"{text}"}}"#);
        let kept = packer.keep(&Object::from_json(json.as_bytes()).unwrap());
        size += if n >= 2000 { kept.size() } else { PackedSize::default() };
    }
    assert!(size.kept * 9 < size.whole, "{size:?} {packer:?}");
}

#[test]
fn what_is_kept_is_a_word_longer_than_an_object_and_tells_nothing() {
    assert_eq!(size_of::<Kept<Object>>(), size_of::<Object>() + size_of::<usize>());
    let debug = format!("{:?}", Packer::default().keep(&pod(1, 1)));
    let mut packer = Packer::default();
    let kept: Vec<_> = (0..3).map(|n| packer.keep(&pod(1, n))).collect();
    let debug = format!("{debug} {packer:?} {:?}", kept[2]);
    assert!(!debug.contains("SETTING"), "{debug}");
    assert_eq!(pod(1, 1).key(), Key::namespaced("shop", "app-1-1"));
}

#[test]
fn an_object_and_its_bytes_are_one() {
    let object = pod(1, 1);
    let mut bytes = Vec::new();
    assert!(object.to_packable(&mut bytes));
    assert_eq!(Object::from_packable(&mut bytes), Some(object));
}
