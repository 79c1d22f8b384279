//! JSON as agents send it, read strictly: bounded, and no name twice.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::payload::PayloadErrorKind;

/// The largest payload that is read, in bytes. Whoever reads it may stop one byte later.
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

/// The most values in one payload: a few bytes each would fill the memory otherwise.
const MAX_VALUES: u32 = 1_000_000;

pub(super) struct PayloadFields<'a> {
    map: Cow<'a, Map<String, Value>>,
    has_replacements: bool,
}

impl PayloadFields<'static> {
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadErrorKind> {
        if bytes.len() > MAX_PAYLOAD_BYTES {
            return Err(PayloadErrorKind::TooLarge);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| PayloadErrorKind::NotText)?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(PayloadErrorKind::Empty);
        }
        let (text, mended) = match replace_lone_surrogates(text) {
            Some(whole) => (Cow::Owned(whole), true),
            None => (Cow::Borrowed(text), false),
        };
        let remaining = Cell::new(MAX_VALUES);
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        let value = StrictValue(&remaining).deserialize(&mut deserializer);
        let value = value.and_then(|value| deserializer.end().map(|()| value));
        match value {
            Ok(Value::Object(map)) => Ok(PayloadFields { map: Cow::Owned(map), has_replacements: mended }),
            Ok(_) => Err(PayloadErrorKind::NotAnObject),
            Err(_) if remaining.get() == 0 => Err(PayloadErrorKind::TooLarge),
            Err(error) if error.is_data() => {
                Err(PayloadErrorKind::DuplicateName { line: error.line(), column: error.column() })
            }
            Err(error) => Err(PayloadErrorKind::NotJson { line: error.line(), column: error.column() }),
        }
    }
}

impl PayloadFields<'_> {
    /// The text under `name`. `null` is as if it were not there.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, PayloadErrorKind> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(PayloadErrorKind::WrongType(name)),
        }
    }

    /// The text under `name`, where nothing depends on it: something else is as if it were not there.
    pub fn lenient_text(&self, name: &str) -> Option<&str> {
        self.map.get(name).and_then(Value::as_str)
    }

    /// The object under `name`.
    pub fn object(&self, name: &'static str) -> Result<Option<PayloadFields<'_>>, PayloadErrorKind> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => Ok(Some(self.part(map))),
            Some(_) => Err(PayloadErrorKind::WrongType(name)),
        }
    }

    /// The object that these names lead to, one in another, where nothing depends on it.
    pub fn nested_object(&self, names: &[&str]) -> Option<PayloadFields<'_>> {
        let mut map: &Map<String, Value> = &self.map;
        for name in names {
            map = map.get(*name)?.as_object()?;
        }
        Some(self.part(map))
    }

    /// The objects in the list under `name`; whatever else stands there is left out.
    pub fn objects(&self, name: &str) -> impl Iterator<Item = PayloadFields<'_>> {
        let list = self.map.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object).map(|map| self.part(map))
    }

    /// Whatever stands under `name`.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub fn entries(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.map.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether half a character of `text` was replaced, so that it is not what the agent means.
    pub fn is_truncated(&self, text: &str) -> bool {
        self.has_replacements && text.contains('\u{FFFD}')
    }

    pub fn empty() -> Self {
        Self { map: Cow::Owned(Map::new()), has_replacements: false }
    }

    fn part<'a>(&self, map: &'a Map<String, Value>) -> PayloadFields<'a> {
        PayloadFields { map: Cow::Borrowed(map), has_replacements: self.has_replacements }
    }
}

/// Half of a surrogate pair, as JavaScript writes a text that was cut within a character, becomes a replacement character:
/// otherwise a cut text somewhere in the payload would deny an edit that it has nothing to do with. `None`: nothing to do.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let unit = |at: usize| {
        let digits = text.as_bytes().get(at..at + 6).filter(|part| part.starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(&digits[2..]).ok()?, 16).ok()
    };
    let mut mended = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        at += match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&text[kept..at]);
                mended.push_str("\\ufffd");
                kept = at + 6;
                6
            }
            Some(_) => 6,
            // A backslash and what it stands before, which may be longer than a byte where it is no JSON at all.
            None => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    (kept > 0).then(|| mended + &text[kept..])
}

/// Any value, but no object with one name twice, and no more values than there is room for.
#[derive(Clone, Copy)]
struct StrictValue<'a>(&'a Cell<u32>);

impl<'de> DeserializeSeed<'de> for StrictValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let remaining = self.0.get().checked_sub(1).filter(|count| *count > 0);
        self.0.set(remaining.unwrap_or(0));
        if remaining.is_none() {
            return Err(D::Error::custom("too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(self)? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom("one name twice"));
            }
            map.insert(name, access.next_value_seed(self)?);
        }
        Ok(map.into())
    }
}
