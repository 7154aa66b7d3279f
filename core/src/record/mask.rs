//! Masks values in JSON as it comes by, in place.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// What stands for each byte of a masked string: a letter of base64.
pub(super) const MASK: u8 = b'A';
/// What stands for each byte of a masked number: any count of them is a number.
const DIGIT: u8 = b'1';
/// What stands for `true` and `false`, without the blank or with it: still a boolean to functions that a replay asks again.
const TRUE: &[u8; 5] = b"true ";
/// Below this depth nothing is told apart any more, and every value is masked.
const DEPTH: usize = 256;
/// Longer names are none of ours, unless a member to mask is longer.
const NAME: usize = 64;
/// Bytes that a byte of a name takes at most: `\u0061`.
const ESCAPE: usize = 6;
/// What an object of the API, or an event, may begin with: told apart from the inside of one by it, where that is in doubt.
const FIRST: [&[u8]; 9] =
    [b"kind", b"apiVersion", b"metadata", b"type", b"object", b"items", b"status", b"code", b"spec"];
/// Repeats the whole object.
const LAST_APPLIED: &[u8] = b"kubectl.kubernetes.io/last-applied-configuration";

/// Walks over JSON values in a row, cut anywhere, and masks what is below certain members of objects: strings, numbers and
/// booleans. `null` stays, for it holds nothing, and any other value in its place could be of a wrong type.
///
/// It never fails. In what is no JSON it loses its way: from there to the line end every letter and digit is masked. So are,
/// after that, objects that do not begin as those of the API do, until one does. A line end inside a string, which JSON does
/// not have and which ends a frame that was cut off, counts as such an end.
#[derive(Debug)]
pub(super) struct Masker {
    members: Vec<Vec<u8>>,
    stack: Vec<Level>,
    /// Levels below the stack.
    deep: usize,
    /// Inside of a string.
    string: Option<Text>,
    /// As it stands there, escapes and all.
    name: Vec<u8>,
    /// Most bytes of a name that are kept.
    longest: usize,
    /// Inside of `null`.
    null: bool,
    /// Bytes of a masked `true` or `false` so far.
    boolean: usize,
    lost: bool,
    /// What comes may be the inside of something.
    doubt: bool,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    object: bool,
    place: Place,
    /// The next string is the name of a member.
    at_name: bool,
    /// What the value after the name is.
    value: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Plain,
    Masked,
    Metadata,
    /// Members are names that people chose.
    Labels,
    Annotations,
}

#[derive(Clone, Copy, Debug)]
struct Text {
    name: bool,
    masked: bool,
    escaped: bool,
}

impl Masker {
    pub(super) fn new<'a>(members: impl Iterator<Item = &'a str>) -> Self {
        let members: Vec<_> = members.map(|m| m.as_bytes().to_vec()).collect();
        // One more than the longest, so that what is longer is not taken for it.
        let longest = members.iter().map(|m| m.len() + 1).fold(NAME, usize::max) * ESCAPE;
        Self {
            members,
            stack: Vec::new(),
            deep: 0,
            string: None,
            name: Vec::new(),
            longest,
            null: false,
            boolean: 0,
            lost: false,
            doubt: false,
        }
    }

    /// Masks the next bytes.
    pub(super) fn mask(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            match self.string {
                _ if self.lost => self.lose(byte),
                Some(text) => self.in_string(byte, text),
                None => {
                    self.between(*byte);
                    if self.lost {
                        self.lose(byte);
                    } else {
                        self.scalar(byte);
                    }
                }
            }
        }
    }

    fn in_string(&mut self, byte: &mut u8, text: Text) {
        match *byte {
            b'\n' => return self.begin_again(),
            b'"' if !text.escaped => {
                self.string = None;
                if text.name {
                    self.named();
                }
                return;
            }
            _ => {}
        }
        self.string = Some(Text { escaped: *byte == b'\\' && !text.escaped, ..text });
        if text.name {
            if self.name.len() < self.longest {
                self.name.push(*byte);
            }
        } else if text.masked && *byte != b'=' && *byte >= b' ' {
            // Padding stays, or the length in base64 would be another one; control characters stay the errors they are.
            *byte = MASK;
        }
    }

    /// A byte between strings that is in its place.
    fn scalar(&mut self, byte: &mut u8) {
        self.null = *byte == b'n' || self.null && matches!(*byte, b'u' | b'l');
        let masked = self.deep > 0 || self.value() == Place::Masked;
        self.boolean = match *byte {
            b't' | b'f' if masked => 1,
            b'r' | b'u' | b'e' | b'a' | b'l' | b's' if self.boolean > 0 => self.boolean + 1,
            _ => 0,
        };
        if let Some(letter) = self.boolean.checked_sub(1).and_then(|n| TRUE.get(n)) {
            *byte = *letter;
        } else if masked
            && !self.null
            && (byte.is_ascii_alphanumeric() || matches!(*byte, b'+' | b'-' | b'.'))
        {
            *byte = DIGIT;
        }
    }

    /// Where nothing is known: structure stays, for frames are found by it.
    fn lose(&mut self, byte: &mut u8) {
        match *byte {
            b'\n' => self.begin_again(),
            b'{' | b'}' | b'[' | b']' | b'"' | b':' | b',' | b'\\' | b'=' | 0..=b' ' => {}
            _ => *byte = MASK,
        }
    }

    fn begin_again(&mut self) {
        self.stack.clear();
        self.deep = 0;
        self.string = None;
        self.lost = false;
        self.doubt = true;
    }

    fn between(&mut self, byte: u8) {
        let top = self.stack.last();
        let is_object = top.is_some_and(|top| top.object);
        self.lost = self.deep == 0
            && match byte {
                b' ' | b'\t' | b'\r' | b'\n' => false,
                b'{' => top.is_some_and(|top| top.at_name),
                b'[' => top.map_or(self.doubt, |top| top.at_name),
                b'}' => !is_object,
                b']' => top.is_none_or(|top| top.object),
                b'"' | b',' => top.is_none(),
                b':' => !is_object,
                // Numbers and the three words.
                b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' => top.is_none_or(|top| top.at_name),
                b't' | b'r' | b'u' | b'f' | b'a' | b'l' | b's' | b'n' => top.is_none_or(|top| top.at_name),
                _ => true,
            };
        match byte {
            _ if self.lost => {}
            b'"' => {
                let masked = self.deep > 0 || self.value() == Place::Masked;
                let name = self.deep == 0 && self.stack.last().is_some_and(|top| top.object && top.at_name);
                self.name.clear();
                self.string = Some(Text { name, masked, escaped: false });
            }
            b'{' | b'[' if self.stack.len() == DEPTH => self.deep += 1,
            b'{' | b'[' => {
                let place = self.value();
                let object = byte == b'{';
                self.stack.push(Level { object, place, at_name: object, value: place });
            }
            b'}' | b']' if self.deep > 0 => self.deep -= 1,
            b'}' | b']' => drop(self.stack.pop()),
            b',' | b':' if self.deep == 0 => {
                if let Some(top) = self.stack.last_mut() {
                    top.at_name = byte == b',' && top.object;
                }
            }
            _ => {}
        }
    }

    /// What the value is that begins here.
    fn value(&self) -> Place {
        self.stack.last().map_or(Place::Plain, |top| top.value)
    }

    /// A name has come.
    fn named(&mut self) {
        let Self { stack, name, members, doubt, .. } = self;
        let name = unescaped(name);
        let first = stack.len() == 1;
        let Some(top) = stack.last_mut() else { return };
        if *doubt && first {
            match name.as_deref().is_some_and(|name| FIRST.contains(&name)) {
                true => *doubt = false,
                false => top.place = Place::Masked,
            }
        }
        // What cannot be read may be any of them.
        let Some(name) = name else {
            top.value = Place::Masked;
            return;
        };
        let known = members.iter().any(|m| *m == *name);
        top.value = match (top.place, &*name) {
            (Place::Masked, _) => Place::Masked,
            (Place::Annotations, LAST_APPLIED) => Place::Masked,
            (Place::Labels | Place::Annotations, _) => Place::Plain,
            _ if known => Place::Masked,
            (Place::Metadata, b"labels") => Place::Labels,
            (Place::Metadata, b"annotations") => Place::Annotations,
            (_, b"metadata") => Place::Metadata,
            _ => Place::Plain,
        };
    }
}

/// A name as readers of JSON see it. `None`: it is none to them, or was cut off in an escape.
fn unescaped(name: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !name.contains(&b'\\') {
        return Some(Cow::Borrowed(name));
    }
    let quoted = [b"\"", name, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).ok().map(|name| Cow::Owned(name.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(json: &str) -> String {
        let whole = cut(json, usize::MAX);
        assert_eq!(cut(json, 1), whole, "byte by byte");
        whole
    }

    fn cut(json: &str, size: usize) -> String {
        let mut bytes = json.as_bytes().to_vec();
        let mut masker = Masker::new(["data", "stringData"].into_iter());
        bytes.chunks_mut(size).for_each(|piece| masker.mask(piece));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn strings_below_the_members_are_masked_wherever_the_object_is() {
        let object = r#"{"kind":"Secret","data":{"k":"aHVudGVyMg==","data":"eA=="},"type":"Opaque"}"#;
        let hidden = r#"{"kind":"Secret","data":{"k":"AAAAAAAAAA==","data":"AA=="},"type":"Opaque"}"#;
        assert_eq!(masked(object), hidden);
        for around in [r#"{"type":"ADDED","object":X}"#, r#"{"items":[X,X]}"#, "X\nX\n", " [ X ]"] {
            assert_eq!(masked(&around.replace('X', object)), around.replace('X', hidden), "{around}");
        }
    }

    #[test]
    fn escapes_keep_their_length() {
        assert_eq!(
            masked(r#"{"stringData":{"a\"b":"x\"y\\","c":["\u00e9é"]},"z":"q"}"#),
            r#"{"stringData":{"a\"b":"AAAAAA","c":["AAAAAAAA"]},"z":"q"}"#
        );
    }

    #[test]
    fn metadata_stays_but_for_what_repeats_the_object() {
        let json = r#"{"metadata":{"name":"data","labels":{"data":"x"},"annotations":{"data":"x","kubectl.kubernetes.io/last-applied-configuration":"{\"data\"}"}},"data":{"k":"v"}}"#;
        let want = r#"{"metadata":{"name":"data","labels":{"data":"x"},"annotations":{"data":"x","kubectl.kubernetes.io/last-applied-configuration":"AAAAAAAAAA"}},"data":{"k":"A"}}"#;
        assert_eq!(masked(json), want);
    }

    #[test]
    fn names_are_compared_as_readers_see_them() {
        let long =
            LAST_APPLIED.iter().fold(String::new(), |name, byte| name + &alloc::format!("\\u{byte:04x}"));
        for (json, want) in [
            (r#"{"d\u0061ta":{"k":"hunter2"},"z":"q"}"#, r#"{"d\u0061ta":{"k":"AAAAAAA"},"z":"q"}"#),
            (r#"{"d\u00":{"k":"hunter2"}}"#, r#"{"d\u00":{"k":"AAAAAAA"}}"#),
            (r#"{"z\/":"q"}"#, r#"{"z\/":"q"}"#),
            (
                r#"{"met\u0061data":{"name":"n","annotations":{"kubectl.kubernetes.io\/last-applied-configuration":"hunter2"}}}"#,
                r#"{"met\u0061data":{"name":"n","annotations":{"kubectl.kubernetes.io\/last-applied-configuration":"AAAAAAA"}}}"#,
            ),
        ] {
            assert_eq!(masked(json), want);
        }
        let json = alloc::format!(r#"{{"metadata":{{"annotations":{{"{long}":"hunter2"}}}}}}"#);
        assert_eq!(masked(&json), json.replace("hunter2", "AAAAAAA"));
        let member = "m".repeat(NAME + 1);
        let json = alloc::format!(r#"{{"{member}":"hunter2","{member}m":"q"}}"#);
        let mut bytes = json.clone().into_bytes();
        Masker::new([&*member].into_iter()).mask(&mut bytes);
        assert_eq!(String::from_utf8(bytes).unwrap(), json.replace("hunter2", "AAAAAAA"));
    }

    #[test]
    fn numbers_and_booleans_are_masked_and_stay_json() {
        let json = r#"{"kind":"Secret","data":{"k":12345,"b":[true,false, -1.5e+3 ,null],"o":{"p":0}},"n":-7,"t":true}"#;
        let want = r#"{"kind":"Secret","data":{"k":11111,"b":[true,true , 1111111 ,null],"o":{"p":1}},"n":-7,"t":true}"#;
        assert_eq!(masked(json), want);
        serde_json::from_str::<serde_json::Value>(want).unwrap();
        assert_eq!(masked(r#"{"data":null,"stringData":5}"#), r#"{"data":null,"stringData":1}"#);
        let deep = masked(&alloc::format!("{}123", "[".repeat(DEPTH + 1)));
        assert!(deep.ends_with("[111"), "{deep}");
    }

    #[test]
    fn after_a_frame_that_was_cut_off_the_next_one_is_masked() {
        let frame = r#"{"type":"ADDED","object":{"metadata":{"labels":{"a":"b"}},"data":{"k":"hunter2"}}}"#;
        for cut in 0..frame.len() {
            let json = alloc::format!("{}\n{frame}\n", &frame[..cut]);
            assert!(!masked(&json).contains("hunter2"), "cut at {cut}: {}", masked(&json));
        }
    }

    #[test]
    fn what_is_no_json_is_masked_to_its_line_end() {
        assert_eq!(masked("data: aHVudGVyMg==\n{\"kind\":\"S\"}"), "AAAA: AAAAAAAAAA==\n{\"kind\":\"S\"}");
        assert_eq!(masked("{\"kind\":\"S\", hunter2\n"), "{\"kind\":\"S\", AAAAAAA\n");
        // The inside of an object that was torn apart, and what comes after it.
        for inside in ["{\"k\":\"hunter2\"}}", "\"hunter2\"", "12345", "\"data\":{\"k\":\"hunter2\"}"] {
            let text = masked(&alloc::format!("{{\"kind\":\"S\n{inside}\n{{\"kind\":\"S\"}}\n"));
            assert!(!text.contains("hunter2") && !text.contains("12345"), "{text}");
        }
    }

    #[test]
    fn too_deep_is_masked_whole() {
        let json = alloc::format!("{}\"secret\"", "[".repeat(DEPTH + 1));
        assert!(masked(&json).ends_with("\"AAAAAA\""));
    }
}
