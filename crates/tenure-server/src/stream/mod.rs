//! `GET /v1/stream`: many commands and watches over one WebSocket, answered in the order in which they complete.
//!
//! A frame is an array of commands, read as strictly as a body; each runs the code of the route of its name. `session` has
//! the commands in flight on one connection, and sends responses together that are ready together.

mod session;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use tenure_api::strict::JsonObject;
use tenure_api::{AcquireRequest, Code, Problem, ReleaseRequest, RenewalRequest};
use tenure_core::kernel::{IdempotencyKey, RequestDigest};

use self::session::StreamSession;
use crate::app::App;
use crate::engine::RevokeOnDrop;
use crate::events::WatchRequest;
use crate::http::auth::Caller;
use crate::http::response::{HttpError, unexpected};
use crate::http::websocket::WebSocketUpgrade;
use crate::leases::{LeaseId, acquire_one, derive_idempotency_key, release_one, renew_one};
use crate::tokens::TokenScope;

/// Send commands over a WebSocket.
///
/// A text frame is an array of commands: `{"id":1,"do":"acquire",…}` with the fields of `POST /v1/leases` and
/// an optional `key`, `{"id":2,"do":"renew","lease":"…","token":"…"}`,
/// `{"id":3,"do":"release","lease":"…","token":"…"}`,
/// `{"id":4,"do":"watch","from":"now","resource":"deploy:"}`. Responses arrive in any order, in arrays of
/// `{"id":1,"ok":{…}}`, `{"id":2,"error":{…}}` with a problem, and
/// `{"id":4,"event":{…},"at":"EPOCH-NUMBER"}`.
#[utoipa::path(
    get,
    path = "/v1/stream",
    tag = "leases",
    operation_id = "stream",
    params(
        ("Upgrade" = Option<String>, Header, description = "The value `websocket`"),
        ("Sec-WebSocket-Version" = Option<String>, Header, description = "The value `13`"),
        ("Sec-WebSocket-Key" = Option<String>, Header, description = "Key as in RFC 6455"),
    ),
    responses((status = 101, description = "Switched to a WebSocket")),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade.accept(StreamSession::new(app, caller))
}

/// Executes a command and renders its response. Dropping the future is the same as closing the connection of a request.
async fn execute(app: &App, caller: &Caller, request: StreamRequest) -> StreamAnswer {
    let StreamRequest { id, command } = request;
    let answer = async {
        caller.require(TokenScope::LeasesWrite)?;
        Ok(match command {
            StreamCommand::Acquire { request, key } => {
                let (granted, revoke_on_drop) = acquire_one(app, caller, &request, key).await?;
                StreamAnswer::ok(id, &granted).with_revoke_on_drop(revoke_on_drop)
            }
            StreamCommand::Renew { lease, request } => {
                StreamAnswer::ok(id, &renew_one(app, caller, &lease, &request).await?)
            }
            StreamCommand::Release { lease, request } => {
                StreamAnswer::ok(id, &release_one(app, caller, &lease, &request).await?)
            }
            StreamCommand::Watch(_) => return Err(unexpected()),
        })
    };
    answer.await.unwrap_or_else(|failure| StreamAnswer::error(Some(id), failure))
}

struct StreamRequest {
    /// Chosen by the client; its response has the same.
    id: u64,
    command: StreamCommand,
}

/// A command, read as strictly as the body of the route of its name.
enum StreamCommand {
    Acquire { request: AcquireRequest, key: Option<IdempotencyKey> },
    Renew { lease: LeaseId, request: RenewalRequest },
    Release { lease: LeaseId, request: ReleaseRequest },
    Watch(WatchRequest),
}

impl StreamCommand {
    fn parse(mut fields: JsonObject<'_>) -> Result<Self, HttpError> {
        let verb: String = required("do", fields.take("do")?)?;
        Ok(match verb.as_str() {
            "acquire" => {
                let key: Option<String> = fields.take("key")?;
                let request: AcquireRequest = fields.read()?;
                // A repeated request has the same key and the same other fields.
                let key = key.map(|key| {
                    derive_idempotency_key("key", key.as_bytes(), RequestDigest::of(&written(&request)))
                });
                Self::Acquire { request, key: key.transpose()? }
            }
            "renew" => Self::Renew { lease: lease_id(&mut fields)?, request: fields.read()? },
            "release" => Self::Release { lease: lease_id(&mut fields)?, request: fields.read()? },
            "watch" => Self::Watch(fields.read()?),
            _ => return Err(HttpError::invalid("do", "must be `acquire`, `renew`, `release` or `watch`")),
        })
    }
}

fn lease_id(fields: &mut JsonObject<'_>) -> Result<LeaseId, HttpError> {
    required("lease", fields.take("lease")?).map(LeaseId)
}

fn required<T>(field: &str, value: Option<T>) -> Result<T, HttpError> {
    value.ok_or_else(|| HttpError::invalid(field, "is missing"))
}

/// The commands of a frame. A command that cannot be read has its response already. If the frame cannot be read, its one
/// response has no id.
fn read(text: &str) -> Vec<Result<StreamRequest, StreamAnswer>> {
    match JsonObject::read_list(text.as_bytes()) {
        Ok(list) => list.into_iter().map(read_one).collect(),
        Err(error) => {
            let failure = HttpError::new(Code::Invalid, format!("the frame {}", error.reason()));
            vec![Err(StreamAnswer::error(None, failure))]
        }
    }
}

fn read_one(mut fields: JsonObject<'_>) -> Result<StreamRequest, StreamAnswer> {
    let id = fields.take("id").map_err(HttpError::from).and_then(|id| required("id", id));
    let id = id.map_err(|failure| StreamAnswer::error(None, failure))?;
    let command = StreamCommand::parse(fields).map_err(|failure| StreamAnswer::error(Some(id), failure))?;
    Ok(StreamRequest { id, command })
}

/// What goes back for one command.
struct StreamAnswer {
    text: Vec<u8>,
    revoke_on_drop: Option<RevokeOnDrop>,
}

#[derive(Serialize)]
struct OkAnswer<'a, T> {
    id: u64,
    ok: &'a T,
}

#[derive(Serialize)]
struct ErrorAnswer<'a> {
    id: Value,
    error: &'a Problem,
}

impl StreamAnswer {
    fn ok(id: u64, ok: &impl Serialize) -> Self {
        Self { text: written(&OkAnswer { id, ok }), revoke_on_drop: None }
    }

    /// What a watch brings: answers with a comma after each.
    fn from_events(piece: &[u8]) -> Option<Self> {
        let text = piece.strip_suffix(b",")?.to_vec();
        Some(Self { text, revoke_on_drop: None })
    }

    /// The same, for something that is taken back if this is not sent.
    fn with_revoke_on_drop(self, revoke_on_drop: RevokeOnDrop) -> Self {
        Self { revoke_on_drop: Some(revoke_on_drop), ..self }
    }

    fn error(id: Option<u64>, failure: HttpError) -> Self {
        let id = id.map_or(Value::Null, Value::from);
        Self { text: written(&ErrorAnswer { id, error: &failure.0 }), revoke_on_drop: None }
    }

    /// How many bytes it has.
    fn len(&self) -> usize {
        self.text.len()
    }
}

/// One frame with all of these.
fn join(answers: &[StreamAnswer]) -> String {
    let length = answers.iter().map(|answer| answer.len() + 1).sum::<usize>();
    let mut frame = Vec::with_capacity(length + 1);
    for answer in answers {
        frame.push(if frame.is_empty() { b'[' } else { b',' });
        frame.extend_from_slice(&answer.text);
    }
    frame.push(b']');
    String::from_utf8(frame).expect("JSON is text")
}

fn written(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).expect("text, numbers and maps of text can be written as JSON")
}

#[cfg(test)]
mod tests {
    use tenure_core::kernel::Command;

    use super::*;
    use crate::engine::acquire::tests::TestRegistrar;

    #[test]
    fn answers_that_are_ready_together_are_sent_as_one_array() {
        let failure = HttpError::new(Code::Held, "somebody has it");
        let frame = join(&[StreamAnswer::ok(7, &"yes"), StreamAnswer::error(Some(8), failure)]);
        assert!(frame.starts_with(r#"[{"id":7,"ok":"yes"},{"id":8,"error":{"#), "{frame}");
        assert!(frame.ends_with("}}]") && frame.contains(r#""code":"HELD""#), "{frame}");
    }

    #[test]
    fn invalid_commands_are_answered_and_valid_ones_parsed() {
        let read = read(
            r#"[{"id":1,"do":"renew","lease":"l","token":"t"},{"do":"renew"},{"id":3},{"id":4,"do":"renew"}]"#,
        );
        let shown: Vec<_> = read
            .into_iter()
            .map(|one| one.map_or_else(|answer| join(&[answer]), |request| request.id.to_string()))
            .collect();
        assert_eq!(shown[0], "1");
        assert!(shown[1].contains(r#""id":null"#) && shown[2].contains(r#""id":3"#), "{shown:?}");
        assert!(shown[3].contains("lease: is missing"), "{shown:?}");
        for text in ["{}", "[1]", "", r#"[{"id":1,"id":2}]"#] {
            assert!(matches!(super::read(text)[..], [Err(_)]), "{text}");
        }
    }

    #[test]
    fn a_grant_is_revoked_if_its_answer_is_not_sent() {
        let registrar = TestRegistrar::open();
        let answer =
            |holder| StreamAnswer::ok(1, &"yes").with_revoke_on_drop(registrar.grant(holder).revoke_on_drop);
        drop(answer("gone"));
        // When this is answered, so is what was asked before it.
        registrar.runtime.block_on(registrar.registrar.submit(Command::Expire { max_ended: 1 }));
        answer("first").revoke_on_drop.unwrap().disarm();
        let next = registrar.enqueue("next", None);
        assert!(
            registrar.registrar.read(|state| state.queue_ticket(next.ticket).is_some()),
            "what was sent stands"
        );
    }
}
