//! The names that a file defines. Works on text, not on syntax: the formatters fix the layout, and a ratchet needs the
//! same answer each time more than it needs every last name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::lexer::{CodeAndProse, FileLanguage, pattern};

impl CodeAndProse {
    /// Every name where it is defined, with its offset.
    pub fn names(&self) -> BTreeMap<usize, &str> {
        let mut names = BTreeMap::new();
        match self.language {
            FileLanguage::Rust => self.rust_names(&mut names),
            FileLanguage::Python => self.python_names(&mut names),
            _ => {}
        }
        names
    }

    /// The names of structs, enums and traits.
    pub fn type_names(&self) -> Vec<&str> {
        groups(&TYPE, &self.code, 0).map(|(_, name)| name).collect()
    }

    fn rust_names<'a>(&'a self, names: &mut BTreeMap<usize, &'a str>) {
        for pattern in [&*ITEM, &*CONSTANT] {
            names.extend(groups(pattern, &self.code, 0));
        }
        for pattern in [&*LET, &*FOR, &*CLOSURE, &*MATCH_ARM] {
            let patterns = groups(pattern, &self.code, 0);
            names.extend(patterns.flat_map(|(offset, pattern)| bound_names(offset, pattern)));
        }
        for (offset, imports) in groups(&USE, &self.code, 0) {
            names.extend(groups(&RENAMED_IMPORT, imports, offset));
        }
        for function in FUNCTION.find_iter(&self.code) {
            let parameters = parameters(&self.code, function.end());
            names.extend(bound_names(parameters.start, &self.code[parameters]));
        }
        for header in TYPE_WITH_BODY.captures_iter(&self.code) {
            let start = header.get_match().end();
            let body = start..end_of_group(&self.code, start, b'{', b'}');
            names.extend(groups(&FIELD, &self.code[body.clone()], body.start));
            if &header["keyword"] == "enum" {
                names.extend(variants(body.start, &self.code[body]));
            }
        }
    }

    fn python_names<'a>(&'a self, names: &mut BTreeMap<usize, &'a str>) {
        names.extend(groups(&PYTHON_ITEM, &self.code, 0));
        for pattern in [&*PYTHON_ASSIGNMENT, &*PYTHON_FOR, &*PYTHON_BINDING] {
            for (offset, bound) in groups(pattern, &self.code, 0) {
                names.extend(groups(&PYTHON_NAME, bound, offset));
            }
        }
        for function in PYTHON_FUNCTION.find_iter(&self.code) {
            let parameters = parameters(&self.code, function.end());
            names.extend(groups(&PYTHON_PARAMETER, &self.code[parameters.clone()], parameters.start));
        }
    }
}

static ITEM: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:fn|struct|enum|union|trait|type|mod|macro_rules!)\s+(?:r#)?(\w+)"));
static CONSTANT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(?:const|static)\s+(?:mut\s+)?(\w+)\s*:"));
static USE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\buse\s+([^;]+);"));
static RENAMED_IMPORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bas\s+(\w+)"));
static LET: LazyLock<Regex> = LazyLock::new(|| pattern(r"\blet\s+([^=;]+)[=;]"));
static FOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bfor\s+([^=;]+?)\s+in\s"));
/// `rustfmt` puts spaces around every other `|`.
static CLOSURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\|([^\s|](?:[^|\n]*[^\s|])?)\|"));
static MATCH_ARM: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^ *([\w :(){},&@|.\[\]-]+?)(?: if .*)? =>"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bfn\s+\w+"));
static TYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(?:struct|enum|trait)\s+(\w+)"));
static TYPE_WITH_BODY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?<keyword>struct|enum|union)\s+\w+[^;{(]*\{"));
static FIELD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([a-z_]\w*):\s"));
static VARIANT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*([A-Z]\w*)"));
static NAME_IN_PATTERN: LazyLock<Regex> = LazyLock::new(|| pattern(r"[{}]|\b[a-z_]\w*"));
static PYTHON_ITEM: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(?:def|class)\s+(\w+)"));
static PYTHON_FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bdef\s+\w+"));
static PYTHON_ASSIGNMENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^[ \t]*((?:self\.)?[A-Za-z_]\w*(?:, (?:self\.)?\w+)*)(?::\s|\s=\s)"));
static PYTHON_FOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bfor\s+([\w, ()]+?)\s+in\b"));
static PYTHON_BINDING: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(?:as|lambda)\s+([\w, ]+?)(?:[:)\n])"));
static PYTHON_PARAMETER: LazyLock<Regex> = LazyLock::new(|| pattern(r"[(,*]\s*([a-z_]\w*)"));
static PYTHON_NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([A-Za-z_]\w*)"));

/// The first group of every match of `pattern` in `text`; `start` is the offset of `text` in its file.
fn groups<'a>(
    pattern: &'a Regex,
    text: &'a str,
    start: usize,
) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let groups = pattern.captures_iter(text).filter_map(|found| found.get(1));
    groups.map(move |group| (start + group.start(), group.as_str()))
}

/// The variables that a Rust pattern binds. A field in braces is no new name, unless it is renamed.
fn bound_names(start: usize, pattern: &str) -> Vec<(usize, &str)> {
    let (mut names, mut depth) = (Vec::new(), 0);
    for found in NAME_IN_PATTERN.find_iter(pattern) {
        let before = pattern[..found.start()].trim_end();
        let after = &pattern[found.end()..];
        match found.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "mut" | "ref" => {}
            name => {
                let is_path = after.starts_with("::") || after.starts_with(['(', '!', '<']);
                if !is_path && (depth == 0 || before.ends_with([':', '('])) {
                    names.push((start + found.start(), name));
                }
            }
        }
    }
    names
}

/// The variants in the body of an enum: what begins a line outside of all brackets.
fn variants(start: usize, body: &str) -> Vec<(usize, &str)> {
    let (mut names, mut depth, mut offset) = (Vec::new(), 0_usize, start);
    for line in body.split_inclusive('\n') {
        if depth == 0 {
            names.extend(groups(&VARIANT, line, offset));
        }
        for byte in line.bytes() {
            match byte {
                b'(' | b'{' | b'[' => depth += 1,
                b')' | b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        offset += line.len();
    }
    names
}

/// The parameters of the function whose name ends at `start`, with the opening parenthesis; empty if there are none.
fn parameters(code: &str, start: usize) -> Range<usize> {
    let start = match code[start..].starts_with('<') {
        true => code.len().min(end_of_group(code, start + 1, b'<', b'>') + 1),
        false => start,
    };
    if code[start..].starts_with('(') {
        start..end_of_group(code, start + 1, b'(', b')')
    } else {
        start..start
    }
}

/// The offset of the bracket that closes the group whose content begins at `start`. An arrow closes nothing.
fn end_of_group(code: &str, start: usize, open: u8, close: u8) -> usize {
    let (mut depth, mut last) = (1, 0);
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        if byte == open {
            depth += 1;
        } else if byte == close && !(byte == b'>' && last == b'-') {
            depth -= 1;
            if depth == 0 {
                return offset;
            }
        }
        last = byte;
    }
    code.len()
}

/// The words of a snake_case or CamelCase name, in lower case. Digits separate words.
pub fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_after_small_letter = false;
    for letter in name.chars() {
        if !letter.is_alphabetic() || (letter.is_uppercase() && is_after_small_letter) {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            words.last_mut().expect("one word").extend(letter.to_lowercase());
        }
        is_after_small_letter = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(language: FileLanguage, text: &str) -> Vec<String> {
        CodeAndProse::new(language, text).names().into_values().map(str::to_owned).collect()
    }

    #[test]
    fn items_fields_and_variants_define_names() {
        let text = "pub(crate) const fn a<T: Fn(u8) -> u8>(b: T, (c, d): (T, T)) {}\nstruct E<T> {\n    pub f: T,\n}\n\
                    enum G {\n    H(I),\n    J { k: u8 },\n}\nconst L: u8 = 1;\nstatic mut M: u8 = 1;\nmod n;\n\
                    trait O {\n    type P;\n}\nmacro_rules! q {}\nuse r::{S as T, U};\n";
        let names = names(FileLanguage::Rust, text);
        assert_eq!(
            names,
            ["a", "b", "c", "d", "E", "f", "G", "H", "J", "k", "L", "M", "n", "O", "P", "q", "T"]
        );
    }

    #[test]
    fn bindings_define_names_and_uses_do_not() {
        let text = "fn a() {\n    let mut b: Vec<T> = c.d(e);\n    let Some(f) = g else { return };\n    \
                    for (h, i) in j {}\n    k.map(|l| m(l));\n    match n {\n        O::P(q) if r => s,\n        \
                    T { u, v: w } => X { y: z },\n    }\n}\n";
        assert_eq!(names(FileLanguage::Rust, text), ["a", "b", "f", "h", "i", "l", "q", "w"]);
    }

    #[test]
    fn python_definitions_are_found() {
        let text = "class A:\n    b: int\n\n    def c(self, d, *, e: int = 1):\n        self.f = g(h=1)\n        \
                    for i, j in k:\n            l, m = i\n        with n as o:\n            return lambda p: q == r\n";
        let mut names = names(FileLanguage::Python, text);
        names.retain(|name| name != "self");
        assert_eq!(names, ["A", "b", "c", "d", "e", "f", "i", "j", "l", "m", "o", "p"]);
    }

    #[test]
    fn type_names_are_those_of_structs_enums_and_traits() {
        let text = "struct A;\n/// struct B\nenum C {}\ntrait D {}\ntype E = A;\nfn f() {}\n";
        assert_eq!(CodeAndProse::new(FileLanguage::Rust, text).type_names(), ["A", "C", "D"]);
    }

    #[test]
    fn names_are_split_at_underscores_and_capitals() {
        assert_eq!(words_of("was_asked"), ["was", "asked"]);
        assert_eq!(words_of("WasAsked2"), ["was", "asked"]);
        assert_eq!(words_of("WAS_ASKED"), ["was", "asked"]);
        assert_eq!(words_of("09-was.asked"), ["was", "asked"]);
    }
}
