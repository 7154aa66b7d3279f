//! Lists: the elements of `items` one by one as their bytes come, the rest at the end.
//!
//! Core kinds send `metadata` before `items`, custom resources after (their members are sorted by name); any order is
//! fine. Memory is bounded by the longest item, not by the list.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value;

use super::framing::keep_start;
use super::json::{Scanner, Stop, is_space, trim_start};
use super::{Piece, WireError, quote};

/// Longest `metadata`, `kind` or `apiVersion` of a list. Continue tokens are the longest part, far below this.
const MEMBER_BYTES: usize = 256 * 1024;
/// How much of the beginning is kept for errors: enough for the message of a `Status`.
const START_BYTES: usize = 256;
/// Longest member name that is told from others.
const NAME_BYTES: usize = 64;

/// What a list says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListHead {
    /// `kind`, such as `PodList`; empty if absent.
    pub kind: String,
    /// `apiVersion`; empty if absent.
    pub api_version: String,
    /// `metadata.resourceVersion`; empty if absent.
    pub resource_version: String,
    /// `metadata.continue`; empty if this was the last page.
    pub continue_token: String,
    /// `metadata.remainingItemCount`.
    pub remaining_item_count: Option<u64>,
}

/// Cuts a list into its items.
///
/// ```
/// use steersman_core::wire::{list::ListSplitter, Piece};
/// let mut splitter = ListSplitter::new(1024);
/// let mut input: &[u8] = br#"{"kind":"PodList","items":[{"a":1},{"b":2}],"metadata":{"resourceVersion":"7"}}"#;
/// assert_eq!(splitter.next(&mut input).unwrap(), Some(Piece::Value(br#"{"a":1}"#)));
/// assert_eq!(splitter.next(&mut input).unwrap(), Some(Piece::Value(br#"{"b":2}"#)));
/// assert_eq!(splitter.next(&mut input).unwrap(), None);
/// assert_eq!(splitter.finish().unwrap().resource_version, "7");
/// ```
#[derive(Debug)]
pub struct ListSplitter {
    limit: usize,
    state: State,
    /// What is kept of the token or item that has begun.
    buffer: Vec<u8>,
    /// The buffer was lent with the last piece.
    spent: bool,
    /// The beginning of the body, for errors.
    start: Vec<u8>,
    kind: String,
    api_version: String,
    metadata: Option<Value>,
    items_seen: bool,
    /// How long the last item was.
    usual: u64,
}

#[derive(Debug)]
enum State {
    /// Before the first byte; so many bytes of a byte order mark seen.
    Start(usize),
    /// At the bracket of the list.
    Open,
    /// A member name or the end of the list.
    NameOrEnd,
    /// A member name, after a comma.
    Name,
    InName(Scanner),
    Colon(Member),
    ValueStart(Member),
    InValue(Member, Open),
    /// A comma or the end of the list.
    AfterValue,
    ItemOrEnd,
    Item,
    InItem(Open),
    AfterItem,
    End,
    Failed(WireError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Other,
}

/// A value that has begun.
#[derive(Debug)]
enum Open {
    /// An object, array or string; `bytes` so far.
    Scanned { scanner: Scanner, bytes: u64 },
    /// A number, `true`, `false` or `null`: it ends where white space, a comma or a bracket comes.
    Bare { bytes: u64 },
}

impl Open {
    fn at(first: u8) -> Result<Self, WireError> {
        match first {
            b'{' | b'[' | b'"' => Ok(Self::Scanned { scanner: Scanner::new(), bytes: 0 }),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Ok(Self::Bare { bytes: 0 }),
            _ => Err(WireError::BadList("a value is expected")),
        }
    }

    /// The bytes of `input` that belong to it, whether it ends with them, and how long it is so far.
    fn advance<'i>(&mut self, input: &mut &'i [u8]) -> (&'i [u8], bool, u64) {
        let (n, ended, bytes) = match self {
            Self::Scanned { scanner, bytes } => match scanner.scan(input) {
                Stop::End(n) => (n, true, bytes),
                Stop::Newline(_) | Stop::More => (input.len(), false, bytes),
            },
            Self::Bare { bytes } => {
                let end = input.iter().position(|b| is_space(*b) || matches!(b, b',' | b'}' | b']'));
                (end.unwrap_or(input.len()), end.is_some(), bytes)
            }
        };
        *bytes += n as u64;
        let (taken, rest) = input.split_at(n);
        *input = rest;
        (taken, ended, *bytes)
    }
}

impl ListSplitter {
    /// A splitter at the start of a body. Items longer than `limit` bytes are skipped and reported.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            state: State::Start(0),
            buffer: Vec::new(),
            spent: false,
            start: Vec::new(),
            kind: String::new(),
            api_version: String::new(),
            metadata: None,
            items_seen: false,
            usual: 0,
        }
    }

    /// How many bytes of an unfinished item are held.
    #[must_use]
    pub const fn buffered(&self) -> usize {
        if self.spent { 0 } else { self.buffer.len() }
    }

    /// The next item ([`Piece::Value`] or [`Piece::TooLong`]), from bytes taken off the front of `input`; `None` when all
    /// of it is used. An item may be any JSON value, `null` too: whether it is an object is for the decoder to say.
    ///
    /// # Errors
    /// What cannot be a list. The same error from then on. Other answers (a `Table`, a `Status`) show at [`Self::finish`].
    pub fn next<'r, 'i: 'r>(&'r mut self, input: &mut &'i [u8]) -> Result<Option<Piece<'r>>, WireError> {
        if core::mem::take(&mut self.spent) {
            self.buffer.clear();
        }
        if let Err(error) = self.begin(input) {
            self.state = State::Failed(error.clone());
            return Err(error);
        }
        let before = *input;
        let found = self.advance(input);
        self.keep(before, input.len());
        match found {
            Ok(None) => Ok(None),
            Ok(Some(Found::Lent(piece))) => Ok(Some(piece)),
            Ok(Some(Found::Buffered { bytes })) => {
                self.spent = true;
                Ok(Some(if bytes <= self.limit as u64 {
                    Piece::Value(&self.buffer)
                } else {
                    Piece::TooLong { bytes, start: &self.buffer }
                }))
            }
            Err(error) => {
                self.state = State::Failed(error.clone());
                self.buffer = Vec::new();
                Err(error)
            }
        }
    }

    /// Of `before`, all but the last `left` bytes were taken.
    fn keep(&mut self, before: &[u8], left: usize) {
        let room = START_BYTES.saturating_sub(self.start.len());
        if room > 0 {
            self.start.extend_from_slice(&before[..(before.len() - left).min(room)]);
        }
    }

    /// What `read` makes of the item at the front of `input`: it is given all that there is, says how many bytes the item had, and
    /// these are taken. Where no item begins, it is longer than the limit or `read` gives `None`, nothing is taken but what
    /// stands between items, and [`next`](Self::next) goes on. Whoever reads items finds their ends by that, and need not have
    /// them looked for.
    ///
    /// `read` must take whole JSON objects only, of which [`next`](Self::next) would say the same.
    pub fn read<'i, T>(
        &mut self,
        input: &mut &'i [u8],
        read: impl FnOnce(&'i [u8]) -> Option<(T, usize)>,
    ) -> Option<T> {
        if !matches!(self.state, State::AfterItem | State::Item | State::ItemOrEnd) {
            return None;
        }
        let before = *input;
        if core::mem::take(&mut self.spent) {
            self.buffer.clear();
        }
        *input = trim_start(input);
        if matches!(self.state, State::AfterItem) && input.first() == Some(&b',') {
            *input = trim_start(&input[1..]);
            self.state = State::Item;
        }
        // What is shorter than the last one has hardly come as a whole, and to begin it would be in vain.
        let may = !matches!(self.state, State::AfterItem)
            && input.first() == Some(&b'{')
            && input.len() as u64 >= self.usual;
        let found = may.then(|| read(input)).flatten().filter(|(_, bytes)| *bytes <= self.limit);
        let value = found.map(|(value, bytes)| {
            self.state = State::AfterItem;
            self.usual = bytes as u64;
            *input = &input[bytes..];
            value
        });
        self.keep(before, input.len());
        value
    }

    /// Passes over what may stand in front of the list, up to its bracket.
    fn begin(&mut self, input: &mut &[u8]) -> Result<(), WireError> {
        const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
        while let (State::Start(mark), Some(&first)) = (&mut self.state, input.first()) {
            match *mark {
                0..3 if first == BOM[*mark] => *mark += 1,
                0 | 3 if is_space(first) => *mark = 3,
                0 | 3 if first == b'{' => {
                    self.state = State::Open;
                    return Ok(());
                }
                _ => {
                    // Wait for enough to quote, so that the message does not hang on the cuts.
                    *mark = NOT_JSON;
                    self.start.push(first);
                    if first == b'\n' || self.start.len() == START_BYTES {
                        return Err(WireError::NotJson(self.quote()));
                    }
                }
            }
            *input = &input[1..];
        }
        Ok(())
    }

    fn advance<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Found<'i>>, WireError> {
        loop {
            if !matches!(
                self.state,
                State::InName(_) | State::InValue(..) | State::InItem(_) | State::Start(_)
            ) {
                *input = trim_start(input);
            }
            let Some(&first) = input.first() else {
                return match &self.state {
                    State::Failed(error) => Err(error.clone()),
                    _ => Ok(None),
                };
            };
            match &mut self.state {
                State::Failed(error) => return Err(error.clone()),
                State::Start(_) => return Ok(None),
                State::Open => {
                    *input = &input[1..];
                    self.state = State::NameOrEnd;
                }
                State::NameOrEnd | State::Name => match first {
                    b'"' => self.state = State::InName(Scanner::new()),
                    b'}' if matches!(self.state, State::NameOrEnd) => self.close(input),
                    _ => return Err(WireError::BadList("a member name is expected")),
                },
                State::InName(scanner) => {
                    let (n, ended) = match scanner.scan(input) {
                        Stop::End(n) => (n, true),
                        Stop::Newline(_) | Stop::More => (input.len(), false),
                    };
                    let room = NAME_BYTES.saturating_sub(self.buffer.len());
                    self.buffer.extend_from_slice(&input[..n.min(room)]);
                    *input = &input[n..];
                    if ended {
                        self.state = State::Colon(match self.buffer.as_slice() {
                            b"\"kind\"" => Member::Kind,
                            b"\"apiVersion\"" => Member::ApiVersion,
                            b"\"metadata\"" => Member::Metadata,
                            b"\"items\"" => Member::Items,
                            _ => Member::Other,
                        });
                        self.buffer.clear();
                    }
                }
                State::Colon(member) => {
                    if first != b':' {
                        return Err(WireError::BadList("a colon is expected"));
                    }
                    *input = &input[1..];
                    self.state = State::ValueStart(*member);
                }
                State::ValueStart(Member::Items) if self.items_seen => {
                    return Err(WireError::BadList("it has items twice"));
                }
                State::ValueStart(Member::Items) if first == b'[' => {
                    self.items_seen = true;
                    *input = &input[1..];
                    self.state = State::ItemOrEnd;
                }
                State::ValueStart(member) => self.state = State::InValue(*member, Open::at(first)?),
                State::InValue(member, open) => {
                    let member = *member;
                    let (bytes, ended, total) = open.advance(input);
                    if member != Member::Other {
                        if total > MEMBER_BYTES as u64 {
                            return Err(WireError::BadList("its kind, apiVersion or metadata is too long"));
                        }
                        self.buffer.extend_from_slice(bytes);
                    }
                    if ended {
                        self.member(member)?;
                        self.buffer.clear();
                        self.state = State::AfterValue;
                    }
                }
                State::AfterValue => match first {
                    b',' => {
                        *input = &input[1..];
                        self.state = State::Name;
                    }
                    b'}' => self.close(input),
                    _ => return Err(WireError::BadList("a comma or the end is expected after a member")),
                },
                State::ItemOrEnd if first == b']' => {
                    *input = &input[1..];
                    self.state = State::AfterValue;
                }
                State::ItemOrEnd | State::Item => self.state = State::InItem(Open::at(first)?),
                State::InItem(open) => {
                    let (bytes, ended, total) = open.advance(input);
                    let fits = total <= self.limit as u64;
                    if ended {
                        self.usual = total;
                        self.state = State::AfterItem;
                    }
                    if ended && self.buffer.is_empty() {
                        let start = &bytes[..bytes.len().min(Piece::START_BYTES)];
                        let piece =
                            if fits { Piece::Value(bytes) } else { Piece::TooLong { bytes: total, start } };
                        return Ok(Some(Found::Lent(piece)));
                    }
                    if fits {
                        self.buffer.extend_from_slice(bytes);
                    } else {
                        self.buffer.truncate(Piece::START_BYTES);
                        self.buffer.shrink_to_fit();
                        keep_start(&mut self.buffer, bytes);
                    }
                    if ended {
                        return Ok(Some(Found::Buffered { bytes: total }));
                    }
                }
                State::AfterItem => match first {
                    b',' => {
                        *input = &input[1..];
                        self.state = State::Item;
                    }
                    b']' => {
                        *input = &input[1..];
                        self.state = State::AfterValue;
                    }
                    _ => return Err(WireError::BadList("a comma or the end is expected after an item")),
                },
                State::End => return Err(WireError::BadList("something follows its end")),
            }
        }
    }

    fn close(&mut self, input: &mut &[u8]) {
        *input = &input[1..];
        self.state = State::End;
    }

    /// The member whose value stands in the buffer.
    fn member(&mut self, member: Member) -> Result<(), WireError> {
        let text = |bytes: &[u8]| match serde_json::from_slice(bytes) {
            Ok(Value::String(s)) => Ok(s),
            Ok(Value::Null) => Ok(String::new()),
            _ => Err(WireError::BadList("its kind or apiVersion is not a string")),
        };
        match member {
            Member::Kind => self.kind = text(&self.buffer)?,
            Member::ApiVersion => self.api_version = text(&self.buffer)?,
            Member::Metadata => {
                self.metadata = match serde_json::from_slice(&self.buffer) {
                    Ok(value @ (Value::Object(_) | Value::Null)) => Some(value),
                    _ => return Err(WireError::BadList("its metadata is not an object")),
                };
            }
            Member::Items if self.buffer == b"null" => self.items_seen = true,
            Member::Items => return Err(WireError::BadList("its items are not an array")),
            Member::Other => {}
        }
        Ok(())
    }

    /// The body has ended: what the list said of itself, if it was one and is whole.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if it broke off; [`WireError::NotAList`] if it has no `items`, or is a `Table` or `Status`
    /// (taking such for an empty list would delete everything); or the error that [`Self::next`] gave.
    pub fn finish(&self) -> Result<ListHead, WireError> {
        match &self.state {
            State::Failed(error) => return Err(error.clone()),
            State::Start(NOT_JSON) => return Err(WireError::NotJson(self.quote())),
            State::Start(_) => return Err(WireError::Truncated("a list: the body is empty")),
            State::End => {}
            _ => return Err(WireError::Truncated("a list")),
        }
        if !self.items_seen || matches!(self.kind.as_str(), "Table" | "Status") {
            return Err(WireError::NotAList { kind: self.kind.clone(), start: self.quote() });
        }
        let metadata = self.metadata.as_ref();
        let text = |name: &str| match metadata.and_then(|m| m.get(name)) {
            Some(Value::String(s)) => Ok(s.clone()),
            // Some servers that are not quite Kubernetes send a number.
            Some(Value::Number(n)) => Ok(n.to_string()),
            None | Some(Value::Null) => Ok(String::new()),
            Some(_) => Err(WireError::BadList("a member of its metadata has the wrong type")),
        };
        Ok(ListHead {
            kind: self.kind.clone(),
            api_version: self.api_version.clone(),
            resource_version: text("resourceVersion")?,
            continue_token: text("continue")?,
            remaining_item_count: metadata.and_then(|m| m.get("remainingItemCount")).and_then(Value::as_u64),
        })
    }

    fn quote(&self) -> String {
        quote::quote(&self.start, START_BYTES)
    }
}

/// In [`State::Start`]: marks a body that does not begin as JSON does; only more bytes to quote are waited for.
const NOT_JSON: usize = 4;

enum Found<'i> {
    /// The item lies in the input.
    Lent(Piece<'i>),
    /// The item is in the buffer.
    Buffered { bytes: u64 },
}

#[cfg(test)]
mod tests;
