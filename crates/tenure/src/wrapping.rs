//! Long sentences on a terminal: broken between words, and not where the line happens to end.

use rustix::termios::{isatty, tcgetwinsize};

/// No line is made shorter than this: on a narrower terminal nothing helps.
const LEAST: usize = 40;

/// The text as lines that fit on the terminal that standard output is, each after `indent` but the first, which follows
/// `begin`. One line, if it is none: programs read that.
pub fn paragraph(begin: &str, text: &str, indent: &str) -> String {
    let is_shown = isatty(std::io::stdout());
    let columns =
        tcgetwinsize(std::io::stdout()).ok().filter(|_| is_shown).map(|size| usize::from(size.ws_col));
    wrapped(begin, text, indent, columns.filter(|columns| *columns > 0).unwrap_or(usize::MAX))
}

fn wrapped(begin: &str, text: &str, indent: &str, columns: usize) -> String {
    let columns = columns.max(LEAST);
    let width = |text: &str| text.chars().count();
    let mut lines = begin.to_owned();
    let mut used = width(begin);
    let mut is_first = true;
    for word in text.split(' ') {
        if !is_first && used.saturating_add(1 + width(word)) > columns {
            lines.push('\n');
            lines.push_str(indent);
            used = width(indent);
            is_first = true;
        }
        if !is_first {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += width(word);
        is_first = false;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_no_word_is_lost() {
        let text = "one two three four five six seven eight nine ten eleven";
        assert_eq!(wrapped("note: ", text, "  ", usize::MAX), format!("note: {text}\n"));
        let expected = "note: one two three four five six seven\n  eight nine ten eleven\n";
        assert_eq!(wrapped("note: ", text, "  ", 40), expected);
        assert_eq!(wrapped("note: ", text, "  ", 1), expected, "no narrower than that");
        let long = format!("a {} b", "x".repeat(60));
        assert_eq!(wrapped("", &long, "", 40), format!("a\n{}\nb\n", "x".repeat(60)));
    }
}
