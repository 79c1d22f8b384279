//! The fields of a line: `FIELD=VALUE` with blanks between, or the fields of an object.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::problem::{Problem, ProblemCode};

pub(super) const REQUEST_ID: &str = "requestId";

/// Reads words. The id is found even where something after it is wrong.
pub(super) fn parse_fields(mut rest: &str, id: &mut Option<String>) -> Result<Map<String, Value>, Problem> {
    let mut fields = Map::new();
    loop {
        rest = rest.trim_start_matches(' ');
        if rest.is_empty() {
            return Ok(fields);
        }
        let name = &rest[..rest.find(['=', ' ']).unwrap_or(rest.len())];
        let after = rest[name.len()..].strip_prefix('=');
        let Some(after) = after.filter(|_| is_name(name)) else {
            let message = "After the command come words FIELD=VALUE; one of these is none";
            return Err(Problem::new(ProblemCode::InvalidValue, message));
        };
        let (text, value, after) = value(name, after)?;
        rest = after;
        let is_first = if name == REQUEST_ID {
            id.replace(text).is_none()
        } else {
            fields.insert(name.to_owned(), value).is_none()
        };
        if !is_first {
            return Err(duplicate_field(name));
        }
    }
}

/// A field that stands twice: two programs could read it differently.
pub(super) fn duplicate_field(field: &str) -> Problem {
    Problem::of_field(ProblemCode::UnknownField, field, "stands twice; say it once")
}

/// A value at the beginning of `rest`: as it was written, as it is meant, and what comes behind it.
fn value<'a>(name: &str, rest: &'a str) -> Result<(String, Value, &'a str), Problem> {
    let wrong = |message| Err(Problem::of_field(ProblemCode::InvalidValue, name, message));
    if rest.starts_with('"') {
        let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let Some(Ok(text)) = texts.next() else {
            return wrong("begins with a quotation mark and does not end with one, as text in JSON does");
        };
        let after = &rest[texts.byte_offset()..];
        if !after.is_empty() && !after.starts_with(' ') {
            return wrong("has something right behind its text; put a blank between");
        }
        return Ok((text.clone(), Value::String(text), after));
    }
    let text = &rest[..rest.find(' ').unwrap_or(rest.len())];
    let after = &rest[text.len()..];
    if text.is_empty() {
        return wrong("has no value; for text without letters write \"\"");
    }
    if text.contains('"') || text.starts_with(['{', '[']) {
        return wrong("is more than a word; put text in quotation marks, and lists in a line of JSON");
    }
    let value = match serde_json::from_str(text) {
        Ok(Value::Null) => return wrong("is null, which no field can be; leave it out"),
        Ok(value) => value,
        // Neither a number nor true or false.
        Err(_) => Value::String(text.to_owned()),
    };
    Ok((text.to_owned(), value, after))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// An object, with the first of its names that stands twice.
pub(super) struct DuplicateCheckedObject {
    pub(super) fields: Map<String, Value>,
    pub(super) duplicate: Option<String>,
}

impl<'de> Deserialize<'de> for DuplicateCheckedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(JsonObjectVisitor)
    }
}

struct JsonObjectVisitor;

impl<'de> Visitor<'de> for JsonObjectVisitor {
    type Value = DuplicateCheckedObject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<DuplicateCheckedObject, A::Error> {
        let mut object = DuplicateCheckedObject { fields: Map::new(), duplicate: None };
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if object.fields.contains_key(&name) {
                object.duplicate.get_or_insert(name);
            } else {
                object.fields.insert(name, value);
            }
        }
        Ok(object)
    }
}
