//! Reads intents and their parameters.

use serde_json::{Map, Value};
use tenure_api::IntentRequest;
use tenure_core::kernel::{Intent, IntentTarget};

use super::view;
use crate::http::response::HttpError;

pub(super) enum ParsedIntent {
    Start(Intent),
    Stop(String),
}

impl ParsedIntent {
    pub(super) fn parse(request: IntentRequest) -> Result<Self, HttpError> {
        match request.r#type.as_deref() {
            None | Some("stream.start") => parse_start(request).map(Self::Start),
            Some("stream.stop") => parse_stop(request).map(Self::Stop),
            Some(_) => Err(HttpError::invalid("type", "must be `stream.start` or `stream.stop`")),
        }
    }
}

/// Rejects fields that belong to the other type of intent.
fn reject_fields(fields: &[(&str, bool)], r#type: &str) -> Result<(), HttpError> {
    match fields.iter().find(|(_, is_present)| *is_present) {
        Some((name, _)) => {
            Err(HttpError::invalid(name, &format!("is not a field of `{type}`; leave it out")))
        }
        None => Ok(()),
    }
}

fn parse_stop(request: IntentRequest) -> Result<String, HttpError> {
    let other = [
        ("serviceRef", request.service_ref.is_some()),
        ("recordingID", request.recording_id.is_some()),
        ("profileID", request.profile_id.is_some()),
        ("startMs", request.start_ms.is_some()),
        ("params", request.params.is_some()),
    ];
    let session = request.session_id.ok_or_else(|| HttpError::invalid("session_id", "is missing"))?;
    reject_fields(&other, "stream.stop")?;
    Ok(session)
}

fn parse_start(request: IntentRequest) -> Result<Intent, HttpError> {
    let profile = request.profile_id.ok_or_else(|| HttpError::invalid("profileID", "is missing"))?;
    reject_fields(&[("session_id", request.session_id.is_some())], "stream.start")?;
    let target = target(request.service_ref, request.recording_id, request.start_ms)?;
    let correlation = request.correlation_id.filter(|text| !text.is_empty());
    let intent = Intent {
        target,
        profile: profile.into(),
        params: canonical(request.params.as_ref()).into(),
        correlation: correlation.map_or_else(view::new_correlation_id, Ok)?.into(),
    };
    intent.check()?;
    Ok(intent)
}

fn target(
    service: Option<String>,
    recording: Option<String>,
    start_ms: Option<u64>,
) -> Result<IntentTarget, HttpError> {
    match (service, recording) {
        (Some(service), None) if start_ms.is_none() => Ok(IntentTarget::Service(service.into())),
        (Some(_), None) => Err(HttpError::invalid("startMs", "is for recordings only; leave it out")),
        (None, Some(id)) => Ok(IntentTarget::Recording { id: id.into(), start_ms: start_ms.unwrap_or(0) }),
        _ => Err(HttpError::invalid("serviceRef", "send exactly one of `serviceRef` and `recordingID`")),
    }
}

/// The canonical form; nothing where there are no particulars.
pub(super) fn canonical(params: Option<&Map<String, Value>>) -> String {
    let Some(params) = params.filter(|params| !params.is_empty()) else { return String::new() };
    let mut text = String::new();
    put_object(&mut text, params);
    text
}

/// The particulars that a canonical form says.
pub(super) fn read(text: &str) -> Option<Map<String, Value>> {
    if text.is_empty() { None } else { serde_json::from_str(text).ok() }
}

fn put(text: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => put_object(text, fields),
        Value::Array(values) => {
            text.push('[');
            for (index, value) in values.iter().enumerate() {
                separate(text, index);
                put(text, value);
            }
            text.push(']');
        }
        // Of everything else there is one form already.
        value => text.push_str(&value.to_string()),
    }
}

fn put_object(text: &mut String, fields: &Map<String, Value>) {
    // By themselves they are in order too, unless somebody builds with another kind of map.
    let mut names: Vec<_> = fields.keys().collect();
    names.sort_unstable();
    text.push('{');
    for (index, name) in names.into_iter().enumerate() {
        separate(text, index);
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        put(text, &fields[name]);
    }
    text.push('}');
}

fn separate(text: &mut String, index: usize) {
    if index > 0 {
        text.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> String {
        let Ok(Value::Object(params)) = serde_json::from_str(text) else { panic!("{text}") };
        canonical(Some(&params))
    }

    #[test]
    fn equal_params_have_the_same_canonical_form() {
        let one = form(r#"{ "b": [1, {"y": null, "x": "ä\n\""}], "a": {"d": 1.5, "c": true} }"#);
        assert_eq!(one, r#"{"a":{"c":true,"d":1.5},"b":[1,{"x":"ä\n\"","y":null}]}"#);
        assert_eq!(one, form(r#"{"a":{"c":true,"d":1.5},"b":[1,{"x":"\u00e4\u000a\u0022","y":null}]}"#));
        assert_ne!(one, form(r#"{"a":{"c":true,"d":1.5},"b":[{"x":"ä\n\"","y":null},1]}"#));
    }

    #[test]
    fn empty_params_are_absent() {
        assert_eq!((canonical(None), form("{}")), (String::new(), String::new()));
        assert_eq!(read(""), None);
        assert_eq!(read(r#"{"a":1}"#).map(|params| params.len()), Some(1));
    }
}
