use alloc::vec::Vec;

use quickcheck::quickcheck;

use super::{Part, Piece, Run};

fn run_of(pieces: &[Vec<u8>]) -> Run {
    let mut run = Run::new();
    for p in pieces {
        run.push(Piece::Value(p));
    }
    run
}

fn by_halves(part: Part<'_>, out: &mut Vec<Vec<u8>>, depth: u32) {
    match part.split() {
        Some((a, b)) if depth > 0 => {
            assert!(!a.is_empty() && !b.is_empty());
            by_halves(a, out, depth - 1);
            by_halves(b, out, depth - 1);
        }
        _ => out.extend(part.map(|p| p.bytes().to_vec())),
    }
}

quickcheck! {
    fn halves_joined_are_the_whole(pieces: Vec<Vec<u8>>, depth: u8) -> bool {
        let run = run_of(&pieces);
        let mut out = Vec::new();
        by_halves(run.all(), &mut out, u32::from(depth % 6));
        out == pieces
    }

    fn cuts_joined_are_the_whole(pieces: Vec<Vec<u8>>, n: u8) -> bool {
        let run = run_of(&pieces);
        let cuts = run.cut(usize::from(n));
        assert!(cuts.len() <= usize::from(n).max(1) && cuts.iter().all(|c| !c.is_empty()));
        let joined: Vec<_> = cuts.iter().flat_map(|c| run.part(c.clone()).map(|p| p.bytes().to_vec())).collect();
        joined == pieces
    }
}

#[test]
fn halves_are_about_equal() {
    let pieces: Vec<_> = (0..100).map(|i| alloc::vec![b'x'; if i < 10 { 900 } else { 10 }]).collect();
    let run = run_of(&pieces);
    let (a, b) = run.all().split().unwrap();
    assert!(a.byte_len().abs_diff(b.byte_len()) <= 1800, "{} {}", a.byte_len(), b.byte_len());
    let sizes: Vec<_> = run.cut(4).into_iter().map(|r| run.part(r).byte_len()).collect();
    assert!(sizes.len() == 4 && sizes.iter().all(|s| (1500..3400).contains(s)), "{sizes:?}");
}

#[test]
fn all_kinds_survive() {
    let pieces = [
        Piece::Value(b"{}"),
        Piece::Garbage(b"<html>"),
        Piece::TooLong { bytes: 99, start: b"{\"a" },
        Piece::Truncated(b"{"),
    ];
    let mut run = Run::new();
    pieces.iter().for_each(|p| run.push(*p));
    assert_eq!(run.all().iter().collect::<Vec<_>>(), pieces);
    run.clear();
    assert!(run.is_empty() && run.all().split().is_none() && run.cut(3).is_empty());
}
