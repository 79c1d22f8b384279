//! A response, and the problem in it.

use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenure_api::{Code, Problem};

use crate::error::Error;

/// A whole answer.
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// A problem whose code this version does not know.
#[derive(Deserialize)]
struct UnknownProblem {
    code: String,
    #[serde(default)]
    detail: String,
}

/// How the addresses of the device say no.
#[derive(Deserialize)]
struct DeviceError {
    error: DeviceErrorDetail,
}

#[derive(Deserialize)]
struct DeviceErrorDetail {
    code: String,
    message: String,
}

impl HttpResponse {
    /// What it says, or the problem that it is. Fields that are not known are ignored: a newer server may say more.
    pub(crate) fn read<T: DeserializeOwned>(self, address: impl Fn() -> String) -> Result<T, Error> {
        if self.status.is_success() {
            return serde_json::from_slice(&self.body).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                // The text itself stays out: it may hold the token of a lease.
                let detail = format!("the JSON of its answer does not fit, at line {line}, column {column}");
                Error::Protocol { address: address(), detail }
            });
        }
        Err(self.problem(address))
    }

    /// The problem that it is.
    pub(crate) fn problem(self, address: impl Fn() -> String) -> Error {
        if self.content_type.starts_with(Problem::MEDIA_TYPE) {
            if let Ok(problem) = serde_json::from_slice(&self.body) {
                return Error::Problem(Box::new(problem));
            }
            if let Ok(unknown) = serde_json::from_slice::<UnknownProblem>(&self.body) {
                let detail = format!("{} ({})", unknown.detail, unknown.code);
                return Error::Problem(Box::new(Problem::new(code_for_status(self.status), detail)));
            }
        }
        if let Ok(DeviceError { error: DeviceErrorDetail { code, message } }) =
            serde_json::from_slice(&self.body)
        {
            return Error::Problem(Box::new(Problem::new(
                code_for_status(self.status),
                with_original_code(message, &code, self.status),
            )));
        }
        let detail = format!("it says {} and no reason", self.status);
        Error::Protocol { address: address(), detail }
    }
}

/// What was said, with the code beside it where ours is another.
fn with_original_code(message: String, code: &str, status: StatusCode) -> String {
    if code_for_status(status).as_str() == code { message } else { format!("{message} ({code})") }
}

/// The nearest code to what a newer server means.
fn code_for_status(status: StatusCode) -> Code {
    match status.as_u16() {
        401 => Code::Unauthorized,
        403 => Code::Forbidden,
        404 => Code::NotFound,
        410 => Code::Expired,
        429 | 503 => Code::Unavailable,
        500..=599 => Code::Internal,
        _ => Code::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, media: &str, body: &str) -> HttpResponse {
        HttpResponse {
            status: StatusCode::from_u16(status).expect("a status"),
            content_type: media.into(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    #[test]
    fn unknown_response_fields_are_ignored() {
        let text = r#"{"resource":"a:b","waiting":[],"weather":{"sun":true}}"#;
        let read = answer(200, "application/json", text).read::<tenure_api::Queue>(String::new);
        assert_eq!(read.expect("it is a queue").resource, "a:b");
    }

    #[test]
    fn unknown_error_code_becomes_a_problem() {
        let text = r#"{"type":"/errors/TIRED","title":"…","status":503,"code":"TIRED","detail":"later"}"#;
        let read = answer(503, "application/problem+json", text).read::<tenure_api::Queue>(String::new);
        let error = read.expect_err("a problem");
        assert_eq!(error.code(), Some(Code::Unavailable));
        assert!(error.to_string().contains("TIRED"), "{error}");
    }

    #[test]
    fn device_error_becomes_a_problem() {
        for (status, code, own, detail) in [
            (401, "UNAUTHORIZED", Code::Unauthorized, "who are you?"),
            (409, "CONTROL_LOCKED", Code::Invalid, "who are you? (CONTROL_LOCKED)"),
        ] {
            let text = format!(r#"{{"success":false,"error":{{"code":"{code}","message":"who are you?"}}}}"#);
            let read =
                answer(status, "application/json", &text).read::<tenure_api::ControlStatus>(String::new);
            let Err(Error::Problem(problem)) = read else { panic!("{code} is a problem") };
            assert_eq!((problem.code, problem.detail.as_str()), (own, detail));
        }
    }

    #[test]
    fn foreign_response_is_a_protocol_error() {
        let read =
            answer(502, "text/html", "<h1>Bad gateway</h1>").read::<tenure_api::Queue>(|| "http://x".into());
        assert!(matches!(read, Err(Error::Protocol { .. })));
        let read = answer(200, "text/html", "{\"token\":\"secret\"}").read::<tenure_api::Queue>(String::new);
        assert!(!read.expect_err("not a queue").to_string().contains("secret"));
    }
}
