//! An event's fields as `name=value` pairs, for people.

use serde_json::{Map, Value};

/// The fields that a reader looks for, in this order; the others follow by their names.
const LEADING_FIELDS: [&str; 6] = ["resource", "holder", "agent_id", "session_id", "id", "ticket"];

/// Printed in other columns, or of use to programs alone.
const OMITTED_FIELDS: [&str; 7] = ["seq", "at", "type", "tick", "publicKey", "idempotency", "idempotencyKey"];

/// The pairs of one line. Nested fields are named by their last name: `lease.resource` is `resource`.
pub(super) fn format_pairs(fields: Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    collect(fields, &mut found);
    let place =
        |name: &str| LEADING_FIELDS.iter().position(|first| *first == name).unwrap_or(LEADING_FIELDS.len());
    found.sort_by_key(|(name, _)| place(name));
    found.into_iter().map(|(name, value)| format!("{name}={}", shown(&value))).collect()
}

fn collect(fields: Map<String, Value>, found: &mut Vec<(String, Value)>) {
    for (name, value) in fields {
        // Each tick stands beside its time.
        if OMITTED_FIELDS.contains(&&*name) || name.ends_with("Tick") {
            continue;
        }
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(labels) if name == "labels" => {
                found.extend(labels.into_iter().map(|(label, value)| (format!("label.{label}"), value)));
            }
            Value::Object(nested) => collect(nested, found),
            value => found.push((name, value)),
        }
    }
}

/// A value without quotes where that is unambiguous.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(items) if items.iter().all(|item| item.as_str().is_some_and(is_plain)) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        }
        value => value.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text
            .contains(|letter: char| letter.is_whitespace() || letter.is_control() || "\"=".contains(letter))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn log_line_starts_with_the_resource_and_quotes_text_with_spaces() {
        let Value::Object(fields) = json!({
            "seq": 7, "type": "lease.revoked", "actor": "admin", "detail": "on holiday", "expiresTick": 9,
            "lease": { "fence": 3, "id": "a-3", "resource": "deploy:prod", "labels": { "team": "x y" } },
            "circle": ["a", "b"], "task": null, "outside": [],
        }) else {
            panic!("an object")
        };
        let line = format_pairs(fields).join(" ");
        let expected = "resource=deploy:prod id=a-3 actor=admin circle=a,b detail=\"on holiday\" fence=3 label.team=\"x y\"";
        assert_eq!(line, expected);
    }
}
