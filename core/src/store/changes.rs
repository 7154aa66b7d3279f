//! The differences that a source tells at once.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::{fmt, slice};

use super::{Change, Kept};
use crate::object::{Key, Resource};

/// Differences in order. Cheap to clone.
///
/// Objects of a compact store are packed in here as well, and unpacked one by one as they are asked for.
///
/// ```
/// use steersman_core::object::Object;
/// use steersman_core::store::{Change, Changes};
/// let new = Object::from_json(br#"{"metadata":{"name":"a"}}"#)?;
/// let changes = Changes::from([Change::Added { new, initial: true }]);
/// for change in &changes {
///     assert!(matches!(change, Change::Added { new, .. } if new.name() == "a"));
/// }
/// # Ok::<(), steersman_core::object::ObjectError>(())
/// ```
pub struct Changes<T>(Arc<[Change<Kept<T>>]>);

impl<T> Changes<T> {
    pub(crate) fn of_kept(changes: impl Iterator<Item = Change<Kept<T>>>) -> Self {
        Self(changes.collect())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that were added; nothing else is unpacked.
    pub(crate) fn added(&self) -> impl Iterator<Item = T>
    where
        T: Resource,
    {
        self.0.iter().filter_map(|change| match change {
            Change::Added { new, .. } => Some(new.get()),
            Change::Updated { .. } | Change::Deleted { .. } => None,
        })
    }

    /// Those that are gone; nothing else is unpacked.
    pub(crate) fn deleted(&self) -> impl Iterator<Item = T>
    where
        T: Resource,
    {
        self.0.iter().filter_map(|change| match change {
            Change::Deleted { old, .. } => Some(old.get()),
            Change::Added { .. } | Change::Updated { .. } => None,
        })
    }

    /// What each is and the key that it is about, in order: no object is handed out for it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (Change<()>, Key)>
    where
        T: Resource,
    {
        self.0.iter().map(|change| match change {
            Change::Added { new, initial } => (Change::Added { new: (), initial: *initial }, new.key()),
            Change::Updated { new, relisted, .. } => {
                (Change::Updated { old: (), new: (), relisted: *relisted }, new.key())
            }
            Change::Deleted { old, final_unknown } => {
                (Change::Deleted { old: (), final_unknown: *final_unknown }, old.key())
            }
        })
    }

    /// Them, in order.
    #[must_use]
    pub fn iter(&self) -> ChangesIter<'_, T> {
        ChangesIter(self.0.iter())
    }
}

impl<T> Clone for Changes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter()).finish()
    }
}

impl<T> FromIterator<Change<T>> for Changes<T> {
    fn from_iter<I: IntoIterator<Item = Change<T>>>(changes: I) -> Self {
        let kept = changes.into_iter().map(|change| match change {
            Change::Added { new, initial } => Change::Added { new: Kept::Whole(new), initial },
            Change::Updated { old, new, relisted } => {
                Change::Updated { old: Kept::Whole(old), new: Kept::Whole(new), relisted }
            }
            Change::Deleted { old, final_unknown } => {
                Change::Deleted { old: Kept::Whole(old), final_unknown }
            }
        });
        Self(kept.collect())
    }
}

impl<T> From<Vec<Change<T>>> for Changes<T> {
    fn from(changes: Vec<Change<T>>) -> Self {
        changes.into_iter().collect()
    }
}

impl<T, const N: usize> From<[Change<T>; N]> for Changes<T> {
    fn from(changes: [Change<T>; N]) -> Self {
        changes.into_iter().collect()
    }
}

impl<'a, T: Resource> IntoIterator for &'a Changes<T> {
    type Item = Change<T>;
    type IntoIter = ChangesIter<'a, T>;

    fn into_iter(self) -> ChangesIter<'a, T> {
        self.iter()
    }
}

/// Differences in order, of whole objects.
#[derive(Clone, Debug)]
pub struct ChangesIter<'a, T>(slice::Iter<'a, Change<Kept<T>>>);

impl<T: Resource> Iterator for ChangesIter<'_, T> {
    type Item = Change<T>;

    fn next(&mut self) -> Option<Change<T>> {
        self.0.next().map(|change| change.clone().whole())
    }

    // What is passed over need not be unpacked.
    fn nth(&mut self, n: usize) -> Option<Change<T>> {
        self.0.nth(n).map(|change| change.clone().whole())
    }

    fn count(self) -> usize {
        self.0.len()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T: Resource> DoubleEndedIterator for ChangesIter<'_, T> {
    fn next_back(&mut self) -> Option<Change<T>> {
        self.0.next_back().map(|change| change.clone().whole())
    }
}

impl<T: Resource> ExactSizeIterator for ChangesIter<'_, T> {}
