//! JSON, read strictly: what two programs could read differently is refused.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The deepest nesting. No request of ours has more than two.
const DEEPEST: usize = 16;

/// Reads one JSON value. Names that stand twice in an object and deep nesting are refused.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = StrictValueSeed { levels: DEEPEST }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads a value with at most so many levels.
#[derive(Clone, Copy)]
struct StrictValueSeed {
    levels: usize,
}

impl StrictValueSeed {
    fn nested<E: de::Error>(self) -> Result<StrictValueSeed, E> {
        let levels = self.levels.checked_sub(1);
        let too_deep = || E::custom(format_args!("nested deeper than {DEEPEST}"));
        Ok(StrictValueSeed { levels: levels.ok_or_else(too_deep)? })
    }
}

impl<'de> DeserializeSeed<'de> for StrictValueSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValueSeed {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that does not fit"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.nested()?;
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(seed)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.nested()?;
        let mut values = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if values.contains_key(&name) {
                return Err(de::Error::custom("a name stands twice in one object"));
            }
            values.insert(name, access.next_value_seed(seed)?);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_json_is_parsed_as_serde_parses_it() {
        for text in
            [r#"{"a":[1,-2,3.5,"x",null,true,{"b":{}}]}"#, "[]", r#""ä\u00e4\n""#, "18446744073709551615"]
        {
            assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
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
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn sixteen_levels_are_read_and_seventeen_are_not() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(nested(DEEPEST).as_bytes()).is_ok());
        assert!(parse(nested(DEEPEST + 1).as_bytes()).is_err());
        assert!(parse(nested(60_000).as_bytes()).is_err());
        let objects = r#"{"a":"#.repeat(17) + "1" + &"}".repeat(17);
        assert!(parse(objects.as_bytes()).is_err());
    }
}
