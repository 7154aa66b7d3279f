//! The body that is being read: what the request was decides how it is cut and decoded.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::decode::{change_at_front, decode_frame_in, decode_item_in};
use super::job::Piece;
use crate::limits::WireLimits;
use crate::object::{Object, ObjectOptions};
use crate::watcher::{BadObject, Frame};
use crate::wire;
use crate::wire::framing::FrameSplitter;
use crate::wire::http::ResponseHead;
use crate::wire::list::ListSplitter;
use crate::wire::quote::{quote, quote_text};

/// How the pieces of a body become objects.
#[derive(Debug)]
pub(super) struct Decoding {
    pub(super) list: bool,
    pub(super) options: ObjectOptions,
}

pub(super) enum Reading {
    /// The head has not come.
    Head,
    List(ListSplitter),
    Watch(FrameSplitter),
    /// An answer that is not 2xx: its body says why.
    Refusal {
        head: ResponseHead,
        body: Vec<u8>,
    },
}

impl Reading {
    /// What the body of this answer is.
    ///
    /// # Errors
    /// A 2xx answer that is no JSON, so no list and no watch either.
    pub(super) fn of(head: ResponseHead, list: bool, limits: &WireLimits) -> Result<Self, String> {
        if !head.is_success() {
            return Ok(Self::Refusal { head, body: Vec::new() });
        }
        match head.header("content-type") {
            Some(kind) if !kind.to_ascii_lowercase().contains("json") => {
                Err(format!("the answer ({}) is not JSON but {:?}", head.status, quote_text(kind, false)))
            }
            _ if list => Ok(Self::List(ListSplitter::new(limits.item_bytes))),
            _ => Ok(Self::Watch(FrameSplitter::new(limits.frame_bytes))),
        }
    }
}

/// The bytes that came at once, as text up to the first that is none.
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    text: Option<&'a str>,
}

impl<'a> Text<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, text: None }
    }

    /// As far as `rest`, the end of them, is text.
    fn of(&mut self, rest: &[u8]) -> Option<&'a str> {
        let text = *self.text.get_or_insert_with(|| match core::str::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(e) => core::str::from_utf8(&self.bytes[..e.valid_up_to()]).unwrap_or_default(),
        });
        text.get(self.bytes.len() - rest.len()..)
    }
}

impl Reading {
    /// Takes the next piece off the front of `input`, the rest of `text`, and decodes it, in one pass: if all of it is there, and it is
    /// an object or the change of one. What is not, or is odd in any way, is left to the splitter and [`decode`].
    pub(super) fn ahead(
        &mut self,
        input: &mut &[u8],
        text: &mut Text<'_>,
        options: &ObjectOptions,
        scratch: &mut String,
    ) -> Option<Piece> {
        match self {
            Self::List(splitter) => splitter
                .read(input, |rest| Object::from_front(text.of(rest)?, options, scratch))
                .map(|object| Piece::Item(Ok(object))),
            Self::Watch(splitter) => splitter
                .read(input, |rest| change_at_front(text.of(rest)?, options, scratch))
                .map(Piece::Frame),
            Self::Head | Self::Refusal { .. } => None,
        }
    }
}

/// Decodes one piece of a body.
pub(super) fn decode(piece: wire::Piece<'_>, decoding: &Decoding, scratch: &mut String) -> Piece {
    if let wire::Piece::Value(raw) = piece {
        return if decoding.list {
            Piece::Item(decode_item_in(raw, &decoding.options, scratch))
        } else {
            Piece::Frame(decode_frame_in(raw, &decoding.options, scratch))
        };
    }
    // What is left of it may still tell whose it is.
    let error = match piece {
        wire::Piece::TooLong { bytes, .. } => format!("{bytes} bytes are more than an object may have"),
        wire::Piece::Truncated(_) => String::from("the body ended in the middle of it"),
        // With quotes in it, it may be a part of an object.
        _ if piece.bytes().contains(&b'"') => format!("{} bytes that are not JSON", piece.bytes().len()),
        _ => format!("not JSON: {:?}", quote(piece.bytes(), 80)),
    };
    let found = match decode_frame_in(piece.bytes(), &decoding.options, scratch) {
        Frame::Bad(bad) if !decoding.list => bad,
        _ => match decode_item_in(piece.bytes(), &decoding.options, scratch) {
            Err(bad) => bad,
            Ok(_) => BadObject { key: None, resource_version: String::new(), error: String::new() },
        },
    };
    let bad = BadObject { error, ..found };
    if decoding.list { Piece::Item(Err(bad)) } else { Piece::Frame(Frame::Bad(bad)) }
}
