//! Which messages of a WebSocket a line is about, and which are not the device's at all.

use serde_json::Value;

use crate::permission_matrix::CommandClass;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceMessage<'a> {
    Text(&'a str),
    /// Bytes. No line looks into them.
    Binary,
}

/// Longer ones are in no table, and are not read to find that out.
const MAX_MESSAGE_BYTES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MessageRule {
    pub(super) class: CommandClass,
    pattern: MessagePattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MessagePattern {
    Binary,
    Text(String),
    /// With what its text is, without any space.
    Json(String, Value),
}

impl MessageRule {
    pub(super) fn parse(class: CommandClass, how: &str, what: &str) -> Result<Self, String> {
        let what = match (how, what) {
            ("BINARY", "") => MessagePattern::Binary,
            ("BINARY", _) => return Err("BINARY stands alone: nobody looks into binary messages".into()),
            (_, "") => return Err("TEXT without a text; write the message behind it".into()),
            (_, long) if long.len() > MAX_MESSAGE_BYTES => {
                return Err(format!("a text has at most {MAX_MESSAGE_BYTES} bytes"));
            }
            (_, json) if json.starts_with(['{', '[']) => {
                let value = serde_json::from_str(json).map_err(|_| format!("`{json}` is no JSON"))?;
                if without_space(json) != serde_json::to_string(&value).unwrap_or_default() {
                    return Err(format!(
                        "`{json}` can be written more simply: names once, in their order, no escapes"
                    ));
                }
                MessagePattern::Json(without_space(json), value)
            }
            (_, text) => MessagePattern::Text(text.to_owned()),
        };
        Ok(Self { class, pattern: what })
    }

    pub(super) fn matches(&self, message: DeviceMessage<'_>) -> bool {
        match (&self.pattern, message) {
            (MessagePattern::Binary, DeviceMessage::Binary) => true,
            (MessagePattern::Text(known), DeviceMessage::Text(text)) => known == text,
            (MessagePattern::Json(known, value), DeviceMessage::Text(text))
                if text.len() <= MAX_MESSAGE_BYTES =>
            {
                // Both, because devices read JSON in their own ways: what means the same and is spelt the same, too,
                // has no second name, no escape and nothing behind it.
                without_space(text) == *known
                    && serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
            }
            _ => false,
        }
    }
}

/// Whether a text is meant for Tenure: an object whose `type` is one of the lease's commands or says who speaks.
/// Everything else is the device's.
pub fn is_for_tenure(text: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return false };
    let Some(Value::String(name)) = fields.get("type") else { return false };
    name.starts_with("control.") || name.starts_with("auth.")
}

fn without_space(text: &str) -> String {
    text.chars().filter(|character| !" \t\r\n".contains(*character)).collect()
}
