//! Edits JSON in place: parses it with the position of everything, and changes only the bytes concerned.
//!
//! A settings file belongs to the user. So it is never parsed and printed again: additions are inserted as text, removals are
//! cut out as text, and every other byte stays.

mod edit;

use std::ops::Range;

pub(super) use edit::{Json, append, insert_member, remove};
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, Scanner, ScannerOptions, parse_to_ast};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    /// From its first to behind its last byte.
    pub span: Range<usize>,
    pub kind: JsonKind,
}

/// What it is, as far as anybody has to look into it.
#[derive(Debug, Clone)]
pub enum JsonKind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    Other,
}

#[derive(Debug, Clone)]
pub struct Member {
    pub key: String,
    pub start: usize,
    pub value: Node,
}

/// The text is not JSON. Its words are not repeated: settings hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson {
    pub line: usize,
    pub column: usize,
}

impl Node {
    pub fn members(&self) -> Option<&[Member]> {
        if let JsonKind::Object(members) = &self.kind { Some(members) } else { None }
    }

    pub fn items(&self) -> Option<&[Node]> {
        if let JsonKind::Array(items) = &self.kind { Some(items) } else { None }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let JsonKind::Text(text) = &self.kind { Some(text) } else { None }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members()?.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// Where the things inside stand, a member with its key.
    pub fn element_spans(&self) -> Vec<Range<usize>> {
        match &self.kind {
            JsonKind::Object(members) => {
                members.iter().map(|member| member.start..member.value.span.end).collect()
            }
            JsonKind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
            JsonKind::Text(_) | JsonKind::Other => Vec::new(),
        }
    }
}

/// Reads the document, or says where it stops being JSON.
pub fn scan(text: &str) -> Result<Node, NotJson> {
    // The JSONC parser accepts more than JSON, so the strict parser judges first. The other one only reports places.
    serde_json::from_str::<serde_json::Value>(text)
        .map_err(|error| NotJson { line: error.line(), column: error.column() })?;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok();
    parsed.and_then(|parsed| parsed.value.as_ref().map(node)).ok_or(NotJson { line: 0, column: 0 })
}

fn node(value: &Value<'_>) -> Node {
    let kind = match value {
        Value::Object(object) => JsonKind::Object(object.properties.iter().map(member).collect()),
        Value::Array(array) => JsonKind::Array(array.elements.iter().map(node).collect()),
        Value::StringLit(text) => JsonKind::Text(text.value.clone().into_owned()),
        Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => JsonKind::Other,
    };
    Node { span: value.start()..value.end(), kind }
}

fn member(property: &ObjectProp<'_>) -> Member {
    let key = property.name.as_str().to_owned();
    Member { key, start: property.start(), value: node(&property.value) }
}

/// The line of the first comment. Nothing, if there is none.
pub fn first_comment_line(text: &str) -> Option<usize> {
    let mut scanner = Scanner::new(text, &ScannerOptions::default());
    while let Ok(Some(token)) = scanner.scan() {
        if matches!(token, Token::CommentLine(_) | Token::CommentBlock(_)) {
            return Some(text[..scanner.token_start()].matches('\n').count() + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_distinguished_from_similar_strings() {
        for (text, line) in [
            ("{}", None),
            (r#"{"a": "// no", "b": "\"/* no */"}"#, None),
            ("{\n  // yes\n}", Some(2)),
            ("{ /* yes */ }", Some(1)),
            ("{\"a\": \"http://x\",\n\n \"b\": 1 // yes\n}", Some(3)),
            ("{ / }", None),
            ("\"open // string", None),
        ] {
            assert_eq!(first_comment_line(text), line, "{text}");
        }
    }
}
