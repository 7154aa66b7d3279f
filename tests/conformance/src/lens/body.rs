//! Where the body of an answer ends, and what a watch says in it.

use super::Seen;

/// Longest refusal that is kept.
const REFUSAL: usize = 4096;

/// Follows one body.
pub(super) struct Body {
    framing: Framing,
    refused: bool,
    /// Not compressed: its lines can be read.
    plain: bool,
    line: Vec<u8>,
}

enum Framing {
    None,
    Length(usize),
    Chunks(Chunk),
    UntilTheEnd,
}

enum Chunk {
    /// Within the line with the size.
    Size(Vec<u8>),
    Data(usize),
    /// So many bytes of the line end after the data are still to come.
    DataEnd(usize),
    /// Within the lines after the last chunk; the present one so far.
    Trailer(Vec<u8>),
}

impl Body {
    pub(super) fn of<'a>(method: &str, status: u16, find: impl Fn(&str) -> Option<&'a str>) -> Self {
        let length = find("content-length").and_then(|v| v.parse().ok());
        let framing = if method == "HEAD" || matches!(status, 204 | 304) {
            Framing::None
        } else if find("transfer-encoding").is_some() {
            Framing::Chunks(Chunk::Size(Vec::new()))
        } else {
            length.map_or(Framing::UntilTheEnd, Framing::Length)
        };
        Self { framing, refused: status >= 300, plain: find("content-encoding").is_none(), line: Vec::new() }
    }

    pub(super) const fn ends_with_the_connection(&self) -> bool {
        matches!(self.framing, Framing::UntilTheEnd)
    }

    /// Takes bytes as they came; whether the body is over.
    pub(super) fn take(&mut self, mut bytes: &[u8], seen: &mut Seen) -> bool {
        loop {
            match &mut self.framing {
                Framing::None => return true,
                Framing::UntilTheEnd => {
                    self.content(bytes, seen);
                    return false;
                }
                Framing::Length(left) => {
                    let now = bytes.len().min(*left);
                    *left -= now;
                    let over = *left == 0;
                    self.content(&bytes[..now], seen);
                    return over;
                }
                Framing::Chunks(chunk) => {
                    let Some((&first, after)) = bytes.split_first() else { return false };
                    match chunk {
                        Chunk::Size(line) if first == b'\n' => {
                            let digits = line.split(|b| !b.is_ascii_hexdigit()).next().unwrap_or_default();
                            let size = std::str::from_utf8(digits)
                                .ok()
                                .and_then(|d| usize::from_str_radix(d, 16).ok())
                                .unwrap_or_default();
                            *chunk = if size == 0 { Chunk::Trailer(Vec::new()) } else { Chunk::Data(size) };
                            bytes = after;
                        }
                        Chunk::Size(line) => {
                            line.push(first);
                            bytes = after;
                        }
                        Chunk::Data(left) => {
                            let (now, later) = bytes.split_at(bytes.len().min(*left));
                            *left -= now.len();
                            if *left == 0 {
                                *chunk = Chunk::DataEnd(2);
                            }
                            self.content(now, seen);
                            bytes = later;
                        }
                        Chunk::DataEnd(left) => {
                            *left -= 1;
                            if *left == 0 {
                                *chunk = Chunk::Size(Vec::new());
                            }
                            bytes = after;
                        }
                        Chunk::Trailer(line) => {
                            line.push(first);
                            if first == b'\n' {
                                if line == b"\r\n" {
                                    return true;
                                }
                                line.clear();
                            }
                            bytes = after;
                        }
                    }
                }
            }
        }
    }

    /// Bytes of the body itself.
    fn content(&mut self, mut bytes: &[u8], seen: &mut Seen) {
        seen.bytes += bytes.len();
        if !self.plain {
            return;
        }
        if self.refused {
            let room = REFUSAL.saturating_sub(seen.refusal.len());
            seen.refusal.push_str(&String::from_utf8_lossy(&bytes[..bytes.len().min(room)]));
        } else if seen.is_watch() {
            while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
                self.line.extend_from_slice(&bytes[..end]);
                bytes = &bytes[end + 1..];
                if self.line.starts_with(br#"{"type":"ERROR""#) {
                    seen.errors.push(String::from_utf8_lossy(&self.line).into_owned());
                }
                seen.bookmarks += usize::from(self.line.starts_with(br#"{"type":"BOOKMARK""#));
                self.line.clear();
            }
            self.line.extend_from_slice(bytes);
        }
    }
}
