//! The words of a shell command, with their quotes taken off.

#[derive(Debug, Clone, Default)]
pub(super) struct ShellWord {
    pub text: String,
    /// Whether the shell would put something else in its place.
    pub expands: bool,
    /// Whether it is the target of a redirection, and no argument.
    pub is_redirect_target: bool,
}

/// What is left of a script.
pub(super) struct Tokenizer<'a> {
    pub rest: &'a str,
    /// Whether something was met that is not plain.
    pub is_ambiguous: bool,
}

impl Tokenizer<'_> {
    /// Goes over `bytes` bytes.
    pub fn skip_bytes(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    /// Goes over blanks and joined lines.
    pub fn skip_whitespace(&mut self) {
        loop {
            let trimmed = self.rest.trim_start_matches([' ', '\t']);
            let Some(joined) = trimmed.strip_prefix("\\\n") else {
                self.rest = trimmed;
                return;
            };
            self.rest = joined;
        }
    }

    /// The rest of the line, with its end.
    pub fn rest_of_line(&mut self) -> &str {
        let end = self.rest.find('\n').map_or(self.rest.len(), |end| end + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        line
    }

    /// The next word; an empty one where none begins.
    pub fn next_word(&mut self) -> ShellWord {
        let mut word = ShellWord::default();
        while let Some(first) = self.rest.chars().next() {
            match first {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '\\' => {
                    let escaped = self.rest[1..].chars().next();
                    word.expands = true;
                    word.text.extend(escaped);
                    self.skip_bytes(1 + escaped.map_or(0, char::len_utf8));
                }
                _ => {
                    word.expands |= matches!(first, '$' | '`');
                    self.is_ambiguous |=
                        first == '`' || self.rest.starts_with("$(") || self.rest.starts_with("$'");
                    word.text.push(first);
                    self.skip_bytes(first.len_utf8());
                }
            }
        }
        word
    }

    fn single_quoted(&mut self, word: &mut ShellWord) {
        self.skip_bytes(1);
        let end = self.rest.find('\'');
        self.is_ambiguous |= end.is_none();
        let end = end.unwrap_or(self.rest.len());
        word.text.push_str(&self.rest[..end]);
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
    }

    fn double_quoted(&mut self, word: &mut ShellWord) {
        self.skip_bytes(1);
        while let Some(first) = self.rest.chars().next() {
            self.skip_bytes(first.len_utf8());
            match first {
                '"' => return,
                '\\' => {
                    let next = self.rest.chars().next();
                    match next {
                        Some(special @ ('"' | '\\' | '$' | '`')) => word.text.push(special),
                        Some('\n') | None => {}
                        Some(other) => word.text.extend(['\\', other]),
                    }
                    self.skip_bytes(next.map_or(0, char::len_utf8));
                }
                _ => {
                    word.expands |= matches!(first, '$' | '`');
                    self.is_ambiguous |= first == '`' || first == '$' && self.rest.starts_with('(');
                    word.text.push(first);
                }
            }
        }
        self.is_ambiguous = true;
    }
}
