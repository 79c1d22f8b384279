//! What goes over the WebSocket: arrays of commands in, arrays of answers out.

use serde::Serialize;
use serde_json::Value;
use tenure_api::Problem;

use crate::http::fields::Fields;
use crate::http::response::HttpError;
use crate::registrar::RevokeOnDrop;

pub(super) struct StreamCommand {
    /// What its answer is known by.
    pub(super) id: u64,
    pub(super) verb: String,
    pub(super) fields: Fields,
}

/// The commands of a frame. One that cannot be read has an answer already; where not even the frame can be read, that is
/// the one answer, without an id.
pub(super) fn read(text: &str) -> Vec<Result<StreamCommand, StreamAnswer>> {
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
pub(super) struct StreamAnswer {
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
    pub(super) fn ok(id: u64, ok: &impl Serialize) -> Self {
        Self { text: written(&OkAnswer { id, ok }), revoke_on_drop: None }
    }

    /// What a watch brings: answers with a comma after each.
    pub(super) fn from_events(piece: &[u8]) -> Option<Self> {
        let text = piece.strip_suffix(b",")?.to_vec();
        Some(Self { text, revoke_on_drop: None })
    }

    /// The same, for something that is taken back if this is not sent.
    pub(super) fn with_revoke_on_drop(self, revoke_on_drop: RevokeOnDrop) -> Self {
        Self { revoke_on_drop: Some(revoke_on_drop), ..self }
    }

    pub(super) fn error(id: Option<u64>, failure: HttpError) -> Self {
        let id = id.map_or(Value::Null, Value::from);
        Self { text: written(&ErrorAnswer { id, error: &failure.0 }), revoke_on_drop: None }
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn disarm(mut self) {
        self.revoke_on_drop.iter_mut().for_each(RevokeOnDrop::disarm);
    }
}

/// One frame with all of these.
pub(super) fn join(answers: &[StreamAnswer]) -> String {
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
    use crate::registrar::queue::tests::TestRegistrar;

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
        answer("first").disarm();
        let next = registrar.enqueue("next", None);
        assert!(
            registrar.registrar.read(|state| state.queue_ticket(next.ticket).is_some()),
            "what was sent stands"
        );
    }
}
