//! Where everything stands in a document.

use std::ops::Range;

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

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
