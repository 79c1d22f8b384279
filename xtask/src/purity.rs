//! What the pure crates must not mention. Clippy knows methods and types; this knows words, and so sees a
//! whole module or a macro before anything in it is used.

use std::path::Path;

use crate::problem::Problem;
use crate::source::{Source, is_test_file};
use crate::workspace::files_below;

/// The folders whose programs are pure.
const PURE: &[&str] = &["crates/tenure-core/src", "crates/tenure-control/src"];

const CLOCK: &str = "time comes in as an argument, so that a replay sees the same time";
const OUTSIDE: &str =
    "what is outside comes in as an argument and goes out as a value, so that a simulation can be both";
const ORDER: &str =
    "one thread decides in one order, so that the same commands always lead to the same events";
const CHANCE: &str = "a random value comes in as an argument, so that a seed repeats everything";
const PRINTING: &str = "a library speaks in values; whoever calls it decides what is shown";

/// Words, each with the reason against it. `fs::` stands beside `std::fs` because of `use std::{fs, io}`.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::time", CLOCK),
    ("SystemTime", CLOCK),
    ("Instant", CLOCK),
    ("std::fs", OUTSIDE),
    ("fs::", OUTSIDE),
    ("std::net", OUTSIDE),
    ("net::", OUTSIDE),
    ("std::env", OUTSIDE),
    ("env::", OUTSIDE),
    ("std::process", OUTSIDE),
    ("process::", OUTSIDE),
    ("std::thread", ORDER),
    ("thread::", ORDER),
    ("tokio", ORDER),
    ("async fn", ORDER),
    ("rand", CHANCE),
    ("getrandom", CHANCE),
    ("RandomState", CHANCE),
    ("print!", PRINTING),
    ("println!", PRINTING),
    ("eprint!", PRINTING),
    ("eprintln!", PRINTING),
];

/// Every forbidden word in the programs of the pure crates, with its place and the reason.
pub fn violations(root: &Path) -> Result<Vec<String>, Problem> {
    let mut wrong = Vec::new();
    for folder in PURE {
        for path in files_below(&root.join(folder))? {
            let place = path.strip_prefix(root).unwrap_or(&path);
            if is_test_file(place) || path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(|error| Problem::file(&path, &error))?;
            wrong.extend(forbidden_in(&text).map(|(line, word, reason)| {
                format!("{}:{line} mentions `{word}`: {reason}", place.display())
            }));
        }
    }
    Ok(wrong)
}

/// The first forbidden word of each line in the program of `text`: line, word, reason.
fn forbidden_in(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    Source::parse(text).program.into_iter().filter_map(|(number, line)| {
        let (word, reason) = FORBIDDEN.iter().find(|(word, _)| mentions(line, word))?;
        Some((number, *word, *reason))
    })
}

/// Whether `word` stands in `line` by itself: `rand` is not in `operand`.
fn mentions(line: &str, word: &str) -> bool {
    let is_part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let goes_on =
            word.ends_with(is_part_of_word) && line[start + word.len()..].starts_with(is_part_of_word);
        !goes_on && !line[..start].ends_with(is_part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pure_crates_are_pure() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");
        let wrong = violations(root).expect("the sources can be read");
        assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    }

    #[test]
    fn a_forbidden_word_is_found_with_its_line_and_reason() {
        let found: Vec<_> = forbidden_in("fn a() {\n    let now = std::time::Instant::now();\n}\n").collect();
        assert_eq!(found, [(2, "std::time", CLOCK)]);
        for line in [
            "let a = fs::read(b);",
            "pub async fn a() {}",
            "println!(\"a\");",
            "use rand::Rng;",
            "use std::net;",
        ] {
            assert_eq!(forbidden_in(line).count(), 1, "{line}");
        }
    }

    #[test]
    fn comments_tests_and_longer_words_do_not_count() {
        for text in [
            "// no std::time here\n",
            "/// Never calls println!\nfn a() {}\n",
            "let operand = strand(Instantly, offs::et, rules::time::is_over);\n",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}\n",
        ] {
            assert_eq!(forbidden_in(text).count(), 0, "{text}");
        }
    }
}
