//! Reads requests strictly, and never repeats a value in an error: it may be a secret in the wrong place.
//!
//! A request must not mean two things. Unknown fields, duplicate names, `null` and numbers out of range are rejected, and
//! so is nesting that no request needs. `serde_json` alone accepts `null` for an absent field and quotes values, so a request
//! becomes a small tree first, which borrows its texts from the bytes, and the tree is deserialized with [`ReadError`].

use std::borrow::Cow;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Number;

/// The deepest nesting. No request needs more than six levels.
const MAX_DEPTH: usize = 16;

/// Names of fields are shorter, tokens are longer.
const MAX_SHOWN_NAME_BYTES: usize = 32;

/// Why bytes are not the expected request: the place, and the rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Such as `leases[0].ttlMs`; empty for the whole.
    path: String,
    reason: String,
}

impl ReadError {
    fn new(reason: impl Into<String>) -> Self {
        Self { path: String::new(), reason: reason.into() }
    }

    fn in_field(mut self, name: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{}{separator}{}", shown_name(name), self.path);
        self
    }

    fn in_entry(mut self, index: usize) -> Self {
        let separator = if self.path.is_empty() { "" } else { "." };
        self.path = format!("[{index}]{separator}{}", self.path);
        self
    }

    /// The field, such as `leases[0].ttlMs`; empty if the whole is not as expected.
    pub fn field(&self) -> &str {
        &self.path
    }

    /// The rule that does not hold, such as `is missing`.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.path.is_empty() { "" } else { ": " };
        write!(formatter, "{}{separator}{}", self.path, self.reason)
    }
}

impl std::error::Error for ReadError {}

/// What derived code reports. The values in [`Unexpected`] are left out.
impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be one of `{}`", expected.join("`, `")))
    }

    fn unknown_field(name: &str, _: &'static [&'static str]) -> Self {
        Self {
            path: format!("{:?}", shown_name(name)),
            reason: "is not a field of this request; leave it out".into(),
        }
    }

    fn missing_field(name: &'static str) -> Self {
        Self { path: name.into(), reason: "is missing".into() }
    }
}

fn shown_name(name: &str) -> &str {
    if name.len() > MAX_SHOWN_NAME_BYTES { "…" } else { name }
}

/// Reads a request from JSON.
pub fn read<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, ReadError> {
    T::deserialize(parse(json)?)
}

/// A JSON object of which some fields decide how the rest is read.
#[derive(Debug)]
pub struct JsonObject<'a>(Vec<(Cow<'a, str>, Node<'a>)>);

impl<'a> JsonObject<'a> {
    /// Reads a list of objects.
    pub fn read_list(json: &'a [u8]) -> Result<Vec<Self>, ReadError> {
        let not_objects = || ReadError::new("must be an array of objects");
        let Node::List(nodes) = parse(json)? else { return Err(not_objects()) };
        let objects = nodes.into_iter().map(|node| match node {
            Node::Object(fields) => Ok(Self(fields)),
            _ => Err(not_objects()),
        });
        objects.collect()
    }

    /// Removes a field and reads it.
    pub fn take<T: Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, ReadError> {
        let Some(index) = self.0.iter().position(|(field, _)| field == name) else { return Ok(None) };
        let (_, node) = self.0.remove(index);
        T::deserialize(node).map(Some).map_err(|error| error.in_field(name))
    }

    /// Reads the remaining fields.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, ReadError> {
        T::deserialize(Node::Object(self.0))
    }
}

/// A JSON value. Texts without escapes are borrowed.
#[derive(Debug)]
enum Node<'a> {
    Null,
    Flag(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

fn parse(json: &[u8]) -> Result<Node<'_>, ReadError> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let node = NodeSeed { levels: MAX_DEPTH }.deserialize(&mut deserializer);
    // The parser names a place and a rule of JSON, and repeats nothing.
    let node = node.and_then(|node| deserializer.end().map(|()| node));
    node.map_err(|error| ReadError::new(format!("is not JSON as we read it: {error}")))
}

/// Parses a value with at most so many levels.
#[derive(Clone, Copy)]
struct NodeSeed {
    levels: usize,
}

impl NodeSeed {
    fn nested<E: de::Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1);
        let too_deep = || E::custom(format_args!("nested deeper than {MAX_DEPTH}"));
        Ok(Self { levels: levels.ok_or_else(too_deep)? })
    }
}

impl<'de> DeserializeSeed<'de> for NodeSeed {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed {
    type Value = Node<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node<'de>, E> {
        Number::from_f64(value).map(Node::Number).ok_or_else(|| E::custom("a number that does not fit"))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node<'de>, A::Error> {
        let seed = self.nested()?;
        let mut nodes = Vec::new();
        while let Some(node) = access.next_element_seed(seed)? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node<'de>, A::Error> {
        let seed = self.nested()?;
        let mut fields: Vec<(Cow<'de, str>, Node<'de>)> = Vec::new();
        while let Some(Node::Text(name)) = access.next_key_seed(seed)? {
            fields.push((name, access.next_value_seed(seed)?));
        }
        reject_duplicates(&fields)?;
        Ok(Node::Object(fields))
    }
}

fn reject_duplicates<E: de::Error>(fields: &[(Cow<'_, str>, Node<'_>)]) -> Result<(), E> {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(E::custom("a name stands twice in one object"));
    }
    Ok(())
}

/// Reads an integer of a type. The type's range is part of the error.
macro_rules! deserialize_integers {
    ($($method:ident $visit:ident $integer:ty,)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            let number = match &self {
                Node::Number(number) if number.is_i64() => number.as_i64().and_then(|it| <$integer>::try_from(it).ok()),
                Node::Number(number) => number.as_u64().and_then(|it| <$integer>::try_from(it).ok()),
                _ => None,
            };
            let Some(number) = number else {
                let (min, max) = (<$integer>::MIN, <$integer>::MAX);
                return Err(ReadError::new(format!("must be a whole number from {min} to {max}")));
            };
            visitor.$visit(number)
        })+
    };
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Flag(flag) => visitor.visit_bool(flag),
            Node::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Node::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Node::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Node::List(nodes) => visitor.visit_seq(ListAccess { nodes: nodes.into_iter(), index: 0 }),
            Node::Object(fields) => {
                visitor.visit_map(ObjectAccess { fields: fields.into_iter(), value: None })
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Node::Flag(flag) => visitor.visit_bool(flag),
            _ => Err(ReadError::new("must be true or false")),
        }
    }

    deserialize_integers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_i64 visit_i64 i64,
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self {
            Node::Number(number) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            _ => Err(ReadError::new("must be a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Node::Text(_) => self.deserialize_any(visitor),
            _ => Err(ReadError::new("must be a string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    /// A field that is not absent has a value: `null` is not one.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Node::List(_) => self.deserialize_any(visitor),
            _ => Err(ReadError::new("must be an array")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Node::Object(_) => self.deserialize_any(visitor),
            _ => Err(ReadError::new("must be an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self {
            Node::Text(text) => visitor.visit_enum(UnitVariant(text)),
            _ => Err(ReadError::new("must be a string")),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// A variant without content, by its name.
struct UnitVariant<'a>(Cow<'a, str>);

impl<'de> EnumAccess<'de> for UnitVariant<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let name: StrDeserializer<'_, ReadError> = (*self.0).into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for UnitVariant<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, ReadError> {
        Err(ReadError::new("must be a string"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ReadError> {
        Err(ReadError::new("must be a string"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ReadError> {
        Err(ReadError::new("must be a string"))
    }
}

struct ListAccess<'a> {
    nodes: std::vec::IntoIter<Node<'a>>,
    index: usize,
}

impl<'de> SeqAccess<'de> for ListAccess<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.nodes.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(node).map(Some).map_err(|error| error.in_entry(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.nodes.len())
    }
}

struct ObjectAccess<'a> {
    fields: std::vec::IntoIter<(Cow<'a, str>, Node<'a>)>,
    /// The value of the name that was read last.
    value: Option<(Cow<'a, str>, Node<'a>)>,
}

impl<'de> MapAccess<'de> for ObjectAccess<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.value = self.fields.next();
        let Some((name, _)) = &self.value else { return Ok(None) };
        let name: StrDeserializer<'_, ReadError> = (**name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some((name, node)) = self.value.take() else { return Err(ReadError::new("has no value")) };
        seed.deserialize(node).map_err(|error| error.in_field(&name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Sample {
        name: String,
        #[serde(default)]
        ttl_ms: Option<u64>,
        #[serde(default)]
        small: u8,
        #[serde(default)]
        is_on: bool,
        #[serde(default)]
        parts: Vec<Part>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        kind: Kind,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    fn error(json: &str) -> String {
        read::<Sample>(json.as_bytes()).expect_err(json).to_string()
    }

    #[test]
    fn valid_json_is_read_as_serde_json_reads_it() {
        for text in
            [r#"{"a":[1,-2,3.5,"x",null,true,{"b":{}}]}"#, "[]", r#""ä\u00e4\n""#, "18446744073709551615"]
        {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read::<Value>(text.as_bytes()), Ok(expected));
        }
        let sample =
            read::<Sample>(br#"{"name":"a\n","ttlMs":7,"parts":[{"kind":"two"}],"labels":{"a":"b"}}"#)
                .unwrap();
        assert_eq!(
            (sample.name.as_str(), sample.ttl_ms, &sample.parts[0].kind),
            ("a\n", Some(7), &Kind::Two)
        );
        assert_eq!(sample.labels["a"], "b");
    }

    #[test]
    fn ambiguous_json_is_rejected() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"[{"a":1,"\u0061":2}]"#,
            "{} {}",
            "{",
            "",
            "1e999",
            "NaN",
            r#"{"a":1,}"#,
            "\u{feff}{}",
            "'a'",
        ] {
            assert!(read::<Value>(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read::<Value>(b"\"\xff\"").is_err());
    }

    #[test]
    fn sixteen_levels_are_read_and_seventeen_are_not() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(parse(nested(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(parse(nested(60_000).as_bytes()).is_err());
        let objects = r#"{"a":"#.repeat(17) + "1" + &"}".repeat(17);
        assert!(parse(objects.as_bytes()).is_err());
    }

    #[test]
    fn errors_name_the_place_and_the_rule() {
        assert_eq!(error("{}"), "name: is missing");
        assert_eq!(error("[]"), "must be an object");
        assert_eq!(error(r#"{"name":1}"#), "name: must be a string");
        assert_eq!(error(r#"{"name":null}"#), "name: must be a string");
        assert_eq!(
            error(r#"{"name":"a","ttlMs":null}"#),
            "ttlMs: must be a whole number from 0 to 18446744073709551615"
        );
        assert_eq!(error(r#"{"name":"a","small":256}"#), "small: must be a whole number from 0 to 255");
        assert_eq!(error(r#"{"name":"a","small":-1}"#), "small: must be a whole number from 0 to 255");
        assert_eq!(error(r#"{"name":"a","small":1.5}"#), "small: must be a whole number from 0 to 255");
        assert_eq!(error(r#"{"name":"a","isOn":1}"#), "isOn: must be true or false");
        assert_eq!(error(r#"{"name":"a","parts":{}}"#), "parts: must be an array");
        assert_eq!(error(r#"{"name":"a","parts":[{"kind":"one"},{}]}"#), "parts[1].kind: is missing");
        assert_eq!(
            error(r#"{"name":"a","parts":[{"kind":"x"}]}"#),
            "parts[0].kind: must be one of `one`, `two`"
        );
        assert_eq!(error(r#"{"name":"a","labels":{"b":1}}"#), "labels.b: must be a string");
        assert_eq!(error(r#"{"name":"a","ttl":1}"#), "\"ttl\": is not a field of this request; leave it out");
    }

    #[test]
    fn errors_never_repeat_a_value() {
        let secret = "tnr_qZ3-0aB_cDeFgHiJkLmNoPqRsTuVwXyZ0123456789A";
        for text in [
            format!(r#"{{"{secret}":1}}"#),
            format!(r#"{{"name":["{secret}"]}}"#),
            format!(r#"{{"name":"a","ttlMs":"{secret}"}}"#),
            format!(r#"{{"name":"a","small":"{secret}"}}"#),
            format!(r#"{{"name":"a","isOn":"{secret}"}}"#),
            format!(r#"{{"name":"a","parts":"{secret}"}}"#),
            format!(r#"{{"name":"a","parts":[{{"kind":"{secret}"}}]}}"#),
            format!(r#"{{"name":"a","labels":{{"{secret}":1}}}}"#),
            format!(r#"{{"{secret}":1,"{secret}":1}}"#),
            format!(r#"{{"name":"{secret}"#),
            format!(r#""{secret}""#),
        ] {
            let error = error(&text);
            assert!(!error.contains(secret) && !error.contains("qZ3"), "{error}");
        }
    }

    #[test]
    fn fields_of_an_object_can_be_taken_before_the_rest_is_read() {
        let mut objects = JsonObject::read_list(br#"[{"id":7,"name":"a"},{"id":"x"}]"#).unwrap();
        let (mut second, mut first) = (objects.pop().unwrap(), objects.pop().unwrap());
        assert_eq!(first.take::<u64>("id"), Ok(Some(7)));
        assert_eq!(first.take::<u64>("id"), Ok(None));
        assert_eq!(first.read::<Sample>().unwrap().name, "a");
        let error = second.take::<u64>("id").expect_err("a string");
        assert_eq!(
            (error.field(), error.reason()),
            ("id", "must be a whole number from 0 to 18446744073709551615")
        );
        assert!(JsonObject::read_list(b"[1]").is_err() && JsonObject::read_list(b"{}").is_err());
    }
}
