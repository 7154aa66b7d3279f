//! Lists: any bytes, whole and in pieces.

use steersman_core::wire::list::{ListHead, ListSplitter};
use steersman_core::wire::{Piece, WireError, run::Run};

use crate::cuts::{object, ragged, seed};

fn split(parts: &[&[u8]], limit: usize) -> (Run, Result<ListHead, WireError>) {
    take(parts, limit, false)
}

/// `ahead`: what is an object is read before its end is looked for.
fn take(parts: &[&[u8]], limit: usize, ahead: bool) -> (Run, Result<ListHead, WireError>) {
    let mut splitter = ListSplitter::new(limit);
    let mut run = Run::new();
    for part in parts {
        let mut input = *part;
        loop {
            if ahead && let Some(object) = splitter.read(&mut input, object) {
                run.push(Piece::Value(object));
                continue;
            }
            match splitter.next(&mut input) {
                Ok(Some(piece)) => {
                    match piece {
                        Piece::Value(value) => assert!(!value.is_empty() && value.len() <= limit),
                        Piece::TooLong { bytes, .. } => assert!(bytes > limit as u64),
                        other => panic!("a list holds no {other:?}"),
                    }
                    run.push(piece);
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(splitter.finish(), Err(error.clone()), "an error stays");
                    return (run, Err(error));
                }
            }
        }
        assert!(input.is_empty(), "the input is used up");
    }
    (run, splitter.finish())
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
}
