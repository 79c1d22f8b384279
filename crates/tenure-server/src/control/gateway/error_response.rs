//! How it is said that a command did not come through: as it is said at the gate.

use axum::response::Response;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use super::CommandError;
use crate::control::{message, rest};

pub(super) fn rest_response(blocked: &CommandError, millis: u32) -> Response {
    rest::envelope::failure_response_at(blocked, millis)
}

/// To a WebSocket, about a message that was taken before it turned out. Most messages of devices have no `requestId`;
/// one that has gets it back.
pub(super) fn websocket_message(blocked: &CommandError, request_id: Option<String>) -> Message {
    Message::text(message::error(request_id.as_deref(), blocked))
}

/// The `requestId` of a message.
pub(crate) fn request_id(message: &Message) -> Option<String> {
    let Message::Text(text) = message else { return None };
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else { return None };
    match fields.remove("requestId") {
        Some(Value::String(id)) => Some(id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tenure_control::problem::{Problem, ProblemCode};
    use tenure_control::rejection::{BLOCKED, ControlRejection, ControlRejectionCode};

    use super::*;

    fn locked() -> CommandError {
        let (code, owner_client_name) = (ControlRejectionCode::ControlLocked, "K1 Composer".to_owned());
        ControlRejection { code, message: BLOCKED, owner_client_name, remaining_ms: 1_820 }.into()
    }

    async fn text(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    // S0-71
    #[tokio::test]
    async fn a_request_blocked_after_admission_gets_the_same_response_as_one_blocked_before() {
        let expected = r#"{"success":false,"error":{"code":"CONTROL_LOCKED","message":"Command blocked by active control lease","ownerClientName":"K1 Composer","remainingMs":1820,"scope":"global","requiredHeader":"X-Control-Lease"},"timestamp":1208600,"version":"2.0"}"#;
        assert_eq!(text(rest_response(&locked(), 1_208_600)).await, expected);
        let gone = Problem::new(ProblemCode::Unavailable, "gone").into();
        assert_eq!(rest_response(&gone, 1).headers()[axum::http::header::RETRY_AFTER], "1");
    }

    // S0-72
    #[test]
    fn a_message_blocked_after_admission_gets_the_same_response_as_one_blocked_before() {
        let message = Message::text(r#"{"requestId":"req-201","bri":1}"#);
        let answer = websocket_message(&locked(), request_id(&message));
        let expected = r#"{"type":"error","requestId":"req-201","success":false,"error":{"code":"CONTROL_LOCKED","message":"Command blocked by active control lease","ownerClientName":"K1 Composer","remainingMs":1820,"scope":"global"}}"#;
        assert_eq!(answer.to_text().unwrap(), expected);
    }
}
