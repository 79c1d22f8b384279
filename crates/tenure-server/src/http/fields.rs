//! The fields of a request, taken out one by one; what is left was not asked for by anybody.

use std::collections::BTreeMap;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::Uri;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tenure_api::Code;
use tenure_core::kernel::RequestDigest;

use super::body;
use super::response::HttpError;

/// The fields that were not taken yet. It has no `Debug`: one of them may be a token.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body, which must be one object.
    pub(crate) fn read(body: &[u8]) -> Result<Self, HttpError> {
        match body::parse(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(HttpError::new(Code::Invalid, "the body must be a JSON object")),
            // Our errors and the parser's name a place and a rule, and repeat nothing of the body.
            Err(error) => {
                Err(HttpError::new(Code::Invalid, format!("the body is not JSON as we read it: {error}")))
            }
        }
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        self.0
    }

    /// The fields of an object within a request.
    pub(crate) fn of(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    pub(crate) fn read_list(text: &[u8]) -> Result<Vec<Self>, HttpError> {
        let wrong = |why: String| HttpError::new(Code::Invalid, why);
        let parsed =
            body::parse(text).map_err(|error| wrong(format!("this is not JSON as we read it: {error}")))?;
        let Value::Array(values) = parsed else { return Err(wrong("send an array of objects".to_owned())) };
        let object = |value| match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(wrong("send an array of objects".to_owned())),
        };
        values.into_iter().map(object).collect()
    }

    /// Of what was not taken yet, in the one form that it has.
    pub(crate) fn digest(&self) -> RequestDigest {
        RequestDigest::of(&serde_json::to_vec(&self.0).expect("what was JSON can be written as JSON"))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String, HttpError> {
        self.optional_text(name)?.ok_or_else(|| HttpError::invalid(name, "is missing"))
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, HttpError> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(HttpError::invalid(name, "must be a string")),
        }
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<u64, HttpError> {
        self.optional_number(name)?.ok_or_else(|| HttpError::invalid(name, "is missing"))
    }

    pub(crate) fn optional_number(&mut self, name: &str) -> Result<Option<u64>, HttpError> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let number = value.as_u64();
        number.map(Some).ok_or_else(|| HttpError::invalid(name, "must be a whole number from 0 to 2^64 - 1"))
    }

    /// True or false; nothing where there is none.
    pub(crate) fn optional_flag(&mut self, name: &str) -> Result<Option<bool>, HttpError> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(HttpError::invalid(name, "must be true or false")),
        }
    }

    /// A number from 0 to 1; nothing where there is none.
    pub(crate) fn optional_fraction(&mut self, name: &str) -> Result<Option<f64>, HttpError> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
        number.map(Some).ok_or_else(|| HttpError::invalid(name, "must be a number from 0 to 1"))
    }

    /// The fields of an object; nothing where there is none.
    pub(crate) fn optional_fields(&mut self, name: &str) -> Result<Option<Fields>, HttpError> {
        Ok(self.optional_object(name)?.map(Fields))
    }

    /// The fields of an object, read together. What is wrong with one of them names the object too.
    pub(crate) fn read_object<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Fields) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        let fields = self.optional_fields(name)?.ok_or_else(|| HttpError::invalid(name, "is missing"))?;
        read(fields).map_err(|failure| failure.in_field(name))
    }

    /// A list of objects, each read by itself. What is wrong with one of them names its place too.
    pub(crate) fn each<T>(
        &mut self,
        name: &str,
        max_entries: usize,
        mut read: impl FnMut(Fields) -> Result<T, HttpError>,
    ) -> Result<Vec<T>, HttpError> {
        let objects = self.objects(name)?;
        if objects.len() > max_entries {
            let reason = format!("has {} entries; at most {max_entries} are allowed", objects.len());
            return Err(HttpError::invalid(name, &reason));
        }
        let place = |index: usize| format!("{name}[{index}]");
        let entries = objects.into_iter().enumerate();
        entries
            .map(|(index, fields)| read(fields).map_err(|failure| failure.in_field(&place(index))))
            .collect()
    }

    /// An object of strings; empty where there is none.
    pub(crate) fn texts(&mut self, name: &str) -> Result<BTreeMap<String, String>, HttpError> {
        let wrong = || HttpError::invalid(name, "must be an object whose values are strings");
        match self.0.remove(name) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(fields)) => fields
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(text) => Ok((name, text)),
                    _ => Err(wrong()),
                })
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// An object of whatever values; nothing where there is none.
    pub(crate) fn optional_object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, HttpError> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(_) => Err(HttpError::invalid(name, "must be an object")),
        }
    }

    pub(crate) fn objects(&mut self, name: &str) -> Result<Vec<Fields>, HttpError> {
        let wrong = || HttpError::invalid(name, "must be an array of objects");
        let Some(value) = self.0.remove(name) else { return Err(HttpError::invalid(name, "is missing")) };
        let Value::Array(values) = value else { return Err(wrong()) };
        let object =
            |value| if let Value::Object(fields) = value { Ok(Fields(fields)) } else { Err(wrong()) };
        values.into_iter().map(object).collect()
    }

    /// A list of strings; nothing where there is none.
    pub(crate) fn optional_list(&mut self, name: &str) -> Result<Option<Vec<String>>, HttpError> {
        let wrong = || HttpError::invalid(name, "must be a list of strings");
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Array(values)) => values
                .into_iter()
                .map(|value| match value {
                    Value::String(text) => Ok(text),
                    _ => Err(wrong()),
                })
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(wrong()),
        }
    }

    /// Refuses what nobody took: a caller counts on what it asked for.
    pub(crate) fn reject_remaining(self) -> Result<(), HttpError> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        let shown = without_long_words(name);
        Err(HttpError::invalid(&format!("{shown:?}"), "is not a field of this request; leave it out"))
    }
}

/// Reads the part of an address after `?`. A refusal says why, and repeats nothing that could be a secret.
pub(crate) fn parse_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, HttpError> {
    let refused =
        |error: QueryRejection| HttpError::new(Code::Invalid, without_long_words(&error.body_text()));
    Query::try_from_uri(uri).map(|Query(parsed)| parsed).map_err(refused)
}

/// What a caller wrote, without what could be a secret in the wrong place: no token of ours is as short as any name of
/// a field.
fn without_long_words(text: &str) -> String {
    let is_long = |word: &str| word.len() > 32;
    text.split(' ').map(|word| if is_long(word) { "…" } else { word }).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_secrets_are_redacted_from_errors() {
        assert_eq!(without_long_words("unknown variant `x`, expected"), "unknown variant `x`, expected");
        let secret = "tnr_qZ3-0aB_cDeFgHiJkLmNoPqRsTuVwXyZ0123456789A";
        assert_eq!(
            without_long_words(&format!("unknown variant `{secret}`, expected")),
            "unknown variant … expected"
        );
        let Err(refused) = Fields::read(format!("{{\"{secret}\":1}}").as_bytes())
            .unwrap_or_else(|_| panic!())
            .reject_remaining()
        else {
            panic!("it is not a field of anything")
        };
        assert!(!refused.0.detail.contains(secret) && refused.0.detail.contains("is not a field"));
    }
}
