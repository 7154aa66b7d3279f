//! Packs objects, and learns from those that come what to pack them against.
//!
//! What is found nowhere of an object is noted. What is found again in another one is known from then on, the rest is forgotten.
//! What is known becomes the dictionary as soon as the objects that came meanwhile would have saved by it as much as it costs to
//! have it: each dictionary is a copy, for objects that were packed against an older one still need that. When there is no more
//! room, and most of what comes is still unknown (somebody has changed all objects since), learning begins anew.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::codec::{Found, Places, Stamp, Work};
use super::{Dictionary, Kept, Packed};
use crate::limits::{self, DICTIONARY_BYTES};
use crate::object::Resource;

/// An object of which more than this part was found nowhere has something to teach.
const UNKNOWN_PART: usize = 16;
/// Shorter pieces teach nothing.
const LEAST_PIECE: usize = 16;
/// Pieces are learned with what is between them, if that is less than this.
const BETWEEN: usize = 48;
/// An object that packing does not make shorter by an eighth stays whole.
const WORTH: usize = 8;

/// After so many objects that seemed to teach something and led to no dictionary, only one of [`SELDOM`] is asked.
const PATIENCE: u32 = 512;
const SELDOM: u32 = 16;

/// A piece of an object that was found nowhere.
struct Piece {
    from: usize,
    to: usize,
    /// Another object has it, too.
    used: bool,
}

impl Piece {
    const fn len(&self) -> usize {
        self.to - self.from
    }
}

/// Packs objects against what it has seen of others before, as a [compact store](crate::store::Store::compact) does.
///
/// ```
/// use steersman_core::object::Object;
/// use steersman_core::store::{Kept, Packer};
/// let mut packer = Packer::default();
/// for n in 0..10 {
///     let json = format!(r#"{{"kind":"ConfigMap","metadata":{{"name":"a{n}"}},"data":{{"text":"{}"}}}}"#, "the same ".repeat(9));
///     let object = Object::from_json(json.as_bytes())?;
///     let kept = packer.keep(&object);
///     assert_eq!(kept.get(), object);
///     assert!(matches!(kept, Kept::Packed(_)));
/// }
/// # Ok::<(), steersman_core::object::ObjectError>(())
/// ```
pub struct Packer {
    /// The dictionary, and behind it what was noted since.
    known: Vec<u8>,
    /// The pieces behind the dictionary, in order.
    learned: Vec<Piece>,
    places: Places,
    dictionary: Arc<Dictionary>,
    /// Bytes that all that is known would have saved.
    missed: usize,
    /// Objects that seemed to teach something since there last was a dictionary.
    idle: u32,
    /// How many dictionaries there have been.
    made: usize,
    /// Objects since nothing more was learned, and those of them that had something to teach.
    seen: usize,
    strange: usize,
    /// How often learning has begun anew.
    renewed: u32,
    work: Work,
    packed: Vec<u8>,
    again: Vec<u8>,
    pieces: Vec<(usize, usize)>,
}

/// Numbers only: what is in it may be secret.
impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer")
            .field("known", &self.known.len())
            .field("dictionary", &self.dictionary_length())
            .field("made", &self.made)
            .field("renewed", &self.renewed)
            .finish_non_exhaustive()
    }
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            learned: Vec::new(),
            idle: 0,
            places: Places::new(DICTIONARY_BYTES.ilog2()),
            dictionary: Arc::new(Dictionary([].into())),
            missed: 0,
            made: 0,
            seen: 0,
            strange: 0,
            renewed: 0,
            work: Work::default(),
            packed: Vec::new(),
            again: Vec::new(),
            pieces: Vec::new(),
        }
    }
}

impl Packer {
    /// The object as it is to be kept: whole, if it is of a kind that cannot be packed, or would not shrink.
    pub fn keep<T: Resource>(&mut self, object: &T) -> Kept<T> {
        let stamp = Stamp { uid: object.uid(), version: object.resource_version() };
        let Some(start) = self.work.begin(stamp, |out| object.to_packable(out)) else {
            return Kept::Whole(object.clone());
        };
        let length = self.work.text().len() - start;
        let mut packed = core::mem::take(&mut self.packed);
        let mut unknown = 0;
        self.work.pack(stamp, &self.dictionary.0, &mut self.places, &mut packed, &mut |found| {
            if let Found::Nowhere(from, to) = found {
                unknown += to - from;
            }
        });
        let teaches = unknown > length / UNKNOWN_PART;
        if teaches {
            self.learn(stamp, length, &mut packed);
        }
        let kept = if packed.len() + packed.len() / WORTH < length {
            Kept::Packed(Packed { bytes: (&*packed).into(), dictionary: Arc::clone(&self.dictionary) })
        } else {
            Kept::Whole(object.clone())
        };
        self.packed = packed;
        self.renew(teaches);
        self.work.shrink(limits::SCRATCH_BYTES);
        for buffer in [&mut self.packed, &mut self.again] {
            if buffer.capacity() > limits::SCRATCH_BYTES {
                *buffer = Vec::new();
            }
        }
        kept
    }

    /// What there is to learn from the object that was just packed; packs it again if there is a new dictionary then.
    fn learn(&mut self, stamp: Stamp<'_>, length: usize, packed: &mut Vec<u8>) {
        self.idle = self.idle.wrapping_add(1);
        if self.is_full() || (self.idle > PATIENCE && !self.idle.is_multiple_of(SELDOM)) {
            return;
        }
        self.pieces.clear();
        let (pieces, learned) = (&mut self.pieces, &mut self.learned);
        let mut unknown = 0;
        self.work.pack(stamp, &self.known, &mut self.places, &mut self.again, &mut |found| match found {
            Found::Nowhere(from, to) => {
                unknown += to - from;
                match pieces.last_mut() {
                    Some(last) if from - last.1 < BETWEEN => last.1 = to,
                    _ => pieces.push((from, to)),
                }
            }
            // A few digits are soon the same.
            Found::At(from, to) if to - from < LEAST_PIECE => {}
            Found::At(from, to) => {
                let first = learned.partition_point(|piece| piece.to <= from);
                for piece in learned[first..].iter_mut().take_while(|piece| piece.from < to) {
                    piece.used = true;
                }
            }
        });
        self.missed += packed.len().saturating_sub(self.again.len());
        let used: usize = self.learned.iter().filter(|piece| piece.used).map(Piece::len).sum();
        if used > 0 && self.missed >= self.dictionary_length() + used {
            self.forget();
            self.learned.clear();
            self.dictionary = Arc::new(Dictionary((&*self.known).into()));
            (self.missed, self.idle) = (0, 0);
            self.made += 1;
            self.work.pack(stamp, &self.dictionary.0, &mut self.places, packed, &mut |_| {});
        }
        if unknown > length / UNKNOWN_PART {
            self.note();
        }
    }

    /// Adds the pieces that were found nowhere to what is known.
    fn note(&mut self) {
        let pieces = core::mem::take(&mut self.pieces);
        let most = (self.dictionary_length() + DICTIONARY_BYTES / 2).min(DICTIONARY_BYTES);
        let length: usize = pieces.iter().map(|(from, to)| to - from).sum();
        if self.known.len() + length > most {
            self.forget();
            // What was of use, but seldom enough for no dictionary, makes room for what comes now.
            if self.known.len() + LEAST_PIECE > most && self.idle > PATIENCE {
                self.learned.clear();
                self.forget();
                self.missed = 0;
            }
        }
        let before = self.known.len();
        for &(from, to) in pieces.iter().filter(|(from, to)| to - from >= LEAST_PIECE) {
            let room = most.saturating_sub(self.known.len());
            let piece = &self.work.text()[from..to.min(from + room)];
            if piece.len() >= LEAST_PIECE {
                let from = self.known.len();
                self.known.extend_from_slice(piece);
                self.learned.push(Piece { from, to: self.known.len(), used: false });
            }
        }
        self.places.learn(&self.known, before.saturating_sub(7));
        self.pieces = pieces;
    }

    /// Forgets what was noted and of no use since: most of it were numbers that are drawn by lot.
    fn forget(&mut self) {
        let noted = self.known.split_off(self.dictionary_length());
        let learned = core::mem::take(&mut self.learned);
        for piece in learned.into_iter().filter(|piece| piece.used) {
            let (from, start) = (self.known.len(), self.dictionary.0.len());
            self.known.extend_from_slice(&noted[piece.from - start..piece.to - start]);
            self.learned.push(Piece { from, to: self.known.len(), used: true });
        }
        self.places.clear();
        self.places.learn(&self.known, 0);
    }

    fn dictionary_length(&self) -> usize {
        self.dictionary.0.len()
    }

    fn is_full(&self) -> bool {
        self.made >= limits::DICTIONARIES || self.dictionary_length() > DICTIONARY_BYTES / 8 * 7
    }

    /// Begins anew if all there is room for is learned and of no use.
    fn renew(&mut self, teaches: bool) {
        if !self.is_full() || self.renewed >= limits::DICTIONARIES_RENEWED {
            return;
        }
        self.seen += 1;
        self.strange += usize::from(teaches);
        if self.seen < limits::RENEWED_AFTER << self.renewed {
            return;
        }
        if self.strange * 2 > self.seen {
            *self = Self { renewed: self.renewed + 1, ..Self::default() };
        } else {
            // It was worth it.
            self.renewed = self.renewed.saturating_sub(1);
        }
        (self.seen, self.strange) = (0, 0);
    }
}
