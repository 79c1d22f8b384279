//! What somebody wants, read strictly.

use tenure_api::IntentRequest;
use tenure_core::kernel::{Intent, Target};

use super::{ids, params};
use crate::http::answer::Failure;
use crate::http::fields::Fields;

pub(super) enum Wanted {
    Start(Intent),
    Stop(String),
}

impl Wanted {
    pub(super) fn read(mut fields: Fields) -> Result<Self, Failure> {
        match fields.optional_text("type")?.as_deref() {
            None | Some("stream.start") => Ok(Self::Start(start(fields)?)),
            Some("stream.stop") => {
                let session = fields.text("session_id")?;
                fields.optional_text("correlationId")?;
                fields.finish()?;
                Ok(Self::Stop(session))
            }
            Some(_) => Err(Failure::invalid("type", "must be `stream.start` or `stream.stop`")),
        }
    }
}

fn start(mut fields: Fields) -> Result<Intent, Failure> {
    let asked = IntentRequest {
        r#type: None,
        service_ref: fields.optional_text("serviceRef")?,
        recording_id: fields.optional_text("recordingID")?,
        profile_id: Some(fields.text("profileID")?),
        start_ms: fields.optional_number("startMs")?,
        params: fields.optional_object("params")?,
        correlation_id: fields.optional_text("correlationId")?,
        session_id: None,
    };
    fields.finish()?;
    let target = target(asked.service_ref, asked.recording_id, asked.start_ms)?;
    let correlation = asked.correlation_id.filter(|text| !text.is_empty());
    let intent = Intent {
        target,
        profile: asked.profile_id.unwrap_or_default().into(),
        params: params::canonical(asked.params.as_ref()).into(),
        correlation: correlation.map_or_else(ids::correlation, Ok)?.into(),
    };
    intent.check()?;
    Ok(intent)
}

fn target(
    service: Option<String>,
    recording: Option<String>,
    start_ms: Option<u64>,
) -> Result<Target, Failure> {
    match (service, recording) {
        (Some(service), None) if start_ms.is_none() => Ok(Target::Service(service.into())),
        (Some(_), None) => Err(Failure::invalid("startMs", "is for recordings only; leave it out")),
        (None, Some(id)) => Ok(Target::Recording { id: id.into(), start_ms: start_ms.unwrap_or(0) }),
        _ => Err(Failure::invalid("serviceRef", "send exactly one of `serviceRef` and `recordingID`")),
    }
}
