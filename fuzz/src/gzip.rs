//! The inflater: any bytes as gzip, whole and in pieces; and what was packed comes out again.

use miniz_oxide::deflate::compress_to_vec;
use steersman_core::wire::WireError;
use steersman_core::wire::gzip::{Gunzip, GzipLimits, WINDOW_BYTES};

use crate::cuts::{ragged, seed};

const LIMITS: GzipLimits = GzipLimits { ratio: 100, free_bytes: 100_000, head_bytes: 300 };

fn gunzip(parts: &[&[u8]]) -> (Vec<u8>, Result<(), WireError>) {
    let mut gunzip = Gunzip::new(LIMITS);
    let mut out = vec![];
    let mut taken = 0;
    for part in parts {
        let mut input = *part;
        loop {
            match gunzip.next(&mut input) {
                Ok(Some(bytes)) => {
                    assert!(!bytes.is_empty() && bytes.len() <= WINDOW_BYTES);
                    out.extend_from_slice(bytes);
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(gunzip.next(&mut input), Err(error.clone()), "an error stays");
                    assert_eq!(gunzip.eof(), Err(error.clone()));
                    return (out, Err(error));
                }
            }
        }
        assert!(input.is_empty(), "the input is used up");
        taken += part.len() as u64;
        let bound = LIMITS.free_bytes + taken * u64::from(LIMITS.ratio) + 2 * WINDOW_BYTES as u64;
        assert!(out.len() as u64 <= bound, "the ratio holds");
    }
    (out, gunzip.eof())
}

fn agree(bytes: &[u8], cut: u8) -> (Vec<u8>, Result<(), WireError>) {
    let whole = gunzip(&[bytes]);
    assert!(whole == gunzip(&bytes.chunks(1).collect::<Vec<_>>()));
    assert!(whole == gunzip(&ragged(bytes, cut)));
    whole
}

/// The checksum, one bit at a time: another way than the one that is tested.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1)))
    })
}

/// The first byte says how the bytes are meant: as gzip; as the deflated data of one member, with a right header; or as
/// text to be packed. The second how to cut.
pub fn run(data: &[u8]) {
    let Some((mode, cut, bytes)) = seed(data) else { return };
    let head = *b"\x1f\x8b\x08\0\0\0\0\0\0\xff";
    match mode % 3 {
        0 => {
            let (out, end) = agree(bytes, cut);
            if end.is_ok() {
                // Twice the bytes, twice what is in them; unless zeros or the ratio end it.
                let (twice, end) = gunzip(&[bytes, bytes]);
                assert!(end.is_err() || twice == out.repeat(2));
            }
        }
        1 => drop(agree(&[&head, bytes].concat(), cut)),
        _ => {
            let mut packed = vec![];
            for part in bytes.chunks(usize::from(mode) + 1) {
                packed.extend_from_slice(&head);
                packed.extend(compress_to_vec(part, mode / 3 % 10));
                packed.extend_from_slice(&crc32(part).to_le_bytes());
                packed.extend_from_slice(&(part.len() as u32).to_le_bytes());
            }
            let (out, end) = agree(&packed, cut);
            assert!(end.is_ok() && out == bytes);
        }
    }
}
