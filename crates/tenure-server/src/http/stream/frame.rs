//! What goes over the WebSocket: arrays of commands in, arrays of answers out.

use serde::Serialize;
use serde_json::Value;
use tenure_api::Problem;

use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::registrar::Undelivered;

pub(super) struct Asked {
    /// What its answer is known by.
    pub(super) id: u64,
    pub(super) verb: String,
    pub(super) fields: Fields,
}

/// The commands of a frame. One that cannot be read has an answer already; where not even the frame can be read, that is
/// the one answer, without an id.
pub(super) fn read(text: &str) -> Vec<Result<Asked, Answer>> {
    let list = match Fields::read_list(text.as_bytes()) {
        Ok(list) => list,
        Err(failure) => return vec![Err(Answer::refused(None, failure))],
    };
    list.into_iter().map(read_one).collect()
}

fn read_one(mut fields: Fields) -> Result<Asked, Answer> {
    let id = fields.number("id").map_err(|failure| Answer::refused(None, failure))?;
    let verb = fields.text("do").map_err(|failure| Answer::refused(Some(id), failure))?;
    Ok(Asked { id, verb, fields })
}

/// What goes back for one command.
pub(super) struct Answer {
    text: Vec<u8>,
    undelivered: Option<Undelivered>,
}

#[derive(Serialize)]
struct Granted<'a, T> {
    id: u64,
    ok: &'a T,
}

#[derive(Serialize)]
struct Refused<'a> {
    id: Value,
    error: &'a Problem,
}

impl Answer {
    pub(super) fn ok(id: u64, ok: &impl Serialize) -> Self {
        Self { text: written(&Granted { id, ok }), undelivered: None }
    }

    /// What a watch brings: answers with a comma after each.
    pub(super) fn of_events(piece: &[u8]) -> Option<Self> {
        let text = piece.strip_suffix(b",")?.to_vec();
        Some(Self { text, undelivered: None })
    }

    /// The same, for something that is taken back if this is not sent.
    pub(super) fn with(self, undelivered: Undelivered) -> Self {
        Self { undelivered: Some(undelivered), ..self }
    }

    pub(super) fn refused(id: Option<u64>, failure: Failure) -> Self {
        let id = id.map_or(Value::Null, Value::from);
        Self { text: written(&Refused { id, error: &failure.0 }), undelivered: None }
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn settle(mut self) {
        self.undelivered.iter_mut().for_each(Undelivered::settle);
    }
}

/// One frame with all of these.
pub(super) fn together(answers: &[Answer]) -> String {
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
    use crate::registrar::line::tests::Office;

    #[test]
    fn answers_that_are_ready_together_are_sent_as_one_array() {
        let failure = Failure::new(Code::Held, "somebody has it");
        let frame = together(&[Answer::ok(7, &"yes"), Answer::refused(Some(8), failure)]);
        assert!(frame.starts_with(r#"[{"id":7,"ok":"yes"},{"id":8,"error":{"#), "{frame}");
        assert!(frame.ends_with("}}]") && frame.contains(r#""code":"HELD""#), "{frame}");
    }

    #[test]
    fn invalid_commands_are_answered_and_valid_ones_parsed() {
        let read = read(r#"[{"id":1,"do":"renew"},{"do":"renew"},{"id":3}]"#);
        let shown: Vec<_> = read
            .into_iter()
            .map(|one| one.map_or_else(|answer| together(&[answer]), |asked| asked.verb))
            .collect();
        assert_eq!(shown[0], "renew");
        assert!(shown[1].contains(r#""id":null"#) && shown[2].contains(r#""id":3"#), "{shown:?}");
        for text in ["{}", "[1]", "", r#"[{"id":1,"id":2}]"#] {
            assert!(matches!(super::read(text)[..], [Err(_)]), "{text}");
        }
    }

    #[test]
    fn a_grant_is_revoked_if_its_answer_is_not_sent() {
        let office = Office::open();
        let answer = |holder| Answer::ok(1, &"yes").with(office.gets(holder).undelivered);
        drop(answer("gone"));
        // When this is answered, so is what was asked before it.
        office.runtime.block_on(office.registrar.ask(Command::Expire { most: 1 }));
        answer("first").settle();
        let next = office.lines_up("next", None);
        assert!(office.registrar.read(|state| state.ticket(next.ticket).is_some()), "what was sent stands");
    }
}
