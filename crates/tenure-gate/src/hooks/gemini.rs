//! Gemini CLI.

use serde_json::json;

use super::commands::{Answer, Verdict};
use super::fields::Fields;
use super::frame::{Moment, event_name, hear};
use super::tools::{self, Touch};
use super::unheard::{Unheard, Wrong};
use super::{Event, Heard};

pub(super) fn read(fields: &Fields<'_>) -> Result<Heard, Unheard> {
    let moment = match event_name(fields)? {
        "BeforeTool" => Moment::Before,
        "AfterTool" => Moment::After { failed: failed(fields) },
        "BeforeAgent" => Moment::Prompted,
        "AfterAgent" => Moment::TurnEnded { still_working: false },
        "SessionStart" => Moment::Started,
        "SessionEnd" => Moment::Ended,
        _ => Moment::Other,
    };
    hear(fields, moment, touch).map_err(|wrong| moment.unheard(wrong))
}

fn touch(tool: &str, input: &Fields<'_>) -> Result<Touch, Wrong> {
    match tool {
        "replace" | "edit" => tools::writes(input, false),
        "write_file" => tools::writes(input, true),
        "read_file" | "read_many_files" => tools::reads(input),
        _ => tools::guess(tool, input),
    }
}

fn failed(fields: &Fields<'_>) -> bool {
    fields.at(&["tool_response"]).is_some_and(|response| response.value("error").is_some())
}

pub(super) fn answer(event: Option<&Event>, verdict: &Verdict) -> Answer {
    match verdict {
        // No note reaches the model before a call; the person sees this one.
        Verdict::Allow { note: Some(note) } => Answer::json(&json!({"systemMessage": note})),
        Verdict::Allow { note: None } | Verdict::Noted => Answer::silence(),
        Verdict::Deny { reason, stop } => match event {
            None => Answer::blocked(reason),
            Some(Event::Writing { .. } | Event::Calling | Event::Other | Event::Prompted) => {
                let mut answer = json!({"decision": "deny", "reason": reason});
                if *stop {
                    answer["continue"] = json!(false);
                    answer["stopReason"] = json!(reason);
                }
                Answer::json(&answer)
            }
            Some(_) => Answer::quiet(reason.clone()),
        },
    }
}
