//! Wall-clock time as RFC 3339 text, without a clock.

use steersman_core::time::UnixMillis;

/// `2026-11-30T04:04:41Z`: whole seconds, as `metav1.Time` is written.
#[must_use]
pub(crate) fn rfc3339(wall: UnixMillis) -> String {
    let secs = wall.0.div_euclid(1000);
    let (days, rest) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (y, m, d) = civil(days);
    format!("{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// `Mon, 30 Nov 2026 04:05:37 GMT`, for the `Date` header.
#[must_use]
pub(crate) fn http_date(wall: UnixMillis) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let secs = wall.0.div_euclid(1000);
    let (days, rest) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (y, m, d) = civil(days);
    let at = |n: i64| usize::try_from(n).unwrap_or(0);
    let (day, month) = (DAYS[at(days.rem_euclid(7))], MONTHS[at(m - 1)]);
    format!("{day}, {d:02} {month} {y:04} {:02}:{:02}:{:02} GMT", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Seconds since 1970 of `2026-11-30T04:04:41Z` (a fraction is cut off); `None` for anything else.
#[must_use]
pub(crate) fn parse_rfc3339(s: &str) -> Option<i64> {
    let b = s.as_bytes();
    if b.len() < 20 || *b.last()? != b'Z' {
        return None;
    }
    let num = |r: core::ops::Range<usize>| s.get(r)?.parse::<i64>().ok();
    let (y, mo, d) = (num(0..4)?, num(5..7)?, num(8..10)?);
    let (h, mi, sec) = (num(11..13)?, num(14..16)?, num(17..19)?);
    if !(1..=12).contains(&mo) || !(1..=31).contains(&d) {
        return None;
    }
    Some(days(y, mo, d) * 86_400 + h * 3600 + mi * 60 + sec)
}

/// How `kubectl` shows an age: `5s`, `2m14s`, `3h5m`, `2d3h`, `12d`, `2y30d`.
#[must_use]
pub(crate) fn human(secs: i64) -> String {
    let s = secs.max(0);
    let (m, h, d) = (s / 60, s / 3600, s / 86_400);
    let two = |a: i64, ua: &str, b: i64, ub: &str| {
        if b == 0 { format!("{a}{ua}") } else { format!("{a}{ua}{b}{ub}") }
    };
    match s {
        0..120 => format!("{s}s"),
        120..600 => two(m, "m", s % 60, "s"),
        600..10_800 => format!("{m}m"),
        10_800..28_800 => two(h, "h", m % 60, "m"),
        28_800..172_800 => format!("{h}h"),
        172_800..691_200 => two(d, "d", h % 24, "h"),
        _ if d < 365 * 2 => format!("{d}d"),
        _ if d < 365 * 8 => two(d / 365, "y", d % 365, "d"),
        _ => format!("{}y", d / 365),
    }
}

// Howard Hinnant's algorithms, "chrono-Compatible Low-Level Date Algorithms".
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let d = doy - (153 * mp + 2) / 5 + 1;
    let m = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(m <= 2), m, d)
}

fn days(y: i64, m: i64, d: i64) -> i64 {
    let y = if m <= 2 { y - 1 } else { y };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let mp = (m + 9) % 12;
    let doy = (153 * mp + 2) / 5 + d - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(rfc3339(UnixMillis(0)), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(UnixMillis(1_709_210_096_999)), "2024-02-29T12:34:56Z");
        assert_eq!(http_date(UnixMillis(1_709_210_096_999)), "Thu, 29 Feb 2024 12:34:56 GMT");
        assert_eq!(parse_rfc3339("2024-02-29T12:34:56Z"), Some(1_709_210_096));
        assert_eq!(parse_rfc3339("2024-02-29T12:34:56.123456Z"), Some(1_709_210_096));
        assert_eq!(parse_rfc3339("yesterday"), None);
        for day in (-100_000i64..200_000).step_by(37) {
            let text = rfc3339(UnixMillis(day * 86_400_000));
            if day > -700_000 && text.len() == 20 {
                assert_eq!(parse_rfc3339(&text), Some(day * 86_400), "{text}");
            }
        }
    }

    #[test]
    fn ages_as_kubectl_shows_them() {
        let shown: Vec<String> =
            [0, 119, 134, 599, 600, 10_800, 11_100, 100_000, 180_000, 333 * 86_400].map(human).into();
        assert_eq!(shown, ["0s", "119s", "2m14s", "9m59s", "10m", "3h", "3h5m", "27h", "2d2h", "333d"]);
    }
}
