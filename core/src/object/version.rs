//! The order of resource versions (KEP-5504, stable since Kubernetes 1.35; apimachinery `util/resourceversion`).

use core::cmp::Ordering;

/// Which of two resource versions of one resource is the later one.
///
/// A well-formed version is a decimal number without a leading zero, of any length; `0` and the empty string are none.
/// Others are opaque: they are equal or not to be compared (`None`). Versions of different resources, of different
/// clusters, or from before and after a restore of etcd have no order either, which nobody can see from the outside.
///
/// ```
/// use core::cmp::Ordering;
/// use steersman_core::object::version::compare;
/// assert_eq!(compare("9", "10"), Some(Ordering::Less));
/// assert_eq!(compare("7", "7"), Some(Ordering::Equal));
/// assert_eq!(compare("07", "8"), None);
/// assert_eq!(compare("", "8"), None);
/// assert_eq!(compare("opaque", "opaque"), Some(Ordering::Equal));
/// ```
#[must_use]
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    if is_number(a) && is_number(b) {
        return Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    }
    (a == b && !a.is_empty()).then_some(Ordering::Equal)
}

/// Whether someone who knows the state at `current` learns something from one at `new`: it is later, or the two cannot
/// be compared and differ. An empty `new` says nothing; after an empty `current` everything is new.
///
/// ```
/// use steersman_core::object::version::is_above;
/// assert!(is_above("10", "9") && is_above("9", "") && is_above("b", "a"));
/// assert!(!is_above("9", "10") && !is_above("9", "9") && !is_above("", "9"));
/// ```
#[must_use]
pub fn is_above(new: &str, current: &str) -> bool {
    !new.is_empty()
        && match compare(new, current) {
            Some(order) => order == Ordering::Greater,
            None => true,
        }
}

/// Whether `version` is a number that can be compared with others.
#[must_use]
pub fn is_number(version: &str) -> bool {
    !version.is_empty() && !version.starts_with('0') && version.bytes().all(|b| b.is_ascii_digit())
}
