//! Reads a body: JSON, not too large, not too slow.

use std::fmt;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use tenure_api::Code;
use tenure_core::kernel::RequestDigest;
use tokio::time::timeout;

use super::fields::Fields;
use super::response::HttpError;

/// The largest body, of most requests.
const MAX_BYTES: usize = 64 << 10;
/// The largest body of an intent, which may have many particulars.
const MAX_LARGE_BYTES: usize = 1 << 20;
/// The largest body of an agent, which may name many things: 256 intents, each with a path and a remark of 4 KiB.
const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// A body must be complete within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct JsonBody {
    pub(crate) fields: Fields,
    /// Of its bytes as they came, to tell a repeated request from another one.
    pub(crate) digest: RequestDigest,
}

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        let bytes = json_bytes(request, MAX_BYTES).await?;
        Ok(Self { fields: Fields::read(&bytes)?, digest: RequestDigest::of(&bytes) })
    }
}

/// A body that was read, and may have been larger than most.
pub(crate) struct LargeJsonBody(pub(crate) Fields);

impl<S: Send + Sync> FromRequest<S> for LargeJsonBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        Ok(Self(Fields::read(&json_bytes(request, MAX_LARGE_BYTES).await?)?))
    }
}

/// A body that was read, and may have named many things.
pub(crate) struct ManifestBody(pub(crate) Fields);

impl<S: Send + Sync> FromRequest<S> for ManifestBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        Ok(Self(Fields::read(&json_bytes(request, MAX_MANIFEST_BYTES).await?)?))
    }
}

async fn json_bytes(request: Request, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let (parts, body) = request.into_parts();
    let bytes = in_time(body, max_bytes).await?;
    if is_json(&parts.headers) {
        return Ok(bytes);
    }
    Err(HttpError::new(Code::UnsupportedType, "send JSON, with `Content-Type: application/json`"))
}

/// All of a body, if it is not too large and not too slow.
pub(crate) async fn bytes(body: Body) -> Result<Vec<u8>, HttpError> {
    in_time(body, MAX_BYTES).await
}

async fn in_time(body: Body, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let too_slow = |_| HttpError::new(Code::TooSlow, "the body was not complete within 10 s; send it again");
    timeout(BODY_TIMEOUT, collect(body, max_bytes)).await.map_err(too_slow)?
}

async fn collect(body: Body, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let too_large = || HttpError::new(Code::TooLarge, format!("a body has at most {max_bytes} bytes"));
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(HttpError::new(Code::Invalid, "the body ended before it was complete")),
    }
}

/// Whether a body says that it is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return false };
    let Ok(text) = only.to_str() else { return false };
    let (media_type, parameters) = text.split_once(';').unwrap_or((text, ""));
    let charset = parameters.trim().to_ascii_lowercase();
    media_type.trim().eq_ignore_ascii_case("application/json")
        && ["", "charset=utf-8", "charset=\"utf-8\""].contains(&charset.as_str())
}

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
