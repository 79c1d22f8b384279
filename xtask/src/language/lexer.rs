//! Splits a file into code and prose.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// A file by the way in which it holds prose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileLanguage {
    Rust,
    Python,
    /// Other text with `//` comments.
    SlashComments,
    /// Other text with `#` comments.
    HashComments,
    Markdown,
    /// Descriptions and summaries are prose.
    OpenApi,
    /// Comments above the diff are prose.
    Patch,
}

/// The parts of a file, each as long as the file, so that offsets in them are offsets in the file.
pub struct CodeAndProse {
    pub language: FileLanguage,
    /// Comments and string literals are blank.
    pub code: String,
    /// Everything that is not prose is a `|`, so that no phrase continues across code.
    pub prose: String,
}

impl FileLanguage {
    /// The language of a file; `None` for a file without prose.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "rs" => Some(Self::Rust),
            "py" => Some(Self::Python),
            "js" | "proto" => Some(Self::SlashComments),
            "toml" | "sh" => Some(Self::HashComments),
            "md" => Some(Self::Markdown),
            "patch" => Some(Self::Patch),
            "json" if path.ends_with("docs/openapi.json") => Some(Self::OpenApi),
            _ => None,
        }
    }

    /// Where the prose of `text` is.
    fn prose(self, text: &str) -> Vec<Range<usize>> {
        let pattern = match self {
            Self::Rust | Self::SlashComments => &SLASH_COMMENTS,
            Self::Python | Self::HashComments => &HASH_COMMENTS,
            Self::OpenApi => &DESCRIPTION,
            Self::Patch => &PATCH_COMMENT,
            Self::Markdown => return outside_fences(text),
        };
        let all = pattern.captures_iter(text);
        all.filter_map(|found| Some(found.name("prose")?.range())).collect()
    }
}

pub fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

/// Character literals are matched, because one of them is a quotation mark.
static SLASH_COMMENTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r###"(?s)(?<prose>//[^\n]*|/\*.*?\*/|\bb?r"[^"]*"|\bb?r#".*?"#|\bb?r##".*?"##|"(?:[^"\\]|\\.)*")|'(?:[^'\\\n]|\\'|\\[^'\n]+)'"###,
    )
});
static HASH_COMMENTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r##"(?s)(?<prose>#[^\n]*|""".*?"""|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"##)
});
static DESCRIPTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#""(?<key>description|summary)": "(?<prose>(?:[^"\\]|\\.)*)""#));
static PATCH_COMMENT: LazyLock<Regex> = LazyLock::new(|| pattern("(?m)^(?<prose>#.*)$"));

/// The lines of a Markdown text outside of fenced code.
fn outside_fences(text: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut is_code) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            ranges.push(range);
        }
    }
    ranges
}

/// The descriptions in an OpenAPI document, each with its offset.
pub fn descriptions(text: &str) -> Vec<(usize, &str)> {
    let all = DESCRIPTION.captures_iter(text).filter(|found| &found["key"] == "description");
    all.filter_map(|found| found.name("prose").map(|prose| (prose.start(), prose.as_str()))).collect()
}

impl CodeAndProse {
    /// Splits `text`.
    pub fn new(language: FileLanguage, text: &str) -> Self {
        let mut code = text.as_bytes().to_vec();
        let mut prose: Vec<_> =
            code.iter().map(|byte| if byte.is_ascii_whitespace() { *byte } else { b'|' }).collect();
        for range in language.prose(text) {
            blank(&mut code[range.clone()]);
            prose[range.clone()].copy_from_slice(&text.as_bytes()[range.clone()]);
            if language != FileLanguage::Markdown {
                blank_syntax(&mut prose[range]);
            }
        }
        let text_of = |bytes| String::from_utf8(bytes).expect("whole characters are replaced");
        Self { language, code: text_of(code), prose: text_of(prose) }
    }
}

/// Replaces everything by spaces; ends of lines stay.
fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// Replaces the beginning of a comment, and the prefix and the escapes of a string literal, by spaces.
fn blank_syntax(bytes: &mut [u8]) {
    if matches!(bytes.first(), Some(b'/' | b'#')) {
        let marker = bytes.iter().take_while(|byte| matches!(byte, b'/' | b'!' | b'*' | b'#')).count();
        return blank(&mut bytes[..marker]);
    }
    let prefix = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'#').count();
    if matches!(bytes.get(prefix), Some(b'"' | b'\'')) {
        blank(&mut bytes[..prefix]);
    }
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] == b'\\' {
            let length = if bytes.get(index + 1).is_some_and(u8::is_ascii) { 2 } else { 1 };
            blank(&mut bytes[index..index + length]);
            index += 1;
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(language: FileLanguage, text: &str) -> Vec<String> {
        let parts = CodeAndProse::new(language, text);
        assert_eq!(parts.prose.len(), text.len());
        assert_eq!(parts.code.len(), text.len());
        let words = parts.prose.split(|letter: char| !letter.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn prose_of_rust_is_comments_and_string_literals() {
        let text = "/// one\nfn a(b: &'static str) {\n    c('\"', \"two\\nthree \\\n        four\"); // five\n    d(r#\"six\"#, 'x');\n}\n";
        assert_eq!(prose(FileLanguage::Rust, text), ["one", "two", "three", "four", "five", "six"]);
    }

    #[test]
    fn prose_of_python_is_comments_and_strings() {
        let text = "def a():\n    \"\"\"One\n    two.\"\"\"\n    return f'three' # four\n";
        assert_eq!(prose(FileLanguage::Python, text), ["One", "two", "three", "four"]);
    }

    #[test]
    fn prose_of_other_files_excludes_code() {
        assert_eq!(prose(FileLanguage::Markdown, "one\n```sh\ntwo\n```\nthree\n"), ["one", "three"]);
        let text = "{\"description\": \"one\\ntwo\", \"name\": \"three\", \"summary\": \"four\"}";
        assert_eq!(prose(FileLanguage::OpenApi, text), ["one", "two", "four"]);
        assert_eq!(prose(FileLanguage::Patch, "# one\n--- a/two\n+# three\n"), ["one"]);
    }

    #[test]
    fn phrases_span_comment_lines_but_not_code() {
        let prose = |text: &str| CodeAndProse::new(FileLanguage::Rust, text).prose;
        let phrase = pattern(r"one\s+two");
        assert!(phrase.is_match(&prose("    /// one\n    /// two\n")));
        assert!(phrase.is_match(&prose("a(\"one \\\n    two\")")));
        assert!(!phrase.is_match(&prose("// one\nlet a = 1;\n// two\n")));
    }

    #[test]
    fn descriptions_exclude_summaries() {
        let text = r#"{"description": "one two", "summary": "three"}"#;
        assert_eq!(descriptions(text), [(17, "one two")]);
    }
}
