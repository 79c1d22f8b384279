//! JSON as agents send it, read strictly: bounded, and no name twice.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::unheard::Wrong;

/// The largest payload that is read, in bytes. Whoever reads it may stop one byte later.
pub const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The most values in one payload: a few bytes each would fill the memory otherwise.
const MOST_VALUES: u32 = 1_000_000;

pub(super) struct Fields<'a> {
    map: Cow<'a, Map<String, Value>>,
    mended: bool,
}

impl Fields<'static> {
    pub fn parse(bytes: &[u8]) -> Result<Self, Wrong> {
        if bytes.len() > MOST_BYTES {
            return Err(Wrong::TooLarge);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Wrong::NotText)?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(Wrong::Empty);
        }
        let (text, mended) = match mend(text) {
            Some(whole) => (Cow::Owned(whole), true),
            None => (Cow::Borrowed(text), false),
        };
        let room = Cell::new(MOST_VALUES);
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        let value = Strict(&room).deserialize(&mut deserializer);
        let value = value.and_then(|value| deserializer.end().map(|()| value));
        match value {
            Ok(Value::Object(map)) => Ok(Fields { map: Cow::Owned(map), mended }),
            Ok(_) => Err(Wrong::NotAnObject),
            Err(_) if room.get() == 0 => Err(Wrong::TooLarge),
            Err(error) if error.is_data() => Err(Wrong::Twice { line: error.line(), column: error.column() }),
            Err(error) => Err(Wrong::NotJson { line: error.line(), column: error.column() }),
        }
    }
}

impl Fields<'_> {
    /// The text under `name`. `null` is as if it were not there.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, Wrong> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Wrong::WrongType(name)),
        }
    }

    /// The text under `name`, where nothing depends on it: something else is as if it were not there.
    pub fn hint(&self, name: &str) -> Option<&str> {
        self.map.get(name).and_then(Value::as_str)
    }

    /// The object under `name`.
    pub fn object(&self, name: &'static str) -> Result<Option<Fields<'_>>, Wrong> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => Ok(Some(self.part(map))),
            Some(_) => Err(Wrong::WrongType(name)),
        }
    }

    /// The object that these names lead to, one in another, where nothing depends on it.
    pub fn at(&self, names: &[&str]) -> Option<Fields<'_>> {
        let mut map: &Map<String, Value> = &self.map;
        for name in names {
            map = map.get(*name)?.as_object()?;
        }
        Some(self.part(map))
    }

    /// The objects in the list under `name`; whatever else stands there is left out.
    pub fn objects(&self, name: &str) -> impl Iterator<Item = Fields<'_>> {
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
    pub fn is_cut(&self, text: &str) -> bool {
        self.mended && text.contains('\u{FFFD}')
    }

    pub fn none() -> Self {
        Self { map: Cow::Owned(Map::new()), mended: false }
    }

    fn part<'a>(&self, map: &'a Map<String, Value>) -> Fields<'a> {
        Fields { map: Cow::Borrowed(map), mended: self.mended }
    }
}

/// Half of a surrogate pair, as JavaScript writes a text that was cut within a character, becomes a replacement character:
/// otherwise a cut text somewhere in the payload would deny an edit that it has nothing to do with. `None`: nothing to do.
fn mend(text: &str) -> Option<String> {
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
struct Strict<'a>(&'a Cell<u32>);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.0.get().checked_sub(1).filter(|left| *left > 0);
        self.0.set(left.unwrap_or(0));
        if left.is_none() {
            return Err(D::Error::custom("too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
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
