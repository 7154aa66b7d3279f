//! Where in the JSON of an object the fields are that the runtime decides on, and what of it is to be dropped.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::dropped::Node;
use super::raw::ObjectOptions;
use super::scan::{Scanner, SyntaxError, Text, Token};
use super::strings;
use super::{Key, ObjectError};

/// The fields; their numbers are their places in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    ApiVersion,
    Kind,
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    Generation,
    Created,
    Deleted,
    Labels,
    Annotations,
    Owners,
    Finalizers,
}

pub(super) const FIELDS: usize = 13;

/// Where the text of a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere.
    Absent,
    /// In the JSON that came.
    Json(usize, usize),
    /// In the JSON that is kept.
    Text(usize, usize),
    /// In the tail, unescaped.
    Tail(usize, usize),
}

/// What a scan found.
pub(crate) struct Parts {
    /// Where the whole object is.
    pub(super) span: (usize, usize),
    pub(super) places: [Place; FIELDS],
    pub(super) tail: String,
    /// What to drop, in order, disjoint.
    pub(super) cuts: Vec<(usize, usize)>,
    /// Whether an `apiVersion` or `kind` was kept that a later one, which is cut, overrules.
    pub(super) overruled: [bool; 2],
    metadata: bool,
}

/// Why a scan stopped.
enum Fault {
    Syntax(SyntaxError),
    Shape(String),
}

impl From<SyntaxError> for Fault {
    fn from(e: SyntaxError) -> Self {
        Self::Syntax(e)
    }
}

fn shape<T>(field: &str, found: Token, wanted: &str) -> Result<T, Fault> {
    Err(Fault::Shape(format!("{field} is {}, not {wanted}", found.name())))
}

impl Parts {
    /// Reads the object that comes next.
    pub(crate) fn scan(
        scanner: &mut Scanner<'_>,
        json: &str,
        options: &ObjectOptions,
    ) -> Result<Self, String> {
        let mut parts = Self {
            span: (0, 0),
            places: [Place::Absent; FIELDS],
            tail: String::new(),
            cuts: Vec::new(),
            overruled: [false; 2],
            metadata: false,
        };
        match parts.object(scanner, json, options) {
            Ok(()) => Ok(parts),
            Err(Fault::Syntax(e)) => Err(format!("not JSON: {e}")),
            Err(Fault::Shape(message)) => Err(message),
        }
    }

    /// An object without a name cannot be kept.
    pub(super) fn check_name(&self, json: &str) -> Result<(), String> {
        if !self.text(json, Field::Name).is_empty() {
            return Ok(());
        }
        let kind = match self.text(json, Field::Kind) {
            "" => "an object without a kind".to_owned(),
            kind => format!("a {}", kind.chars().filter(|c| !c.is_control()).take(63).collect::<String>()),
        };
        Err(if self.metadata {
            format!("metadata.name is missing in {kind}")
        } else {
            format!("metadata is missing in {kind}")
        })
    }

    fn text<'a>(&'a self, json: &'a str, field: Field) -> &'a str {
        match self.places[field as usize] {
            Place::Json(a, b) => &json[a..b],
            Place::Tail(a, b) => &self.tail[a..b],
            Place::Absent | Place::Text(..) => "",
        }
    }

    /// `metadata.resourceVersion`; empty if absent.
    pub(crate) fn resource_version<'a>(&'a self, json: &'a str) -> &'a str {
        self.text(json, Field::ResourceVersion)
    }

    /// Whether an annotation has exactly this value.
    pub(crate) fn has_annotation(&self, json: &str, name: &str, value: &str) -> bool {
        let all = strings::Annotations::new(self.text(json, Field::Annotations));
        all.filter(|(k, _)| k == name).last().is_some_and(|(_, v)| v == value)
    }

    fn object(&mut self, s: &mut Scanner<'_>, json: &str, options: &ObjectOptions) -> Result<(), Fault> {
        match s.peek()? {
            Token::Object => {}
            other => return Err(Fault::Shape(format!("the object is {}", other.name()))),
        }
        let start = s.at();
        let retype = options.default_type.is_some();
        let dropped = options.dropped.root();
        let mut cutter = Cutter::default();
        let mut more = s.open_object()?;
        while more {
            cutter.begin(s);
            let key = s.key()?;
            let dropped = dropped.and_then(|node| node.step(&key.get(json)));
            let mut cut = false;
            if key.is(json, "metadata") {
                self.metadata(s, json, dropped)?;
            } else if key.is(json, "kind") {
                let before = self.places[Field::Kind as usize] != Place::Absent;
                self.string(s, json, Field::Kind, "kind")?;
                cut = retype && matches!(self.text(json, Field::Kind), "" | "PartialObjectMetadata");
                self.forget(cut, before, Field::Kind);
            } else if key.is(json, "apiVersion") {
                let before = self.places[Field::ApiVersion as usize] != Place::Absent;
                self.string(s, json, Field::ApiVersion, "apiVersion")?;
                let text = self.text(json, Field::ApiVersion);
                cut = retype && (text.is_empty() || text.starts_with("meta.k8s.io/"));
                self.forget(cut, before, Field::ApiVersion);
            } else if options.metadata_only {
                s.value()?;
                cut = true;
            } else {
                cut = self.value(s, json, dropped)?;
            }
            more = cutter.end(s, true, cut, &mut self.cuts)?;
        }
        self.span = (start, s.at());
        Ok(())
    }

    /// The type that stands here is none. `before`: an earlier one is kept.
    fn forget(&mut self, really: bool, before: bool, field: Field) {
        if really {
            self.places[field as usize] = Place::Absent;
            self.overruled[field as usize] |= before;
        }
    }

    /// Any value; whether all of it is to be cut. Goes no deeper than pointers do.
    fn value(
        &mut self,
        s: &mut Scanner<'_>,
        json: &str,
        dropped: Option<&Node>,
    ) -> Result<bool, SyntaxError> {
        let Some(node) = dropped.filter(|node| !node.is_whole()) else {
            s.value()?;
            return Ok(dropped.is_some());
        };
        let object = match s.peek()? {
            Token::Object => true,
            Token::Array => false,
            _ => return s.value().map(|_| false),
        };
        let mut cutter = Cutter::default();
        let mut more = if object { s.open_object()? } else { s.open_array()? };
        let mut index = 0_usize;
        while more {
            cutter.begin(s);
            let dropped = if object {
                node.step(&s.key()?.get(json))
            } else {
                index += 1;
                node.element(index - 1)
            };
            let cut = self.value(s, json, dropped)?;
            more = cutter.end(s, object, cut, &mut self.cuts)?;
        }
        Ok(false)
    }

    fn metadata(&mut self, s: &mut Scanner<'_>, json: &str, dropped: Option<&Node>) -> Result<(), Fault> {
        // The last of several counts, as a whole.
        self.places[Field::Name as usize..].fill(Place::Absent);
        self.metadata = false;
        match s.peek()? {
            Token::Object => self.metadata = true,
            Token::Null => {
                s.value()?;
                return Ok(());
            }
            other => return shape("metadata", other, "an object"),
        }
        let mut cutter = Cutter::default();
        let mut more = s.open_object()?;
        while more {
            cutter.begin(s);
            let key = s.key()?.get(json);
            let dropped = dropped.and_then(|node| node.step(&key));
            let mut cut = false;
            match &*key {
                // Nobody asks what is in it.
                _ if dropped.is_some_and(Node::is_whole) => cut = self.value(s, json, dropped)?,
                "name" => self.string(s, json, Field::Name, "metadata.name")?,
                "namespace" => self.string(s, json, Field::Namespace, "metadata.namespace")?,
                "uid" => self.string(s, json, Field::Uid, "metadata.uid")?,
                "resourceVersion" => {
                    self.string(s, json, Field::ResourceVersion, "metadata.resourceVersion")?
                }
                "creationTimestamp" => self.string(s, json, Field::Created, "metadata.creationTimestamp")?,
                "deletionTimestamp" => self.string(s, json, Field::Deleted, "metadata.deletionTimestamp")?,
                "generation" => self.generation(s)?,
                "labels" => self.map(s, json, Field::Labels, "metadata.labels", dropped)?,
                "annotations" => self.map(s, json, Field::Annotations, "metadata.annotations", dropped)?,
                "finalizers" => self.finalizers(s, json)?,
                "ownerReferences" => self.owners(s, json)?,
                _ => cut = self.value(s, json, dropped)?,
            }
            more = cutter.end(s, true, cut, &mut self.cuts)?;
        }
        Ok(())
    }

    /// A string or null.
    fn string(&mut self, s: &mut Scanner<'_>, json: &str, field: Field, name: &str) -> Result<(), Fault> {
        self.places[field as usize] = match s.peek()? {
            Token::String => {
                let text = s.string()?;
                if text.escaped {
                    let from = self.tail.len();
                    self.tail.push_str(&text.get(json));
                    Place::Tail(from, self.tail.len())
                } else {
                    Place::Json(text.start, text.end)
                }
            }
            Token::Null => {
                s.value()?;
                Place::Absent
            }
            other => return shape(name, other, "a string"),
        };
        Ok(())
    }

    fn generation(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let token = s.peek()?;
        let (start, end) = s.value()?;
        self.places[Field::Generation as usize] = match token {
            Token::Number => Place::Json(start, end),
            Token::Null => Place::Absent,
            other => return shape("metadata.generation", other, "a number"),
        };
        Ok(())
    }

    /// An object of strings, or null. If anything in labels is escaped, all of them go unescaped into the tail.
    fn map(
        &mut self,
        s: &mut Scanner<'_>,
        json: &str,
        field: Field,
        name: &str,
        dropped: Option<&Node>,
    ) -> Result<(), Fault> {
        let cut =
            |key: Text| dropped.is_some_and(|node| node.step(&key.get(json)).is_some_and(Node::is_whole));
        match s.peek()? {
            Token::Object => {}
            Token::Null => {
                s.value()?;
                self.places[field as usize] = Place::Absent;
                return Ok(());
            }
            other => return shape(name, other, "an object"),
        }
        let start = s.at();
        let mut odd = false;
        let mut cutter = Cutter::default();
        let mut more = s.open_object()?;
        while more {
            cutter.begin(s);
            let key = s.key()?;
            let cut = cut(key);
            if cut {
                s.value()?;
            } else {
                let value = string_or_null(s, name)?;
                odd |= key.escaped || value.is_none_or(|v| v.escaped);
            }
            more = cutter.end(s, true, cut, &mut self.cuts)?;
        }
        self.places[field as usize] = Place::Json(start, s.at());
        if odd && field == Field::Labels {
            let from = self.tail.len();
            Scanner::from(json, start).members(|s, key| {
                if cut(key) {
                    return Ok(s.value().map(drop)?);
                }
                strings::pack(&mut self.tail, &key.get(json));
                let value = string_or_null(s, name)?;
                strings::pack(&mut self.tail, &value.map(|v| v.get(json)).unwrap_or_default());
                Ok::<_, Fault>(())
            })?;
            self.places[field as usize] = Place::Tail(from, self.tail.len());
        }
        Ok(())
    }

    /// An array of strings, or null.
    fn finalizers(&mut self, s: &mut Scanner<'_>, json: &str) -> Result<(), Fault> {
        const NAME: &str = "metadata.finalizers";
        if !self.array(s, Field::Finalizers, NAME)? {
            return Ok(());
        }
        let start = s.at();
        let mut odd = false;
        s.elements(|s| {
            odd |= string_or_null(s, NAME)?.is_none_or(|v| v.escaped);
            Ok::<_, Fault>(())
        })?;
        self.places[Field::Finalizers as usize] = Place::Json(start, s.at());
        if odd {
            let from = self.tail.len();
            let array = &json[start..s.at()];
            Scanner::new(array).elements(|s| {
                let value = string_or_null(s, NAME)?;
                strings::pack(&mut self.tail, &value.map(|v| v.get(array)).unwrap_or_default());
                Ok::<_, Fault>(())
            })?;
            self.places[Field::Finalizers as usize] = Place::Tail(from, self.tail.len());
        }
        Ok(())
    }

    /// An array of owner references, or null.
    fn owners(&mut self, s: &mut Scanner<'_>, json: &str) -> Result<(), Fault> {
        const NAME: &str = "metadata.ownerReferences";
        if !self.array(s, Field::Owners, NAME)? {
            return Ok(());
        }
        let start = s.at();
        s.elements(|s| {
            match s.peek()? {
                Token::Object => {}
                other => return shape(NAME, other, "an object"),
            }
            s.members(|s, key| {
                let token = s.peek()?;
                let (known, wanted, right) = match &*key.get(json) {
                    "apiVersion" | "kind" | "name" | "uid" => (true, "a string", Token::String),
                    "controller" | "blockOwnerDeletion" => (true, "a boolean", Token::Bool),
                    _ => (false, "", Token::Null),
                };
                if known && token != right && token != Token::Null {
                    return shape("a member of metadata.ownerReferences", token, wanted);
                }
                s.value()?;
                Ok(())
            })
        })?;
        self.places[Field::Owners as usize] = Place::Json(start, s.at());
        Ok(())
    }

    /// Whether an array comes next; a null is consumed.
    fn array(&mut self, s: &mut Scanner<'_>, field: Field, name: &str) -> Result<bool, Fault> {
        match s.peek()? {
            Token::Array => Ok(true),
            Token::Null => {
                s.value()?;
                self.places[field as usize] = Place::Absent;
                Ok(false)
            }
            other => shape(name, other, "an array"),
        }
    }
}

fn string_or_null(s: &mut Scanner<'_>, name: &str) -> Result<Option<Text>, Fault> {
    match s.peek()? {
        Token::String => Ok(Some(s.string()?)),
        // Go reads it as an empty string.
        Token::Null => {
            s.value()?;
            Ok(None)
        }
        other => shape(name, other, "a string in every place"),
    }
}

/// Keeps count of commas, so that an object or array stays one when members are cut out of it.
#[derive(Default)]
struct Cutter {
    kept: bool,
    start: usize,
    comma: usize,
}

impl Cutter {
    /// Before a member.
    fn begin(&mut self, s: &mut Scanner<'_>) {
        let _ = s.peek();
        self.start = s.at();
    }

    /// After its value; whether another member follows.
    fn end(
        &mut self,
        s: &mut Scanner<'_>,
        object: bool,
        cut: bool,
        cuts: &mut Vec<(usize, usize)>,
    ) -> Result<bool, SyntaxError> {
        let end = s.at();
        let more = s.next_in(object)?;
        if cut {
            // With a kept member before, its comma goes along; with none, the comma after.
            cuts.push(match (self.kept, more) {
                (true, _) => (self.comma, end),
                (false, true) => (self.start, s.at()),
                (false, false) => (self.start, end),
            });
        }
        self.kept |= !cut;
        self.comma = s.at() - 1;
        Ok(more)
    }
}

/// What can still be learnt of an object that cannot be read: whose it is.
#[derive(Default)]
pub(crate) struct Salvage {
    name: String,
    namespace: String,
    resource_version: String,
}

impl Salvage {
    /// Reads as far as it makes sense.
    pub(crate) fn of(json: &str) -> Self {
        let mut found = Self::default();
        let mut s = Scanner::new(json);
        let _ = s.members(|s, key| {
            if !key.is(json, "metadata") || s.peek()? != Token::Object {
                return s.value().map(drop);
            }
            s.members(|s, key| {
                let place = match &*key.get(json) {
                    "name" => &mut found.name,
                    "namespace" => &mut found.namespace,
                    "resourceVersion" => &mut found.resource_version,
                    _ => return s.value().map(drop),
                };
                if s.peek()? != Token::String {
                    return s.value().map(drop);
                }
                *place = s.string()?.get(json).into_owned();
                Ok(())
            })
        });
        found
    }

    /// The error with what was learnt.
    pub(crate) fn error(self, message: String) -> ObjectError {
        let key = (!self.name.is_empty()).then(|| Key::namespaced(&self.namespace, &self.name));
        ObjectError { key, resource_version: self.resource_version, message }
    }
}
