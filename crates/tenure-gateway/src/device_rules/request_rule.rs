//! Rows of the table of device rules.

use serde_json::Value;
use tenure_control::permission_matrix::CommandClass;

/// A request, as far as it is known before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// `GET` or another.
    pub method: &'a str,
    /// As it came, and as the device gets it.
    pub path: &'a str,
    /// What stands behind the question mark, if there is one.
    pub query: Option<&'a str>,
    /// Whether a body comes with it.
    pub has_body: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestRule {
    pub(super) class: CommandClass,
    /// None is any.
    methods: Option<Vec<String>>,
    path: Vec<PathSegment>,
    /// Whether all that is below is meant too.
    includes_descendants: bool,
    parameters: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathSegment {
    Literal(String),
    Any,
}

impl RequestRule {
    pub(super) fn parse(class: CommandClass, methods: &str, what: &str) -> Result<Self, String> {
        let methods = match methods {
            "ANY" => None,
            some => Some(some.split(',').map(method).collect::<Result<Vec<_>, _>>()?),
        };
        if what.contains(char::is_whitespace) {
            return Err(format!("`{what}` has a space in it; a line has a class, methods and one path"));
        }
        let (path, parameters) = what.split_once('?').unwrap_or((what, ""));
        let wrong =
            || format!("`{what}` is no path; write /one/two, with * for any one part or ** at the end");
        let mut rest = path.strip_prefix('/').ok_or_else(wrong)?;
        let mut and_below = false;
        if rest == "**" || rest.ends_with("/**") {
            rest = rest.trim_end_matches("**").trim_end_matches('/');
            and_below = true;
        }
        let part = |part: &str| match part {
            "*" => Ok(PathSegment::Any),
            part if is_plain_part(part) => Ok(PathSegment::Literal(part.to_owned())),
            _ => Err(wrong()),
        };
        let path =
            if rest.is_empty() { Vec::new() } else { rest.split('/').map(part).collect::<Result<_, _>>()? };
        let parameters: Vec<_> =
            parameters.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if let Some(name) = parameters.iter().find(|name| !is_plain(name)) {
            return Err(format!("`{name}` is no name of a parameter; write /path?name,name"));
        }
        Ok(Self { class, methods, path, includes_descendants: and_below, parameters })
    }

    /// Whether the line is about this request. One that says `mutates` is generous, every other is exact.
    pub(super) fn matches(&self, request: &RequestHead<'_>) -> bool {
        let Some(parts) = plain_parts(request.path) else { return false };
        // A device that takes HEAD for GET does no more than it would for that.
        let method = if request.method == "HEAD" { "GET" } else { request.method };
        if self.methods.as_ref().is_some_and(|known| !known.iter().any(|known| known == method)) {
            return false;
        }
        if self.class == CommandClass::Mutates {
            return self.has_path(&parts, true, str::eq_ignore_ascii_case);
        }
        let is_harmless = request.query.is_none_or(|query| self.allows_query(query));
        let is_known = is_harmless && !(self.class == CommandClass::Reads && request.has_body);
        is_known && self.has_path(&parts, self.includes_descendants, |one, other| one == other)
    }

    fn has_path(&self, parts: &[&str], and_below: bool, is_same: impl Fn(&str, &str) -> bool) -> bool {
        if parts.len() < self.path.len() || (parts.len() > self.path.len() && !and_below) {
            return false;
        }
        self.path.iter().zip(parts).all(|(known, part)| match known {
            PathSegment::Any => true,
            PathSegment::Literal(known) => is_same(known, part),
        })
    }

    /// Whether nothing is in the query but what changes nothing.
    fn allows_query(&self, query: &str) -> bool {
        query.split('&').all(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.parameters.iter().any(|known| known == name) && value.chars().all(is_unreserved)
        })
    }
}

fn method(name: &str) -> Result<String, String> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(format!("`{name}` is no method; write GET, POST or another in capitals, or ANY"));
    }
    if name == "HEAD" {
        return Err("HEAD is what GET is; write GET".into());
    }
    Ok(name.to_owned())
}

/// The parts of a path that can be understood in one way only; nothing for any other.
fn plain_parts(path: &str) -> Option<Vec<&str>> {
    let rest = path.strip_prefix('/')?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let parts: Vec<_> = rest.split('/').collect();
    parts.iter().all(|part| is_plain_part(part)).then_some(parts)
}

fn is_plain_part(part: &str) -> bool {
    is_plain(part) && part != "." && part != ".."
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_unreserved)
}

/// What means itself, encoded or not.
fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}

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
