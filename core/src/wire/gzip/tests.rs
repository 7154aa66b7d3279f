use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::{DataFormat, MZFlush};
use quickcheck::quickcheck;

use super::crc::crc32;
use super::{FCOMMENT, FEXTRA, FHCRC, FNAME, Gunzip, GzipLimits, WINDOW_BYTES};
use crate::wire::WireError;

/// `parts`, each ended with a sync flush.
fn deflated(parts: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(6, -15, 0));
    compressor.set_format_and_level(DataFormat::Raw, 6);
    let mut run = |input: &[u8], flush| {
        let mut out = vec![0; input.len() + input.len() / 8 + 200];
        let result = deflate(&mut compressor, input, &mut out, flush);
        assert_eq!(result.bytes_consumed, input.len());
        out.truncate(result.bytes_written);
        out
    };
    let mut out: Vec<_> = parts.iter().map(|part| run(part, MZFlush::Sync)).collect();
    out.push(run(&[], MZFlush::Finish));
    out
}

fn header(flags: u8) -> Vec<u8> {
    vec![0x1F, 0x8B, 8, flags, 1, 2, 3, 4, 0, 255]
}

fn trailer(content: &[u8]) -> Vec<u8> {
    [crc32(0, content).to_le_bytes(), (content.len() as u32).to_le_bytes()].concat()
}

/// What a server sends for `content`.
pub(crate) fn member(content: &[u8]) -> Vec<u8> {
    [header(0), deflated(&[content]).concat(), trailer(content)].concat()
}

/// What comes out of `parts`, and what their end says.
fn gunzip(parts: &[&[u8]], limits: GzipLimits) -> (Vec<u8>, Result<(), WireError>) {
    let mut gunzip = Gunzip::new(limits);
    let mut out = vec![];
    for part in parts {
        let mut input = *part;
        loop {
            match gunzip.next(&mut input) {
                Ok(Some(bytes)) => {
                    assert!(!bytes.is_empty());
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
    }
    (out, gunzip.eof())
}

/// The same however it is cut.
fn check(bytes: &[u8]) -> (Vec<u8>, Result<(), WireError>) {
    let whole = gunzip(&[bytes], GzipLimits::DEFAULT);
    assert!(whole == gunzip(&bytes.chunks(1).collect::<Vec<_>>(), GzipLimits::DEFAULT), "byte by byte");
    for cut in (0..=bytes.len()).step_by(bytes.len() / 200 + 1) {
        let (a, b) = bytes.split_at(cut);
        assert!(whole == gunzip(&[a, b], GzipLimits::DEFAULT), "cut at {cut}");
    }
    whole
}

fn fault(bytes: &[u8]) -> WireError {
    check(bytes).1.unwrap_err()
}

#[test]
fn the_checksum_is_that_of_gzip() {
    // The check value of the catalogue of CRC algorithms.
    assert_eq!(crc32(0, b"123456789"), 0xCBF4_3926);
    let bytes: Vec<u8> = (0..100u8).collect();
    for cut in 0..100 {
        assert_eq!(crc32(crc32(0, &bytes[..cut]), &bytes[cut..]), crc32(0, &bytes));
    }
}

#[test]
fn what_gzip_itself_wrote() {
    // printf '{"kind":"PodList","items":[]}' | gzip -n9
    let bytes = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xca\xce\xcc\x4b\x51\xb2\x52\x0a\xc8\x4f\xf1\xc9\x2c\
        \x2e\x51\xd2\x51\xca\x2c\x49\xcd\x2d\x56\xb2\x8a\x8e\xad\x05\x00\x79\x35\xee\x81\x1d\x00\x00\x00";
    let (out, end) = check(bytes);
    assert_eq!((out.as_slice(), end), (b"{\"kind\":\"PodList\",\"items\":[]}".as_slice(), Ok(())));
}

#[test]
fn a_flush_gives_out_all_that_came_before_it() {
    let events: Vec<_> =
        (0..20).map(|i| format!("{{\"type\":\"ADDED\",\"object\":{{\"n\":{i}}}}}\n")).collect();
    let parts: Vec<_> = events.iter().map(|e| e.as_bytes()).collect();
    let flushed = deflated(&parts);
    let mut one = Gunzip::new(GzipLimits::DEFAULT);
    assert_eq!(one.next(&mut header(0).as_slice()), Ok(None));
    // One member an event, as a server with a compressor for each write has it.
    let mut many = Gunzip::new(GzipLimits::DEFAULT);
    let all = |gunzip: &mut Gunzip, bytes: &[u8]| {
        let (mut input, mut out) = (bytes, vec![]);
        while let Some(piece) = gunzip.next(&mut input).unwrap() {
            out.extend_from_slice(piece);
        }
        out
    };
    for (event, flushed) in parts.iter().zip(&flushed) {
        assert_eq!(all(&mut one, flushed), *event);
        assert_eq!(all(&mut many, &member(event)), *event);
    }
    assert_eq!(one.eof(), Err(WireError::Truncated("a gzip body")));
}

#[test]
fn members_headers_and_padding() {
    let named = |flags: u8| {
        let mut head = header(flags);
        if flags & FEXTRA != 0 {
            head.extend_from_slice(b"\x05\0extra");
        }
        if flags & FNAME != 0 {
            head.extend_from_slice(b"name\0");
        }
        if flags & FCOMMENT != 0 {
            head.extend_from_slice(b"\0");
        }
        if flags & FHCRC != 0 {
            let crc = crc32(0, &head) as u16;
            head.extend_from_slice(&crc.to_le_bytes());
        }
        [head, deflated(&[b"abc"]).concat(), trailer(b"abc")].concat()
    };
    let mut all = vec![];
    for flags in 0..32 {
        let bytes = named(flags);
        assert_eq!(check(&bytes), (b"abc".to_vec(), Ok(())), "flags {flags}");
        all.extend(bytes);
    }
    assert_eq!(check(&all), (b"abc".repeat(32), Ok(())));
    all.extend([0; 100]);
    assert_eq!(check(&all), (b"abc".repeat(32), Ok(())));
    all.push(0x1F);
    assert_eq!(fault(&all), WireError::Gzip("something follows the zeros at the end"));
    let mut empty_extra = header(FEXTRA);
    empty_extra.extend([0, 0]);
    let empty_extra = [empty_extra, deflated(&[b""]).concat(), trailer(b"")].concat();
    assert_eq!(check(&empty_extra), (vec![], Ok(())));
    assert_eq!(check(b""), (vec![], Ok(())));
}

#[test]
fn what_is_no_gzip_says_what_is_wrong() {
    let good = member(b"hello, hello, hello");
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        fault(&bytes)
    };
    let n = good.len();
    assert_eq!(with(0, b'{'), WireError::Gzip("it does not begin as gzip does"));
    assert_eq!(with(1, b'"'), WireError::Gzip("it does not begin as gzip does"));
    assert_eq!(with(2, 7), WireError::Gzip("unknown compression method"));
    assert_eq!(with(3, 0x20), WireError::Gzip("unknown flags"));
    assert_eq!(with(10, 7), WireError::Gzip("the data make no sense"));
    assert_eq!(with(n - 8, !good[n - 8]), WireError::Gzip("the checksum is wrong"));
    assert_eq!(with(n - 1, 1), WireError::Gzip("the length is wrong"));
    let more = [good.as_slice(), b"HTTP"].concat();
    assert_eq!(
        check(&more),
        (b"hello, hello, hello".to_vec(), Err(WireError::Gzip("something else follows a member")))
    );
    let mut crc = header(FHCRC);
    crc.extend([0, 0]);
    assert_eq!(fault(&crc), WireError::Gzip("the checksum of the header is wrong"));
    for cut in 1..n {
        let place = if cut < 10 { "a gzip header" } else { "a gzip body" };
        assert_eq!(fault(&good[..cut]), WireError::Truncated(place), "cut at {cut}");
    }
}

#[test]
fn limits_hold() {
    let mut named = header(FNAME);
    named.extend(vec![b'x'; GzipLimits::DEFAULT.head_bytes]);
    let endless = Err(WireError::Gzip("endless header"));
    assert_eq!(gunzip(&[&named], GzipLimits::DEFAULT).1, endless);
    assert_eq!(gunzip(&named.chunks(1000).collect::<Vec<_>>(), GzipLimits::DEFAULT).1, endless);
    let bomb = member(&vec![0; 2 << 20]);
    let (out, end) = gunzip(&[&bomb], GzipLimits::DEFAULT);
    assert_eq!(end, Err(WireError::GzipRatio(400)));
    assert!(
        out.len() as u64 <= GzipLimits::DEFAULT.free_bytes + 400 * bomb.len() as u64 + WINDOW_BYTES as u64
    );
    assert!(gunzip(&[&bomb], GzipLimits { ratio: 2000, ..GzipLimits::DEFAULT }).1.is_ok());
    // A small answer may be as even as it likes.
    assert!(gunzip(&[&member(&vec![b' '; 1 << 19])], GzipLimits::DEFAULT).1.is_ok());
}

#[test]
fn one_member_tells_nothing_of_another() {
    // A copy of three bytes from eleven back, where nothing has been written yet.
    let secret = member(b"hello secret");
    let fixed_match = [0b1000_0011, 0b0110_0000, 0, 0];
    let bad = [secret.clone(), header(0), fixed_match.to_vec(), vec![0; 20]].concat();
    let (out, end) = check(&bad);
    assert!(end.is_err());
    assert!(out[12..].iter().all(|b| *b == 0), "{:?}", &out[12..]);
}

quickcheck! {
    fn what_was_packed_comes_out(parts: Vec<Vec<u8>>, cuts: Vec<u8>, repeat: u8) -> bool {
        // Some of it longer than the window.
        let mut parts = parts;
        parts.truncate(20);
        if let Some(part) = parts.first_mut() {
            *part = part.repeat(usize::from(repeat) * 3);
        }
        let parts: Vec<_> = parts.iter().map(Vec::as_slice).collect();
        let all = parts.concat();
        let mut bytes = [header(0), deflated(&parts).concat(), trailer(&all)].concat();
        bytes.extend(member(&all));
        let mut rest = bytes.as_slice();
        let mut pieces = vec![];
        for cut in cuts {
            let (piece, after) = rest.split_at(usize::from(cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        let (out, end) = gunzip(&pieces, GzipLimits { ratio: 2000, ..GzipLimits::DEFAULT });
        end.is_ok() && out == [all.as_slice(), &all].concat()
    }
}
