//! Fields of a command, read strictly: each field once, of its type and in its range, and no unknown field.

use std::fmt::Display;
use std::ops::RangeInclusive;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use hex::FromHexError;
use serde_json::{Map, Value};
use tenure_control::problem::{Problem, ProblemCode};

/// The most characters of a name that is repeated to whoever sent it.
const MAX_ECHOED_NAME_CHARACTERS: usize = 64;

/// The fields that nobody has taken yet.
pub struct DeviceCommandFields {
    remaining: Map<String, Value>,
}

impl DeviceCommandFields {
    pub fn new(fields: Map<String, Value>) -> Self {
        Self { remaining: fields }
    }

    pub fn is_empty(&self) -> bool {
        self.remaining.is_empty()
    }

    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.remaining.remove(name)
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong_type(name, "a text")),
        }
    }

    /// `true` or `false`.
    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(wrong_type(name, "true or false")),
        }
    }

    pub fn number(&mut self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
        self.take(name).map(|value| number(name, &value, range)).transpose()
    }

    /// The same, in a range that fits into 32 bits.
    pub fn number_u32(&mut self, name: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, Problem> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        Ok(self.number(name, range)?.and_then(|number| u32::try_from(number).ok()))
    }

    /// The same, in a range that fits into a byte.
    pub fn byte(&mut self, name: &str, range: RangeInclusive<u8>) -> Result<Option<u8>, Problem> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        Ok(self.number(name, range)?.and_then(|number| u8::try_from(number).ok()))
    }

    /// Nothing may be left. `known` are the fields that this command has.
    pub fn finish(self, known: &[&str]) -> Result<(), Problem> {
        let Some(name) = self.remaining.keys().next() else { return Ok(()) };
        let name: String = name.chars().take(MAX_ECHOED_NAME_CHARACTERS).collect();
        let message = match known {
            [] => "is not known: this command has no fields; leave it out".to_owned(),
            _ => format!("is not known here; leave it out. Fields of this command: {}", known.join(", ")),
        };
        Err(Problem::of_field(ProblemCode::UnknownField, &name, message))
    }
}

/// A field that must be there.
pub fn required<T>(value: Option<T>, name: &str, what: impl Display) -> Result<T, Problem> {
    value.ok_or_else(|| {
        Problem::of_field(ProblemCode::MissingField, name, format_args!("is missing; send {what}"))
    })
}

/// Of what type a field should have been.
pub fn wrong_type(name: &str, what: impl Display) -> Problem {
    Problem::of_field(ProblemCode::InvalidType, name, format_args!("must be {what}"))
}

/// A whole number in a range.
pub fn number(name: &str, value: &Value, range: RangeInclusive<u64>) -> Result<u64, Problem> {
    let Some(number) = value.as_number().filter(|number| !number.is_f64()) else {
        return Err(wrong_type(name, format_args!("a whole number, {} to {}", range.start(), range.end())));
    };
    number.as_u64().filter(|number| range.contains(number)).ok_or_else(|| {
        let message = format_args!("must be {} to {}", range.start(), range.end());
        Problem::of_field(ProblemCode::OutOfRange, name, message)
    })
}

/// Why a text is not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextDecodeError {
    /// A character that cannot be there.
    Character,
    /// The length cannot be, or the padding is not as it must be.
    Length,
    /// The last character says more than there are bytes for, so that two texts would be the same bytes.
    Ambiguous,
}

impl TextDecodeError {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Character => "has a character that cannot be there",
            Self::Length => "has a length that cannot be, or is not padded as it must be",
            Self::Ambiguous => "ends with a character that says more than there are bytes for",
        }
    }
}

/// Two digits a byte, of either case.
pub fn from_hex(text: &str) -> Result<Vec<u8>, TextDecodeError> {
    hex::decode(text).map_err(|error| match error {
        FromHexError::InvalidHexCharacter { .. } => TextDecodeError::Character,
        FromHexError::OddLength | FromHexError::InvalidStringLength => TextDecodeError::Length,
    })
}

/// Base64 with `+`, `/` and padding, as most programs write it.
pub fn from_base64(text: &str) -> Result<Vec<u8>, TextDecodeError> {
    STANDARD.decode(text).map_err(|error| match error {
        DecodeError::InvalidByte(_, b'=') | DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => {
            TextDecodeError::Length
        }
        DecodeError::InvalidByte(..) => TextDecodeError::Character,
        DecodeError::InvalidLastSymbol(..) => TextDecodeError::Ambiguous,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> DeviceCommandFields {
        DeviceCommandFields::new(value.as_object().expect("an object").clone())
    }

    fn code<T>(answer: Result<T, Problem>) -> &'static str {
        answer.err().map_or("OK", |problem| problem.code.as_str())
    }

    #[test]
    fn numbers_must_be_integers_within_their_range() {
        let read = |value: Value| code(fields(json!({ "a": value })).byte("a", 1..=100));
        assert_eq!([json!(1), json!(100)].map(read), ["OK", "OK"]);
        assert_eq!([json!(0), json!(101), json!(-5)].map(read), ["OUT_OF_RANGE"; 3]);
        assert_eq!(
            [json!("1"), json!(1.0), json!(null), json!([1]), json!(1e300)].map(read),
            ["INVALID_TYPE"; 5]
        );
    }

    #[test]
    fn unknown_fields_are_rejected_with_a_shortened_name() {
        let mut remaining = fields(json!({ "a": true, "b": "secret" }));
        assert_eq!(remaining.flag("a").expect("a flag"), Some(true));
        let problem = remaining.finish(&["a"]).expect_err("there is one too many");
        assert_eq!((problem.code, problem.field.as_deref()), (ProblemCode::UnknownField, Some("b")));
        assert!(!problem.message.contains("secret"));
        let long = fields(json!({ "x".repeat(10_000): 1 })).finish(&[]).expect_err("not known");
        assert!(long.message.len() < 200);
    }

    #[test]
    fn missing_and_mistyped_fields_are_reported() {
        assert_eq!(code(required(None::<u8>, "a", "a number")), "MISSING_FIELD");
        assert_eq!(code(fields(json!({ "a": 1 })).text("a")), "INVALID_TYPE");
        assert_eq!(code(fields(json!({ "a": "true" })).flag("a")), "INVALID_TYPE");
        assert_eq!(code(fields(json!({})).text("a")), "OK");
    }

    fn to_base64(bytes: &[u8]) -> String {
        STANDARD.encode(bytes)
    }

    #[test]
    fn known_hex_and_base64_texts_are_decoded() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(from_base64(text).as_deref(), Ok(bytes.as_bytes()));
            assert_eq!(to_base64(bytes.as_bytes()), text);
        }
        assert_eq!(from_hex("00fFa0").as_deref(), Ok([0, 255, 160].as_slice()));
    }

    #[test]
    fn malformed_hex_and_base64_are_rejected() {
        for text in ["Zg", "Zg=", "Z===", "Z=g=", "====", "Zg==Zg==", "Zm9v="] {
            assert_eq!(from_base64(text), Err(TextDecodeError::Length), "{text}");
        }
        for text in ["Zm 9", "Zm9\n", "Zm-_", "Zäg"] {
            assert_eq!(from_base64(text), Err(TextDecodeError::Character), "{text}");
        }
        assert_eq!(
            [from_base64("Zh=="), from_base64("Zm9=")],
            [const { Err(TextDecodeError::Ambiguous) }; 2]
        );
        assert_eq!(
            [from_hex("abc"), from_hex("0g")],
            [Err(TextDecodeError::Length), Err(TextDecodeError::Character)]
        );
    }

    proptest! {
        #[test]
        fn encoding_round_trips(bytes: Vec<u8>) {
            prop_assert_eq!(from_hex(&hex::encode(&bytes)), Ok(bytes.clone()));
            prop_assert_eq!(from_base64(&to_base64(&bytes)), Ok(bytes));
        }

        #[test]
        fn base64_is_rejected_or_canonical(text in "[A-Za-z0-9+/=]{0,12}") {
            if let Ok(bytes) = from_base64(&text) {
                prop_assert_eq!(to_base64(&bytes), text);
            }
        }
    }
}
