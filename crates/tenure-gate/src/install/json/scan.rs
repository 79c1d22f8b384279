//! Where everything stands in a document.

use std::ops::Range;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    /// From its first to behind its last byte.
    pub span: Range<usize>,
    pub kind: Kind,
}

/// What it is, as far as anybody has to look into it.
#[derive(Debug, Clone)]
pub enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    Other,
}

/// One member of an object.
#[derive(Debug, Clone)]
pub struct Member {
    pub key: String,
    /// Where its key begins.
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
    /// The members of an object.
    pub fn members(&self) -> Option<&[Member]> {
        if let Kind::Object(members) = &self.kind { Some(members) } else { None }
    }

    /// The items of an array.
    pub fn items(&self) -> Option<&[Node]> {
        if let Kind::Array(items) = &self.kind { Some(items) } else { None }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members()?.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// Where the things inside stand, a member with its key.
    pub fn places(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => {
                members.iter().map(|member| member.start..member.value.span.end).collect()
            }
            Kind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
            Kind::Text(_) | Kind::Other => Vec::new(),
        }
    }
}

/// Reads the document, or says where it stops being JSON.
pub fn scan(text: &str) -> Result<Node, NotJson> {
    // Judged by a parser that is used everywhere; after that only places are looked for, in what is known to be right.
    serde_json::from_str::<serde_json::Value>(text)
        .map_err(|error| NotJson { line: error.line(), column: error.column() })?;
    let mut scanner = Scanner { text, at: 0 };
    scanner.value().ok_or(NotJson { line: 0, column: 0 })
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn value(&mut self) -> Option<Node> {
        self.skip_space();
        let start = self.at;
        let kind = match self.peek()? {
            b'{' => self.object()?,
            b'[' => self.array()?,
            b'"' => Kind::Text(self.string()?),
            _ => {
                while self.peek().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                    self.at += 1;
                }
                Kind::Other
            }
        };
        Some(Node { span: start..self.at, kind })
    }

    fn object(&mut self) -> Option<Kind> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.is_at_end(b'}')? {
            let start = self.at;
            let key = self.string()?;
            self.skip_space();
            self.at += 1;
            members.push(Member { key, start, value: self.value()? });
        }
        Some(Kind::Object(members))
    }

    fn array(&mut self) -> Option<Kind> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.is_at_end(b']')? {
            items.push(self.value()?);
        }
        Some(Kind::Array(items))
    }

    /// Goes to the next thing inside, past a comma; or past the closing bracket.
    fn is_at_end(&mut self, close: u8) -> Option<bool> {
        self.skip_space();
        if self.peek()? == b',' {
            self.at += 1;
            self.skip_space();
        }
        let ends = self.peek()? == close;
        self.at += usize::from(ends);
        Some(ends)
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        while self.peek()? != b'"' {
            self.at += if self.peek()? == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
