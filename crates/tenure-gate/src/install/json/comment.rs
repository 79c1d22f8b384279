//! Comments, which are no JSON, and which some agents read all the same.

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

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
