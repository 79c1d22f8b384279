//! Puts things in and takes them out, and leaves every other byte.

use super::Node;

/// The document with a new last member in `object`.
pub fn insert_member(text: &str, object: &Node, key: &str, value: &Json) -> String {
    insert(text, object, |layout, indent| member(key, value, layout, indent))
}

/// The document with a new last item in `array`.
pub fn append(text: &str, array: &Node, value: &Json) -> String {
    insert(text, array, |layout, indent| value.write(layout, indent))
}

/// The document without the thing at `index` in `container`, and without the comma that goes with it.
///
/// Undoes exactly what was put in as the last of several.
pub fn remove(text: &str, container: &Node, index: usize) -> String {
    let places = container.element_spans();
    let place = &places[index];
    let gone = match (index.checked_sub(1), places.get(index + 1)) {
        (Some(before), _) => places[before].end..place.end,
        (None, Some(next)) => place.start..next.start,
        (None, None) => container.span.start + 1..container.span.end - 1,
    };
    format!("{}{}", &text[..gone.start], &text[gone.end..])
}

fn insert(text: &str, container: &Node, write: impl Fn(&JsonLayout, &str) -> String) -> String {
    let layout = layout(text);
    let places = container.element_spans();
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return fill(text, container, &layout, write);
    };
    let lead = &text[container.span.start + 1..first.start];
    let added = match lead.rfind('\n') {
        // One thing on a line: ours gets its own, indented as theirs.
        Some(end) => {
            let indent = &lead[end + 1..];
            let layout = JsonLayout { indent: layout.indent.or(Some("  ".to_owned())), ..layout };
            format!(",{}{indent}{}", layout.line_end, write(&layout, indent))
        }
        // All on one line: ours too.
        None => {
            let layout = JsonLayout { indent: None, ..layout };
            format!(",{}{}", if layout.has_spaces { " " } else { "" }, write(&layout, ""))
        }
    };
    format!("{}{added}{}", &text[..last.end], &text[last.end..])
}

/// Into an empty container.
fn fill(
    text: &str,
    container: &Node,
    layout: &JsonLayout,
    write: impl Fn(&JsonLayout, &str) -> String,
) -> String {
    let inside = match &layout.indent {
        Some(unit) => {
            let line = &text[..container.span.start];
            let line = &line[line.rfind('\n').map_or(0, |end| end + 1)..];
            let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
            let item_indent = format!("{indent}{unit}");
            format!(
                "{}{item_indent}{}{}{indent}",
                layout.line_end,
                write(layout, &item_indent),
                layout.line_end
            )
        }
        None => write(layout, ""),
    };
    format!("{}{inside}{}", &text[..container.span.start + 1], &text[container.span.end - 1..])
}

/// How the document is laid out, seen from its first line that is indented.
fn layout(text: &str) -> JsonLayout {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let body = text.trim();
    let is_one_line = !body.contains('\n') && body.len() > 2;
    let indented = body.lines().find_map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        let width = line.len() - rest.len();
        (width > 0 && !rest.trim().is_empty()).then(|| line[..width].to_owned())
    });
    let unit = if is_one_line { None } else { Some(indented.unwrap_or_else(|| "  ".to_owned())) };
    JsonLayout { indent: unit, line_end, has_spaces: body.contains("\": ") }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    Text(String),
    Number(u64),
    Flag(bool),
    Object(Vec<(&'static str, Json)>),
    Array(Vec<Json>),
}

/// How a document is laid out, as far as it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonLayout {
    /// What one level is indented by; nothing if everything stands on one line.
    pub indent: Option<String>,
    pub line_end: &'static str,
    /// Whether a space stands behind a colon, where everything is on one line.
    pub has_spaces: bool,
}

impl Json {
    pub fn string(text: impl Into<String>) -> Self {
        Json::Text(text.into())
    }

    /// As text that stands at `indent`, or on one line.
    pub fn write(&self, layout: &JsonLayout, indent: &str) -> String {
        match self {
            Json::Text(text) => quoted(text),
            Json::Number(number) => number.to_string(),
            Json::Flag(flag) => flag.to_string(),
            Json::Object(members) => {
                let item =
                    |(key, value): &(&str, Json), item_indent: &str| member(key, value, layout, item_indent);
                render_elements(members, ['{', '}'], layout, indent, item)
            }
            Json::Array(items) => render_elements(items, ['[', ']'], layout, indent, |item, item_indent| {
                item.write(layout, item_indent)
            }),
        }
    }

    /// The same for comparing with what was parsed.
    pub fn to_serde_value(&self) -> serde_json::Value {
        match self {
            Json::Text(text) => text.as_str().into(),
            Json::Number(number) => (*number).into(),
            Json::Flag(flag) => (*flag).into(),
            Json::Object(members) => {
                members.iter().map(|(key, value)| ((*key).to_owned(), value.to_serde_value())).collect()
            }
            Json::Array(items) => items.iter().map(Json::to_serde_value).collect(),
        }
    }
}

/// `"key": value`, as this document would have it.
pub fn member(key: &str, value: &Json, layout: &JsonLayout, indent: &str) -> String {
    let colon = if layout.indent.is_some() || layout.has_spaces { ": " } else { ":" };
    format!("{}{colon}{}", quoted(key), value.write(layout, indent))
}

fn render_elements<T>(
    items: &[T],
    [open, close]: [char; 2],
    layout: &JsonLayout,
    indent: &str,
    write: impl Fn(&T, &str) -> String,
) -> String {
    if items.is_empty() {
        return format!("{open}{close}");
    }
    let Some(unit) = &layout.indent else {
        let comma = if layout.has_spaces { ", " } else { "," };
        let items: Vec<_> = items.iter().map(|item| write(item, "")).collect();
        return format!("{open}{}{close}", items.join(comma));
    };
    let item_indent = format!("{indent}{unit}");
    let line_end = layout.line_end;
    let items: Vec<_> =
        items.iter().map(|item| format!("{item_indent}{}", write(item, &item_indent))).collect();
    format!("{open}{line_end}{}{line_end}{indent}{close}", items.join(&format!(",{line_end}")))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::scan;
    use super::*;

    fn hooks() -> Json {
        Json::Object(vec![
            ("b", Json::Array(vec![Json::Number(1), Json::Flag(true)])),
            ("a", Json::string("x\"y")),
        ])
    }

    #[test]
    fn inserted_members_match_the_document_layout() {
        for (before, after) in [
            (
                "{}",
                "{\n  \"k\": {\n    \"b\": [\n      1,\n      true\n    ],\n    \"a\": \"x\\\"y\"\n  }\n}",
            ),
            ("{\"z\":1}", "{\"z\":1,\"k\":{\"b\":[1,true],\"a\":\"x\\\"y\"}}"),
            ("{ \"z\": 1 }\n", "{ \"z\": 1, \"k\": {\"b\": [1, true], \"a\": \"x\\\"y\"} }\n"),
            (
                "{\r\n\t\"z\": 1\r\n}\r\n",
                "{\r\n\t\"z\": 1,\r\n\t\"k\": {\r\n\t\t\"b\": [\r\n\t\t\t1,\r\n\t\t\ttrue\r\n\t\t],\r\n\t\t\"a\": \"x\\\"y\"\r\n\t}\r\n}\r\n",
            ),
            (
                "{\n    \"z\": {}\n}\n",
                "{\n    \"z\": {},\n    \"k\": {\n        \"b\": [\n            1,\n            true\n        ],\n        \"a\": \"x\\\"y\"\n    }\n}\n",
            ),
        ] {
            let root = scan(before).unwrap();
            let added = insert_member(before, &root, "k", &hooks());
            assert_eq!(added, after);
            let root = scan(&added).unwrap();
            let index = root.members().unwrap().len() - 1;
            assert_eq!(remove(&added, &root, index), before);
        }
    }

    #[test]
    fn the_first_middle_last_and_only_element_can_be_removed() {
        let text = "[ 1,\n 2 , 3 ]";
        let root = scan(text).unwrap();
        assert_eq!(remove(text, &root, 0), "[ 2 , 3 ]");
        assert_eq!(remove(text, &root, 1), "[ 1 , 3 ]");
        assert_eq!(remove(text, &root, 2), "[ 1,\n 2 ]");
        let text = "{\"a\": [\n \"}\\\"]\" \n]}";
        let root = scan(text).unwrap();
        assert_eq!(remove(text, root.get("a").unwrap(), 0), "{\"a\": []}");
    }

    #[test]
    fn invalid_json_is_reported_with_line_and_column() {
        for (text, line, column) in
            [("{\n  \"a\": 1,\n}", 3, 1), ("{\n // hello\n}", 2, 2), ("", 1, 0), ("{} x", 1, 4)]
        {
            let found = scan(text).unwrap_err();
            assert_eq!((found.line, found.column), (line, column), "{text:?}");
        }
        assert!(scan(&"[".repeat(100_000)).is_err());
    }
}
