//! Comments, which are no JSON, and which some agents read all the same.

/// The line of the first comment. Nothing, if there is none.
pub fn comment(text: &str) -> Option<usize> {
    let mut letters = text.chars().peekable();
    let mut line = 1;
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => line += 1,
            '/' if matches!(letters.peek(), Some('/' | '*')) => return Some(line),
            '"' => {
                while let Some(inner) = letters.next().filter(|inner| *inner != '"') {
                    line += usize::from(inner == '\n');
                    if inner == '\\' {
                        letters.next();
                    }
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_known_from_a_text_that_looks_like_one() {
        for (text, line) in [
            ("{}", None),
            (r#"{"a": "// no", "b": "\"/* no */"}"#, None),
            ("{\n  // yes\n}", Some(2)),
            ("{ /* yes */ }", Some(1)),
            ("{\"a\": \"http://x\",\n\n \"b\": 1 // yes\n}", Some(3)),
            ("{ / }", None),
            ("\"open // string", None),
        ] {
            assert_eq!(comment(text), line, "{text}");
        }
    }
}
