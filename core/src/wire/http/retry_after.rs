//! `Retry-After`.

use core::time::Duration;

use super::ResponseHead;
use crate::limits;

/// How long the server asks to wait, at most [`limits::RETRY_AFTER_MAX`].
///
/// Whole seconds, or a date counted from the response's own `Date` (so no clock is needed). Anything else is as good as
/// no header: client-go takes whole seconds only.
///
/// ```
/// # use steersman_core::wire::http::{retry_after, ResponseHead};
/// # use core::time::Duration;
/// let headers = vec![("Retry-After".into(), "5".into())];
/// let head = ResponseHead { status: 429, reason: String::new(), http10: false, headers };
/// assert_eq!(retry_after(&head), Some(Duration::from_secs(5)));
/// ```
#[must_use]
pub fn retry_after(head: &ResponseHead) -> Option<Duration> {
    let value = head.header("retry-after")?.trim_matches([' ', '\t']);
    let seconds = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are simply a long time.
        value.parse().unwrap_or(u64::MAX)
    } else {
        let now = http_date(head.header("date")?)?;
        http_date(value)?.saturating_sub(now)
    };
    Some(Duration::from_secs(seconds).min(limits::RETRY_AFTER_MAX))
}

/// Seconds since 1970 of `Wed, 18 Sep 2024 15:17:16 GMT` (RFC 9110 5.6.7, the only form that is still sent).
fn http_date(text: &str) -> Option<u64> {
    let (_, rest) = text.trim_matches([' ', '\t']).split_once(", ")?;
    let mut fields = rest.split(' ');
    let (day, month, year, clock, zone) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    if zone != "GMT" || fields.next().is_some() {
        return None;
    }
    let number = |text: &str, digits: usize| -> Option<u64> {
        (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|m| *m == month)? as u64 + 1;
    let (day, year) = (number(day, 2)?, number(year, 4)?);
    let mut parts = clock.split(':');
    let (h, m, s) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    if parts.next().is_some() || year < 1970 || !(1..=31).contains(&day) || h > 23 || m > 59 || s > 60 {
        return None;
    }
    // Days since 1970-03-01-based years, so that the leap day is the last of its year.
    let (y, m0) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m0 + 2) / 5 + day - 1;
    let seconds = days.checked_sub(719_468)? * 86_400;
    Some(seconds + h * 3600 + m * 60 + s)
}
