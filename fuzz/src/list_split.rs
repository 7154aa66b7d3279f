//! Lists: any bytes, whole and in pieces.

use steersman_core::wire::list::{ListHead, ListSplitter};
use steersman_core::wire::{Piece, WireError, run::Run};

use crate::cuts::{ragged, seed};

fn split(parts: &[&[u8]], limit: usize) -> (Run, Result<ListHead, WireError>) {
    let mut splitter = ListSplitter::new(limit);
    let mut run = Run::new();
    for part in parts {
        let mut input = *part;
        loop {
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
}
