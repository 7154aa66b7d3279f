//! [`Object`]: the JSON as it came, and where in it the fields are that the runtime decides on.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::error::without_values;
use super::parts::{FIELDS, Field, Parts, Place, Salvage};
use super::reads::Meter;
use super::scan::{Scanner, plain_end};
use super::strings::{Annotations, Finalizers, Labels, owners};
use super::{Dropped, Key, ObjectError, OwnerReference, Resource, pack};
use crate::api::ResourceType;
use crate::limits;

/// How objects are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectOptions {
    /// What of each object is not kept; by default `metadata.managedFields`.
    pub dropped: Dropped,
    /// Keep `apiVersion`, `kind` and `metadata` alone, whatever came: for metadata-only requests, which some servers
    /// answer with whole objects.
    pub metadata_only: bool,
    /// `apiVersion` and `kind` for objects that lack them, as the items of a list of built-in objects do, and for
    /// those of a metadata-only answer, which bear the type `PartialObjectMetadata` instead of their own.
    pub default_type: Option<(String, String)>,
}

impl ObjectOptions {
    /// The defaults, for the objects of one resource.
    #[must_use]
    pub fn of(resource: &ResourceType) -> Self {
        Self {
            default_type: Some((resource.api_version(), resource.kind.clone().into_owned())),
            ..Self::default()
        }
    }

    /// Everything is kept, and nothing put in.
    #[must_use]
    pub const fn whole() -> Self {
        Self { dropped: Dropped::none(), metadata_only: false, default_type: None }
    }

    /// Drops this, and nothing else.
    #[must_use]
    pub fn dropping(mut self, dropped: Dropped) -> Self {
        self.dropped = dropped;
        self
    }

    /// Keeps metadata alone.
    #[must_use]
    pub const fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }
}

/// One Kubernetes object: one immutable allocation that holds its JSON as it came and where in it the few fields are
/// that the runtime decides on. Cloning shares it.
///
/// Nothing is deserialised before [`parse`](Self::parse) or [`get`](Self::get) asks for it, so that a schema the
/// program does not understand costs one reconcile and not the stream, and a cache costs little more than the bytes
/// on the wire (less, without `managedFields`).
///
/// What it insists on: JSON throughout (nested no deeper than Go allows), `metadata.name`, and the right JSON types
/// for the fields it decides on. With duplicate members the last counts. Names of members are matched exactly.
///
/// ```
/// use steersman_core::object::{Key, Object, Resource};
/// let o = Object::from_json(br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n",
///     "resourceVersion":"7","labels":{"mirror":"true"}},"data":{"k":"v"}}"#)?;
/// assert_eq!(o.key(), Key::namespaced("n", "a"));
/// assert_eq!(o.label("mirror"), Some("true"));
/// assert_eq!(o.get::<String>(&["data", "k"])?.as_deref(), Some("v"));
/// # Ok::<(), steersman_core::object::ObjectError>(())
/// ```
#[derive(Clone)]
pub struct Object {
    /// JSON; then what of the fields had to be unescaped; then the table of places; then one byte, its width.
    ///
    /// The table is made of bytes of seven bits, so that all of it is text: one allocation, and neither unsafe code
    /// nor a second look for valid UTF-8 between it and a `&str`.
    text: Arc<str>,
    /// Who counts what is read of it.
    meter: Option<Arc<Meter>>,
}

/// Numbers of the table: start and end of each field, and the length of the JSON.
pub(super) const NUMBERS: usize = 2 * FIELDS + 1;
/// Four bytes of seven bits.
const LONGEST: usize = 1 << 28;

impl Object {
    /// Reads an object with the default options.
    ///
    /// # Errors
    /// What is no JSON, has no `metadata.name`, or has a field of a wrong type that the runtime decides on.
    pub fn from_json(raw: &[u8]) -> Result<Self, ObjectError> {
        Self::from_json_with(raw, &ObjectOptions::default())
    }

    /// Reads an object.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_json_with(raw: &[u8], options: &ObjectOptions) -> Result<Self, ObjectError> {
        Self::from_json_in(raw, options, &mut String::new())
    }

    /// The same, put together in a buffer that is used again: beside the objects, which stay, one that comes and goes with
    /// each of them leaves holes in the heap.
    pub(crate) fn from_json_in(
        raw: &[u8],
        options: &ObjectOptions,
        scratch: &mut String,
    ) -> Result<Self, ObjectError> {
        let Ok(json) = core::str::from_utf8(raw) else {
            return Err(Salvage::of(&String::from_utf8_lossy(raw)).error("not UTF-8".to_owned()));
        };
        let mut scanner = Scanner::new(json);
        let result = Self::scan(&mut scanner, json, options, scratch)
            .and_then(|object| scanner.end().map(|()| object).map_err(|e| format!("not JSON: {e}")));
        result.map_err(|message| Salvage::of(json).error(message))
    }

    /// Reads the object that `json` begins with, and says where it ends; `None` if there is none that can be kept, or not all
    /// of it.
    pub(crate) fn from_front(
        json: &str,
        options: &ObjectOptions,
        scratch: &mut String,
    ) -> Option<(Self, usize)> {
        let mut scanner = Scanner::new(json);
        let object = Self::scan(&mut scanner, json, options, scratch).ok()?;
        Some((object, scanner.at()))
    }

    /// The object made of any serialisable value.
    ///
    /// # Errors
    /// If the value does not serialise to a JSON object with a `metadata.name`.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, ObjectError> {
        let json = serde_json::to_vec(value).map_err(|e| ObjectError::new(without_values(&e)))?;
        Self::from_json_with(&json, &ObjectOptions::whole())
    }

    /// Reads the object that comes next in `json`, which may hold more.
    pub(crate) fn scan(
        scanner: &mut Scanner<'_>,
        json: &str,
        options: &ObjectOptions,
        scratch: &mut String,
    ) -> Result<Self, String> {
        let parts = Parts::scan(scanner, json, options)?;
        parts.check_name(json)?;
        scratch.clear();
        let object = Self::assemble(&parts, json, options, scratch);
        if scratch.capacity() > limits::SCRATCH_BYTES {
            *scratch = String::new();
        }
        object
    }

    fn assemble(
        parts: &Parts,
        json: &str,
        options: &ObjectOptions,
        text: &mut String,
    ) -> Result<Self, String> {
        let (start, end) = parts.span;
        let mut places = parts.places;
        text.reserve(end - start + parts.tail.len() + 4 * NUMBERS + 1);
        let mut tail = Cow::Borrowed(parts.tail.as_str());
        // After the brace: the type, if it is not there.
        let mut from = start + 1;
        text.push('{');
        let mut put_type = |text: &mut String, late: bool| {
            let Some((api_version, kind)) = &options.default_type else { return };
            for (field, name, value) in
                [(Field::Kind, "kind", kind), (Field::ApiVersion, "apiVersion", api_version)]
            {
                if places[field as usize] != Place::Absent
                    || value.is_empty()
                    || parts.overruled[field as usize] != late
                {
                    continue;
                }
                text.push_str(if late { ",\"" } else { "\"" });
                text.push_str(name);
                text.push_str("\":");
                if plain_end(value.as_bytes(), 0) == value.len() {
                    let start = text.len() + 1;
                    for part in ["\"", value, "\""] {
                        text.push_str(part);
                    }
                    places[field as usize] = Place::Text(start, start + value.len());
                } else {
                    text.push_str(&serde_json::to_string(value).unwrap_or_default());
                    places[field as usize] = Place::Tail(tail.len(), tail.len() + value.len());
                    tail.to_mut().push_str(value);
                }
                if !late {
                    text.push(',');
                }
            }
        };
        put_type(text, false);
        let grown = text.len() - 1;
        for &(cut, until) in &parts.cuts {
            text.push_str(&json[from..cut]);
            from = until;
        }
        text.push_str(&json[from..end - 1]);
        // Where an earlier one was there, only a later one counts.
        put_type(text, true);
        text.push('}');
        let length = text.len();
        text.push_str(&tail);
        if text.len() >= LONGEST {
            return Err(format!("longer than {LONGEST} bytes"));
        }
        let width = match text.len() {
            0..0x80 => 1,
            0x80..0x4000 => 2,
            0x4000..0x20_0000 => 3,
            _ => 4,
        };
        let mut table = [0; 4 * NUMBERS + 1];
        let mut at = 0;
        let mut number = |n: usize| {
            for i in (0..width).rev() {
                table[at] = (n >> (7 * i) & 0x7F) as u8;
                at += 1;
            }
        };
        let moved = |at: usize| {
            let before = parts.cuts.iter().take_while(|cut| cut.1 <= at);
            at + grown - start - before.map(|cut| cut.1 - cut.0).sum::<usize>()
        };
        for place in places {
            let (a, b) = match place {
                Place::Absent => (0, 0),
                Place::Json(a, b) => (moved(a), moved(b)),
                Place::Text(a, b) => (a, b),
                Place::Tail(a, b) => (length + a, length + b),
            };
            number(a);
            number(b);
        }
        number(length);
        table[at] = width as u8;
        text.push_str(core::str::from_utf8(&table[..=at]).unwrap_or_default());
        Ok(Self { text: text.as_str().into(), meter: None })
    }

    /// Number `n` of the table.
    #[inline]
    fn number(&self, n: usize) -> usize {
        let bytes = self.text.as_bytes();
        let width = usize::from(bytes[bytes.len() - 1]);
        let at = bytes.len() - 1 - (NUMBERS - n) * width;
        bytes[at..at + width].iter().fold(0, |value, &b| value << 7 | usize::from(b))
    }

    /// The text of a field; empty if it is absent.
    #[inline]
    fn field(&self, field: Field) -> &str {
        &self.text[self.number(2 * field as usize)..self.number(2 * field as usize + 1)]
    }

    /// The text of a field and whether it is unescaped already.
    fn list(&self, field: Field) -> (&str, bool) {
        (self.field(field), self.number(2 * field as usize) >= self.number(2 * FIELDS))
    }

    /// Who counts what is read of it.
    #[must_use]
    pub const fn meter(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }

    /// The object's JSON, without what the options dropped.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        self.json().as_bytes()
    }

    /// The object's JSON as text.
    #[must_use]
    pub fn json(&self) -> &str {
        let json = self.all();
        if let Some(meter) = &self.meter {
            meter.whole(json.len());
        }
        json
    }

    /// Its JSON, which nobody counts.
    fn all(&self) -> &str {
        &self.text[..self.number(2 * FIELDS)]
    }

    /// Bytes of memory that this object holds, shared by all its clones.
    #[must_use]
    pub fn retained_bytes(&self) -> usize {
        self.text.len() + 2 * size_of::<usize>()
    }

    /// Whether both are clones of one object, without a look at what is in them.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text)
    }

    /// `apiVersion`; empty if absent. As to metadata-only reads, see [`kind`](Self::kind).
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.field(Field::ApiVersion)
    }

    /// `kind`; empty if absent. An object of which only the metadata was read is of its own kind, not a
    /// `PartialObjectMetadata`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.field(Field::Kind)
    }

    /// `metadata.name`; never empty.
    #[must_use]
    pub fn name(&self) -> &str {
        self.field(Field::Name)
    }

    /// `metadata.namespace`; `None` for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        Some(self.field(Field::Namespace)).filter(|ns| !ns.is_empty())
    }

    /// `metadata.uid`; empty if absent.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.field(Field::Uid)
    }

    /// `metadata.resourceVersion`; empty if absent.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.field(Field::ResourceVersion)
    }

    /// `metadata.generation`, if there is one and it is a whole number of 64 bits.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.field(Field::Generation).parse().ok()
    }

    /// `metadata.creationTimestamp`, as RFC 3339 text.
    #[must_use]
    pub fn creation_timestamp(&self) -> Option<&str> {
        Some(self.field(Field::Created)).filter(|t| !t.is_empty())
    }

    /// `metadata.deletionTimestamp`, as RFC 3339 text: the object is ending, and waits for its finalizers.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&str> {
        Some(self.field(Field::Deleted)).filter(|t| !t.is_empty())
    }

    /// Whether it has a deletion timestamp.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp().is_some()
    }

    /// `metadata.labels`, in the order of the JSON.
    #[must_use]
    pub fn labels(&self) -> Labels<'_> {
        let (text, plain) = self.list(Field::Labels);
        Labels::new(text, plain)
    }

    /// One label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels().filter(|(k, _)| *k == name).last().map(|(_, v)| v)
    }

    /// `metadata.annotations`, in the order of the JSON.
    #[must_use]
    pub fn annotations(&self) -> Annotations<'_> {
        Annotations::new(self.field(Field::Annotations))
    }

    /// One annotation.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<Cow<'_, str>> {
        self.annotations().filter(|(k, _)| k == name).last().map(|(_, v)| v)
    }

    /// `metadata.ownerReferences`.
    #[must_use]
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        let mut all = Vec::new();
        owners(self.field(Field::Owners), &mut |owner| all.push(owner));
        all
    }

    /// The owner that manages this object, if one does.
    #[must_use]
    pub fn controller_owner(&self) -> Option<OwnerReference> {
        self.owner_references().into_iter().find(|owner| owner.controller == Some(true))
    }

    /// Whether the object with this uid is among the owners.
    #[must_use]
    pub fn is_owned_by(&self, uid: &str) -> bool {
        let mut found = false;
        owners(self.field(Field::Owners), &mut |owner| found |= owner.uid == uid);
        found && !uid.is_empty()
    }

    /// `metadata.finalizers`.
    #[must_use]
    pub fn finalizers(&self) -> Finalizers<'_> {
        let (text, plain) = self.list(Field::Finalizers);
        Finalizers::new(text, plain)
    }

    /// Whether this finalizer is set.
    #[must_use]
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers().any(|f| f == name)
    }

    /// The JSON of the value at a path of member names, such as `["spec", "replicas"]`; `None` if there is none.
    /// A `null` is there.
    #[must_use]
    pub fn raw_at(&self, path: &[&str]) -> Option<&str> {
        let mut json = self.all();
        for name in path {
            let mut found = None;
            let mut scanner = Scanner::new(json);
            let mut more = scanner.open_object().ok()?;
            while more {
                let here = scanner.key().ok()?.is(json, name);
                let span = scanner.value().ok()?;
                if here {
                    found = Some(span);
                }
                more = scanner.next_member().ok()?;
            }
            let (start, end) = found?;
            json = &json[start..end];
        }
        match (&self.meter, path.first()) {
            (None, _) | (_, Some(&("metadata" | "apiVersion" | "kind"))) => {}
            (Some(meter), None) => meter.whole(json.len()),
            (Some(meter), Some(_)) => meter.part(json.len()),
        }
        Some(json)
    }

    /// Deserialises the value at a path of member names; `None` if it is absent or `null`.
    ///
    /// # Errors
    /// If the value is there but not a `T`.
    pub fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>, ObjectError> {
        match self.raw_at(path) {
            None => Ok(None),
            Some(json) => serde_json::from_str(json)
                .map_err(|e| self.error(format!("{}: {}", path.join("."), without_values(&e)))),
        }
    }

    /// Deserialises the object.
    ///
    /// # Errors
    /// If it is not a `K`; the error bears the object's key.
    pub fn parse<K: DeserializeOwned>(&self) -> Result<K, ObjectError> {
        serde_json::from_str(self.json()).map_err(|e| self.error(without_values(&e)))
    }

    /// The object as a tree of values, for changes by hand. Numbers beyond 64 bits lose precision here, not in
    /// [`raw`](Self::raw).
    ///
    /// # Errors
    /// If it nests deeper than 127 levels, or holds a number beyond the range of `f64`.
    pub fn value(&self) -> Result<serde_json::Value, ObjectError> {
        self.parse()
    }

    fn error(&self, message: String) -> ObjectError {
        ObjectError { key: Some(self.key()), resource_version: self.resource_version().to_owned(), message }
    }
}

impl Resource for Object {
    fn key(&self) -> Key {
        Key::namespaced(self.field(Field::Namespace), self.name())
    }

    fn uid(&self) -> &str {
        self.field(Field::Uid)
    }

    fn resource_version(&self) -> &str {
        self.field(Field::ResourceVersion)
    }

    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference)) {
        owners(self.field(Field::Owners), &mut |owner| each(&owner));
    }

    /// The same object, of which `meter` counts what is read beyond the metadata.
    fn metered(mut self, meter: &Arc<Meter>) -> Self {
        self.meter = Some(Arc::clone(meter));
        self
    }

    fn to_packable(&self, out: &mut Vec<u8>) -> bool {
        pack::append(&self.text, out);
        true
    }

    fn from_packable(bytes: &mut [u8]) -> Option<Self> {
        Some(Self { text: pack::read(bytes)?.into(), meter: None })
    }
}

/// Equal JSON, byte for byte.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other) || self.text == other.text
    }
}

impl Eq for Object {}

/// Kind, key and version; no data, which may be secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.kind().is_empty() { "Object" } else { self.kind() };
        write!(f, "{kind}({} @{})", self.key(), self.resource_version())
    }
}

/// As its JSON; with `serde_json` only.
impl Serialize for Object {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.json()).map_err(serde::ser::Error::custom)?;
        raw.serialize(s)
    }
}

/// With the default options; with `serde_json` only.
impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = alloc::boxed::Box::<RawValue>::deserialize(d)?;
        Self::from_json(raw.get().as_bytes()).map_err(serde::de::Error::custom)
    }
}
