//! `GET /v1/stream`: many commands and watches over one WebSocket, answered in whichever order they are done.
//!
//! ```text
//! frame ──> frame     an array of commands, read as strictly as a body
//!           command   one of them: the same code as the route of its name
//!           session   what is under way on one connection; answers that are ready together go out together
//! ```

mod session;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use tenure_api::Problem;
use tenure_core::kernel::IdempotencyKey;

use self::session::StreamSession;
use crate::app::App;
use crate::engine::RevokeOnDrop;
use crate::http::auth::Caller;
use crate::http::fields::Fields;
use crate::http::response::HttpError;
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

/// Does it, and says what came of it. Dropped, it is as if the connection of a request had ended.
async fn execute(app: &App, caller: &Caller, command: StreamCommand) -> StreamAnswer {
    let StreamCommand { id, verb, fields } = command;
    let done = match verb.as_str() {
        "acquire" => acquire(app, caller, id, fields).await,
        "renew" => renew(app, caller, id, fields).await,
        "release" => release(app, caller, id, fields).await,
        _ => Err(HttpError::invalid("do", "must be `acquire`, `renew`, `release` or `watch`")),
    };
    done.unwrap_or_else(|failure| StreamAnswer::error(Some(id), failure))
}

async fn acquire(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<StreamAnswer, HttpError> {
    caller.require(TokenScope::LeasesWrite)?;
    let key = key(&mut fields)?;
    let (granted, revoke_on_drop) = acquire_one(app, caller, fields, key).await?;
    Ok(StreamAnswer::ok(id, &granted).with_revoke_on_drop(revoke_on_drop))
}

async fn renew(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<StreamAnswer, HttpError> {
    caller.require(TokenScope::LeasesWrite)?;
    let lease = LeaseId(fields.text("lease")?);
    Ok(StreamAnswer::ok(id, &renew_one(app, caller, &lease, fields).await?))
}

async fn release(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<StreamAnswer, HttpError> {
    caller.require(TokenScope::LeasesWrite)?;
    let lease = LeaseId(fields.text("lease")?);
    Ok(StreamAnswer::ok(id, &release_one(app, caller, &lease, fields).await?))
}

/// What would be the header `Idempotency-Key`. The rest of the fields is what must be the same.
fn key(fields: &mut Fields) -> Result<Option<IdempotencyKey>, HttpError> {
    let Some(key) = fields.optional_text("key")? else { return Ok(None) };
    derive_idempotency_key("key", key.as_bytes(), fields.digest()).map(Some)
}

struct StreamCommand {
    /// What its answer is known by.
    id: u64,
    verb: String,
    fields: Fields,
}

/// The commands of a frame. One that cannot be read has an answer already; where not even the frame can be read, that is
/// the one answer, without an id.
fn read(text: &str) -> Vec<Result<StreamCommand, StreamAnswer>> {
    let list = match Fields::read_list(text.as_bytes()) {
        Ok(list) => list,
        Err(failure) => return vec![Err(StreamAnswer::error(None, failure))],
    };
    list.into_iter().map(read_one).collect()
}

fn read_one(mut fields: Fields) -> Result<StreamCommand, StreamAnswer> {
    let id = fields.number("id").map_err(|failure| StreamAnswer::error(None, failure))?;
    let verb = fields.text("do").map_err(|failure| StreamAnswer::error(Some(id), failure))?;
    Ok(StreamCommand { id, verb, fields })
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
    use tenure_api::Code;
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
        let read = read(r#"[{"id":1,"do":"renew"},{"do":"renew"},{"id":3}]"#);
        let shown: Vec<_> = read
            .into_iter()
            .map(|one| one.map_or_else(|answer| join(&[answer]), |command| command.verb))
            .collect();
        assert_eq!(shown[0], "renew");
        assert!(shown[1].contains(r#""id":null"#) && shown[2].contains(r#""id":3"#), "{shown:?}");
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
