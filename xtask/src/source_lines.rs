//! Which lines of a Rust file are tests, and which are the program. Read as text, not as syntax: `rustfmt`
//! fixes the layout, so that the end of an item is the brace below its beginning.

use std::path::Path;

/// A Rust file, taken apart line by line. Both parts keep the numbers of their lines, from 1.
#[derive(Default)]
pub struct SourceLines<'text> {
    /// What is compiled into the program. Comments are left out.
    pub program: Vec<(usize, &'text str)>,
    /// What is run by the tests: items under `#[cfg(test)]`, and the doc comments that hold an example that runs.
    pub tests: Vec<(usize, &'text str)>,
    /// How many lines are items under `#[cfg(test)]`.
    pub test_item_lines: usize,
}

impl<'text> SourceLines<'text> {
    /// Takes `text` apart.
    pub fn parse(text: &'text str) -> Self {
        let mut source = Self::default();
        let mut doc_comment = Vec::new();
        // The white space before the item under `#[cfg(test)]` that is being read.
        let mut test_item: Option<&str> = None;
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
            if let Some(indentation) = test_item {
                source.tests.push((number, line));
                source.test_item_lines += 1;
                if is_end_of_item(indentation, line) {
                    test_item = None;
                }
                continue;
            }
            let code = line.trim_start();
            if code.starts_with("///") || code.starts_with("//!") {
                doc_comment.push((number, line));
                continue;
            }
            source.finish_doc_comment(&mut doc_comment);
            if code.starts_with("#[cfg(test)]") {
                test_item = Some(&line[..line.len() - code.len()]);
                source.tests.push((number, line));
                source.test_item_lines += 1;
            } else if !code.starts_with("//") {
                source.program.push((number, line));
            }
        }
        source.finish_doc_comment(&mut doc_comment);
        source
    }

    fn finish_doc_comment(&mut self, lines: &mut Vec<(usize, &'text str)>) {
        if has_runnable_example(lines) {
            self.tests.append(lines);
        }
        lines.clear();
    }
}

/// Whether `line` is the last of an item: its closing brace, or the semicolon of `mod tests;`.
fn is_end_of_item(indentation: &str, line: &str) -> bool {
    let Some(rest) = line.strip_prefix(indentation) else { return false };
    if rest.starts_with(char::is_whitespace) || rest.starts_with("#[") || rest.starts_with("//") {
        return false;
    }
    let end = rest.trim_end();
    end == "}" || end.ends_with(';') || (end.ends_with('}') && end.contains('{'))
}

/// Whether a fence in the comment opens code that `cargo test` compiles and runs.
fn has_runnable_example(comment: &[(usize, &str)]) -> bool {
    let mut inside = false;
    for (_, line) in comment {
        let Some(fence) = line.trim_start().trim_start_matches(['/', '!']).trim_start().strip_prefix("```")
        else {
            continue;
        };
        inside = !inside;
        let is_run = fence.trim().split(',').all(|word| {
            let word = word.trim();
            word.is_empty() || word == "rust" || word == "should_panic" || word.starts_with("edition")
        });
        if inside && is_run {
            return true;
        }
    }
    false
}

/// Whether everything in the file is a test, by where it lies or what it is called.
pub fn is_test_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_tests = |part: &std::ffi::OsStr| {
        part.to_str().is_some_and(|part| part == "tests" || part.ends_with("_tests"))
    };
    path.iter().any(is_tests) || name == "tests.rs" || name.ends_with("_tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(lines: &[(usize, &str)]) -> Vec<usize> {
        lines.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_test_module_ends_at_its_own_brace() {
        let source =
            SourceLines::parse("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n");
        assert_eq!(numbers(&source.program), [1, 7]);
        assert_eq!(numbers(&source.tests), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_test_module_in_another_file_does_not_swallow_what_follows() {
        let source = SourceLines::parse("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\nfn a() {}\n");
        assert_eq!(numbers(&source.tests), [1, 2, 3]);
        assert_eq!(numbers(&source.program), [4]);
    }

    #[test]
    fn a_helper_for_tests_inside_an_implementation_ends_at_its_own_brace() {
        let source = SourceLines::parse(
            "impl A {\n    #[cfg(test)]\n    fn b() {\n        c();\n    }\n\n    fn d() {}\n}\n#[cfg(test)]\nfn e() {}\nfn f() {}",
        );
        assert_eq!(numbers(&source.tests), [2, 3, 4, 5, 9, 10]);
        assert_eq!(numbers(&source.program), [1, 6, 7, 8, 11]);
    }

    #[test]
    fn a_doc_comment_is_a_test_only_if_it_holds_an_example_that_runs() {
        let runs = "/// Promise.\n/// ```\n/// assert!(true);\n/// ```\nfn a() {}\n";
        assert_eq!(numbers(&SourceLines::parse(runs).tests), [1, 2, 3, 4]);
        for fence in ["text", "ignore", "no_run", "compile_fail", "json"] {
            let text = format!("/// Promise.\n/// ```{fence}\n/// x\n/// ```\nfn a() {{}}\n");
            assert!(SourceLines::parse(&text).tests.is_empty(), "{fence}");
        }
        assert!(SourceLines::parse("/// Promise.\nfn a() {}\n").tests.is_empty());
    }

    #[test]
    fn comments_are_no_part_of_the_program() {
        let source = SourceLines::parse("// a\n/// b\n//! c\nfn d() {} // e\n");
        assert_eq!(numbers(&source.program), [4]);
    }

    #[test]
    fn test_files_are_known_by_place_or_name() {
        for path in
            ["crates/a/tests/b.rs", "crates/a/src/b_tests.rs", "crates/a/src/b/tests.rs", "tests/c.py"]
        {
            assert!(is_test_file(Path::new(path)), "{path}");
        }
        for path in ["crates/a/src/lib.rs", "xtask/src/test.rs", "crates/a/src/attests.rs"] {
            assert!(!is_test_file(Path::new(path)), "{path}");
        }
    }
}
