//! Segments: what is kept, and what is read again.

use super::*;

fn small(keep: Keep) -> Memory {
    let memory = Memory::new(Bound { segment: 2_000, segments: 3, keep });
    let mut manager =
        Recorded::manager(Manager::with_counts(1, 1, crate::manager::Config::default()), Some(&memory));
    let mut out = Outputs::new();
    for n in 0..200 {
        manager.handle(Time::from_millis(n), crate::manager::Input::Deadline, &mut out);
    }
    memory
}

#[test]
fn the_oldest_segment_goes_and_a_replay_says_so() {
    let memory = small(Keep::Latest);
    let files = memory.files();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|(_, bytes)| bytes.len() <= 2_000));
    let recording = memory.read();
    assert!(!recording.is_whole() && recording.end == End::Whole);
    assert_eq!(recording.numbered().last().unwrap().0, 199);
    let error = Replay::of(&recording).unwrap_err().to_string();
    assert!(error.contains("its beginning is gone") && error.contains("can still be read"), "{error}");
    let mut reading = Replay::reading(&recording);
    let step = reading.step(recording.numbered().next().unwrap()).unwrap();
    assert_eq!((&*step.told, step.said), ("Deadline", None));
}

#[test]
fn the_first_segments_can_be_kept_instead() {
    let memory = small(Keep::Beginning);
    let recording = memory.read();
    assert_eq!((memory.files().len(), recording.is_whole()), (3, true));
    assert!(matches!(&recording.end, End::Ended(why) if why.contains("3 segments of 2000 bytes")));
    assert_eq!(memory.compare().first, None);
}

#[test]
fn a_torn_end_is_no_error_and_damage_is_one() {
    let memory = Memory::default();
    live(&mut source(CONFIGMAPS, listing(), &config(), &memory), usize::MAX);
    let (whole, bytes) = (memory.read(), memory.bytes());
    let header = memchr::memchr(b'\n', &bytes).unwrap() + 1;
    for cut in header..bytes.len() {
        let torn = Recording::read([&bytes[..cut]]).unwrap();
        let lines = bytes[..cut].iter().filter(|b| **b == b'\n').count();
        assert_eq!(torn.records.len(), lines - 1, "cut at {cut}");
        assert_eq!(torn.records[..], whole.records[..lines - 1]);
        assert_eq!(torn.end == End::Torn, bytes[cut - 1] != b'\n');
    }
    for cut in 0..header {
        assert!(Recording::read([&bytes[..cut]]).is_err());
    }
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x11;
        let error = match Recording::read([&*damaged]) {
            Err(e) => e.to_string(),
            Ok(recording) => panic!("{at}: {:?}", recording.end),
        };
        assert!(error.contains("damaged") || error.contains("not a recording"), "{at}: {error}");
    }
}

#[test]
fn what_does_not_belong_together_is_told() {
    let files = small(Keep::Beginning).files();
    let read = |files: &[&[u8]]| Recording::read(files.iter().copied()).map(drop).unwrap_err().to_string();
    assert_eq!(read(&[&files[0].1, &files[2].1]), "segment 1 is missing or not whole");
    assert_eq!(read(&[]), "not a recording: it is empty");
    assert_eq!(read(&[b"hello, world, this is a file\n"]), "not a recording: no length and checksum");
    let header = Header { format: 9, ..Header::new(Kind::Manager, "m", Redaction::default(), Value::Null) };
    assert_eq!(read(&[&file::line(&header)]), "a recording of format 9; this program reads format 1");
    let memory = Memory::default();
    live(&mut source(CONFIGMAPS, listing(), &config(), &memory), usize::MAX);
    let mut other = memory.bytes();
    let at = memchr::memmem::find(&other, b"\"segment\":0,\"first\":0").unwrap();
    other[at + 10] = b'1';
    assert!(read(&[&files[0].1, &other]).contains("checksum"));
}

/// A record of so many bytes, as a line.
fn record(bytes: usize) -> Vec<u8> {
    let mut record = alloc::vec![b'x'; bytes];
    record[bytes - 1] = b'\n';
    record
}

#[test]
fn the_bound_holds_whatever_comes() {
    let property = |sizes: Vec<u16>, segment: u16, segments: u8, beginning: bool| {
        let keep = if beginning { Keep::Beginning } else { Keep::Latest };
        let bound =
            Bound { segment: 300 + u64::from(segment % 2_000), segments: u64::from(segments % 6), keep };
        let most = bound.segment * bound.segments.max(1);
        let header = Header::new(Kind::Manager, "m", Redaction::nothing(), Value::Null);
        let (mut all, mut files) = (Segments::new(header, bound), Files::new());
        let mut ended = false;
        for size in sizes {
            let mut out = Outputs::new();
            ended |= !all.push(record(usize::from(size % 4_000) + 1), &mut out);
            for write in out {
                match write {
                    Write::Begin(n) => {
                        assert_eq!(n, files.last().map_or(n, |(last, _)| last + 1));
                        files.push((n, Vec::new()));
                    }
                    Write::Append(bytes) => files.last_mut().unwrap().1.extend(bytes),
                    Write::Remove(n) => assert_eq!(files.remove(0).0, n, "the oldest goes"),
                }
                let bytes: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
                let end = if ended { 2 * crate::limits::RECORDING_END as u64 } else { 0 };
                assert!(bytes <= most + end, "{bytes} bytes in {files:?}, {bound:?}");
                assert!(files.len() as u64 <= bound.segments.max(1), "{bound:?}");
                assert!(!beginning || files[0].0 == 0);
            }
        }
        true
    };
    cases(300).quickcheck(property as fn(Vec<u16>, u16, u8, bool) -> bool);
}

#[test]
fn a_record_that_no_bound_holds_ends_the_recording_with_its_reason() {
    let header = || Header::new(Kind::Manager, "m", Redaction::nothing(), Value::Null);
    let most = crate::limits::RECORD_BYTES;
    for (bytes, bound, why) in [
        (6_000, Bound { segment: 2_000, segments: 3, keep: Keep::Latest }, "fit into the bound of 6000"),
        (most + 1, Bound::default(), "a record of 67108865 bytes is longer than 67108864"),
    ] {
        let (mut all, mut out) = (Segments::new(header(), bound), Outputs::new());
        assert!(!all.push(record(bytes), &mut out));
        let bytes: Vec<u8> = out
            .drain()
            .filter_map(|w| if let Write::Append(b) = w { Some(b) } else { None })
            .flatten()
            .collect();
        let end = Recording::read([&*bytes]).unwrap().end;
        assert!(matches!(&end, End::Ended(text) if text.contains(why)), "{end:?}");
        assert!(!all.push(record(10), &mut out) && out.is_empty());
    }
    // However long the reason is.
    let (mut all, mut out) = (Segments::new(header(), Bound::default()), Outputs::new());
    all.end(&"é".repeat(10_000), &mut out);
    let longest = out.drain().map(|w| if let Write::Append(b) = w { b.len() } else { 0 }).max().unwrap();
    assert!(longest < crate::limits::RECORDING_END + 100, "{longest}");
}
