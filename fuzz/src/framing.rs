//! Watch frames: any bytes, whole and in pieces; and collected in a run that is split.

use steersman_core::wire::Piece;
use steersman_core::wire::framing::FrameSplitter;
use steersman_core::wire::run::Run;

use crate::cuts::{object, ragged, seed};

fn split(parts: &[&[u8]], limit: usize) -> Run {
    take(parts, limit, false)
}

/// `ahead`: what is an object is read before its end is looked for.
fn take(parts: &[&[u8]], limit: usize, ahead: bool) -> Run {
    let mut splitter = FrameSplitter::new(limit);
    let mut run = Run::new();
    for part in parts {
        let mut input = *part;
        loop {
            if ahead && let Some(object) = splitter.read(&mut input, object) {
                run.push(Piece::Value(object));
                continue;
            }
            let Some(piece) = splitter.next(&mut input) else { break };
            run.push(piece);
        }
        assert!(input.is_empty(), "the input is used up");
        assert!(splitter.buffered() <= limit.max(Piece::START_BYTES));
    }
    splitter.finish().into_iter().for_each(|piece| run.push(piece));
    run
}

/// The first byte sets the limit, the second how to cut.
pub fn run(data: &[u8]) {
    let Some((limit, cut, bytes)) = seed(data) else { return };
    let limit = 8 + 16 * usize::from(limit);
    let whole = split(&[bytes], limit);
    assert_eq!(whole, split(&bytes.chunks(1).collect::<Vec<_>>(), limit));
    assert_eq!(whole, split(&ragged(bytes, cut), limit));
    assert_eq!(whole, take(&[bytes], limit, true));
    assert_eq!(whole, take(&ragged(bytes, cut), limit, true));
    let mut kept = 0;
    for piece in whole.all().iter() {
        kept += piece.bytes().len();
        match piece {
            Piece::Value(value) => {
                assert!(value.len() <= limit);
                assert!(matches!(value, [b'{' | b'[', .., b'}' | b']']));
                // A value comes out of itself unchanged.
                let again = split(&[value], limit);
                assert!(again.all().iter().eq([Piece::Value(value)]));
            }
            Piece::TooLong { bytes, .. } => assert!(bytes > limit as u64),
            Piece::Garbage(start) | Piece::Truncated(start) => assert!(start.len() <= Piece::START_BYTES),
            _ => {}
        }
    }
    assert!(kept <= bytes.len(), "nothing comes out twice");
    let mut joined = vec![];
    for range in whole.cut(usize::from(cut % 9)) {
        joined.extend(whole.part(range).iter());
    }
    assert!(whole.all().iter().eq(joined));
}
