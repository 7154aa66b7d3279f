//! The dates of a certificate. webpki checks them on the way to an authority and shows them to nobody; a certificate
//! that is trusted for itself has no such way.

/// One DER element: tag, content, rest.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let n = usize::from(first & 0x7f);
        if n == 0 || n > 4 || rest.len() < n {
            return None;
        }
        let (digits, rest) = rest.split_at(n);
        (digits.iter().fold(0usize, |len, b| (len << 8) | usize::from(*b)), rest)
    };
    (rest.len() >= len).then(|| (tag, &rest[..len], &rest[len..]))
}

/// `notBefore` and `notAfter` in seconds since 1970.
pub(super) fn validity(cert: &[u8]) -> Option<(i64, i64)> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let (SEQUENCE, cert, _) = element(cert)? else { return None };
    let (SEQUENCE, mut tbs, _) = element(cert)? else { return None };
    if let (VERSION, _, rest) = element(tbs)? {
        tbs = rest;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        tbs = element(tbs)?.2;
    }
    let (SEQUENCE, dates, _) = element(tbs)? else { return None };
    let (tag, from, dates) = element(dates)?;
    let (tag2, to, _) = element(dates)?;
    Some((time(tag, from)?, time(tag2, to)?))
}

/// `UTCTime` (`YYMMDDHHMMSSZ`) or `GeneralizedTime` (`YYYYMMDDHHMMSSZ`), RFC 5280 4.1.2.5.
fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0i64, |n, b| n * 10 + i64::from(b - b'0'));
    let (year, rest) = match (tag, digits.len()) {
        (0x17, 12) => {
            let yy = number(&digits[..2]);
            (if yy < 50 { 2000 + yy } else { 1900 + yy }, &digits[2..])
        }
        (0x18, 14) => (number(&digits[..4]), &digits[4..]),
        _ => return None,
    };
    let part = |n: usize| number(&rest[2 * n..2 * n + 2]);
    let (month, day) = (part(0), part(1));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days(year, month, day) * 86_400 + part(2) * 3_600 + part(3) * 60 + part(4))
}

/// Days since 1970-01-01 (Howard Hinnant, `days_from_civil`).
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(time(0x17, b"700101000000Z"), Some(0));
        assert_eq!(time(0x17, b"260131235959Z"), Some(1_769_903_999));
        assert_eq!(time(0x17, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(0x18, b"20500101000000Z"), Some(2_524_608_000));
        assert_eq!(time(0x18, b"20000229120000Z"), Some(951_825_600));
        for bad in [&b"260131235959"[..], b"2601312359Z", b"26o131235959Z", b"261331235959Z", b"Z", b""] {
            assert_eq!(time(0x17, bad), None);
        }
        assert_eq!(time(0x02, b"700101000000Z"), None);
    }

    #[test]
    fn any_bytes_give_an_answer() {
        fn answer(bytes: std::vec::Vec<u8>) -> bool {
            let _ = validity(&bytes);
            true
        }
        quickcheck::quickcheck(answer as fn(std::vec::Vec<u8>) -> bool);
        assert_eq!(validity(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(validity(&[0x30, 0x80]), None);
    }
}
