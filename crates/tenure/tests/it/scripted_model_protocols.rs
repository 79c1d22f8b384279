//! How agents and models speak with each other: what a model is told, and how it says a step.

use std::path::Path;

use serde_json::{Value, json};

use crate::scripted_model::ModelStep;

/// What a model says at the end.
const DONE: &str = "All is done.";

/// A way to speak.
#[derive(Debug, Clone, Copy)]
pub enum ModelProtocol {
    /// Anthropic's Messages, which Claude Code speaks.
    Messages,
    /// OpenAI's Responses, which Codex speaks.
    Responses,
}

impl ModelProtocol {
    /// The form that is spoken at this path.
    pub fn from_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Messages),
            "/v1/responses" => Some(Self::Responses),
            _ => None,
        }
    }

    /// Whether something is asked for that may call tools. Agents also ask for titles and the like.
    pub fn is_turn_request(self, request: &Value) -> bool {
        request["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// What the tools said so far.
    pub fn tool_results(self, request: &Value) -> Vec<String> {
        match self {
            Self::Messages => {
                let contents = items(&request["messages"]).flat_map(|message| items(&message["content"]));
                contents
                    .filter(|part| part["type"] == "tool_result")
                    .map(|part| text(&part["content"]))
                    .collect()
            }
            Self::Responses => {
                let is_output =
                    |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
                items(&request["input"]).filter(is_output).map(|item| text(&item["output"])).collect()
            }
        }
    }

    /// The stream of events that says this step; where there is none, that everything is done.
    pub fn stream_step(self, number: usize, step: Option<&ModelStep>, folder: &Path) -> String {
        let events = match self {
            Self::Messages => messages(number, step, folder),
            Self::Responses => responses(number, step),
        };
        let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        events.iter().map(event).collect()
    }
}

fn messages(number: usize, step: Option<&ModelStep>, folder: &Path) -> Vec<Value> {
    let call = step.map(|step| match step {
        ModelStep::Read(file) => ("Read", json!({"file_path": folder.join(file)})),
        ModelStep::Edit { file, from, to } => {
            ("Edit", json!({"file_path": folder.join(file), "old_string": from, "new_string": to}))
        }
        ModelStep::Shell(line) => ("Bash", json!({"command": line, "description": "what the task needs"})),
        ModelStep::Hold => unreachable!("it is waited for, and not said"),
    });
    let (begin, delta, reason) = match call {
        Some((name, input)) => (
            json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
        None => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": DONE}), "end_turn")
        }
    };
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": begin}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 1},
        }),
        json!({"type": "message_stop"}),
    ]
}

fn responses(number: usize, step: Option<&ModelStep>) -> Vec<Value> {
    let shell = |line: String| {
        json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "name": "exec_command", "arguments": json!({"cmd": line}).to_string(),
        })
    };
    let item = match step {
        Some(ModelStep::Read(file)) => shell(format!("cat {file}")),
        Some(ModelStep::Shell(line)) => shell((*line).to_owned()),
        Some(ModelStep::Edit { file, from, to }) => json!({
            "type": "custom_tool_call", "id": format!("ctc_{number}"), "call_id": format!("call_{number}"),
            "name": "apply_patch", "status": "completed",
            "input": format!("*** Begin Patch\n*** Update File: {file}\n@@\n-{from}\n+{to}\n*** End Patch\n"),
        }),
        Some(ModelStep::Hold) => unreachable!("it is waited for, and not said"),
        None => json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant",
            "content": [{"type": "output_text", "text": DONE}],
        }),
    };
    let id = format!("resp_{number}");
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    vec![
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
    ]
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// What was said in one piece or in several.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        parts => items(parts).filter_map(|part| part["text"].as_str()).collect(),
    }
}
