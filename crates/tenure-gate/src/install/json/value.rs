//! What we write ourselves, with its keys in our order.

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
