//! Shell commands, as far as a patch in them needs it: what text a command is given, and in which folder it runs.
//!
//! No shell is imitated. What is not plain is called confusing, and the caller decides what that means.

use crate::cwd::{CwdTracker, PossibleFolders};
use crate::tokenizer::{ShellWord, Tokenizer};

/// A text that some command is given: a word, or what stands behind `<<`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellText {
    pub text: String,
    /// Whether the shell leaves it as it is.
    pub is_literal: bool,
    pub folders: PossibleFolders,
}

/// What is known of a script.
#[derive(Debug, Default)]
pub(super) struct ShellScript {
    pub inputs: Vec<ShellText>,
    pub applies_a_patch: bool,
    pub is_ambiguous: bool,
}

/// How deep scripts in scripts are read.
const MAX_NESTING: usize = 3;

/// How many brackets or texts may be open at once. More is no script that anybody wrote.
const MAX_OPEN: usize = 64;

/// Commands that run the command that follows.
const WRAPPERS: [&str; 10] =
    ["env", "command", "exec", "time", "timeout", "nohup", "sudo", "nice", "xargs", "builtin"];

pub(super) fn parse_script(text: &str) -> ShellScript {
    let mut script = ShellScript::default();
    read_in(text, Some(vec![String::new()]), 0, &mut script);
    script
}

/// Whether a command that nobody understands may go to another folder.
pub(super) fn may_change_folder(text: &str) -> bool {
    let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.any(|word| matches!(word, "cd" | "pushd" | "popd" | "chdir" | "env" | "eval"))
}

fn read_in(text: &str, folders: PossibleFolders, depth: usize, script: &mut ShellScript) {
    let words = Tokenizer { rest: text, is_ambiguous: false };
    let mut reader = ScriptParser {
        words,
        script,
        depth,
        cwd: CwdTracker::new(folders),
        expects_command: false,
        command: Vec::new(),
        heredocs: Vec::new(),
    };
    reader.run();
    let is_confusing = reader.words.is_ambiguous;
    script.is_ambiguous |= is_confusing;
}

struct Heredoc {
    end: String,
    tabs: bool,
    is_literal: bool,
    owner: String,
    folders: PossibleFolders,
}

struct ScriptParser<'a, 's> {
    words: Tokenizer<'a>,
    script: &'s mut ShellScript,
    depth: usize,
    cwd: CwdTracker,
    /// Whether the last thing was an operator that wants another command.
    expects_command: bool,
    command: Vec<ShellWord>,
    heredocs: Vec<Heredoc>,
}

impl ScriptParser<'_, '_> {
    fn run(&mut self) {
        loop {
            self.words.skip_whitespace();
            let rest = self.words.rest;
            let Some(first) = rest.chars().next() else { break };
            let begins = |operator: &str| rest.starts_with(operator);
            match first {
                '#' => self.words.rest = rest.find('\n').map_or("", |end| &rest[end..]),
                // After an operator the command goes on in the next line.
                '\n' if self.expects_command && self.command.is_empty() => {
                    self.words.skip_bytes(1);
                    self.take_heredocs();
                }
                '\n' => {
                    self.end_list(1);
                    self.take_heredocs();
                }
                '&' if begins("&&") => self.end_and(2),
                '|' if begins("||") || begins("|&") => self.end_or_pipe(2),
                '|' => self.end_or_pipe(1),
                '<' if begins("<<<") => self.words.skip_bytes(3),
                '<' if begins("<<") => self.heredoc(),
                '<' | '>' => self.redirect(),
                '&' if begins("&>") => self.redirect(),
                ';' | '&' => self.end_list(1),
                '(' => {
                    self.end_command(1);
                    self.expects_command = false;
                    if self.cwd.depth() < MAX_OPEN {
                        self.cwd.enter_subshell();
                    } else {
                        self.script.is_ambiguous = true;
                    }
                }
                ')' => {
                    self.end_list(1);
                    self.script.is_ambiguous |= !self.cwd.leave_subshell();
                }
                _ => {
                    let word = self.words.next_word();
                    let is_number = word.text.bytes().all(|byte| byte.is_ascii_digit());
                    // The 2 of `2>&1` is no argument.
                    if !is_number || !self.words.rest.starts_with(['<', '>']) {
                        self.command.push(word);
                    }
                }
            }
        }
        self.end_list(0);
        self.take_heredocs();
    }

    /// `> file`, `2>&1` and the like: the word that follows is no argument.
    fn redirect(&mut self) {
        self.words.rest = self.words.rest.trim_start_matches(['<', '>', '&', '|']);
        self.words.skip_whitespace();
        self.script.is_ambiguous |= self.words.rest.starts_with('(');
        let word = self.words.next_word();
        self.command.push(ShellWord { is_redirect_target: true, ..word });
    }

    fn heredoc(&mut self) {
        self.words.skip_bytes(2);
        let tabs = self.words.rest.starts_with('-');
        self.words.rest = self.words.rest.trim_start_matches('-');
        self.words.skip_whitespace();
        let before = self.words.rest;
        let end = self.words.next_word().text;
        if self.heredocs.len() == MAX_OPEN {
            self.script.is_ambiguous = true;
            return;
        }
        let is_literal = before[..before.len() - self.words.rest.len()].contains(['\'', '"', '\\']);
        let owner = self.command.iter().find(|word| is_name(word)).map(|word| base(&word.text).to_owned());
        let owner = owner.unwrap_or_default();
        self.heredocs.push(Heredoc { end, tabs, is_literal, owner, folders: self.cwd.current.clone() });
    }

    /// What stands behind `<<`: it begins on the next line.
    fn take_heredocs(&mut self) {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let mut text = String::new();
            while !self.words.rest.is_empty() {
                let line = self.words.rest_of_line();
                let line = if heredoc.tabs { line.trim_start_matches('\t') } else { line };
                if line.trim_end_matches(['\n', '\r']) == heredoc.end {
                    break;
                }
                text.push_str(line);
            }
            self.body(&heredoc.owner, text, heredoc.is_literal, heredoc.folders);
        }
    }

    /// A text that `owner` is given.
    fn body(&mut self, owner: &str, text: String, is_literal: bool, folders: PossibleFolders) {
        if matches!(owner, "sh" | "bash" | "zsh" | "dash" | "ksh") {
            self.script.is_ambiguous |= !is_literal || self.depth == MAX_NESTING;
            if self.depth < MAX_NESTING {
                read_in(&text, folders, self.depth + 1, self.script);
            }
            return;
        }
        // Somebody else may take it for a script of its own, and go elsewhere in it.
        let mut lines = text.lines().filter(|line| !line.starts_with(['+', '-', ' ', '@', '*']));
        self.script.is_ambiguous |= !is_patch(owner) && lines.any(may_change_folder);
        self.script.inputs.push(ShellText { text, is_literal, folders });
    }

    fn end_list(&mut self, operator: usize) {
        self.end_command(operator);
        self.cwd.end_list();
        self.expects_command = false;
    }

    fn end_and(&mut self, operator: usize) {
        self.end_command(operator);
        self.expects_command = true;
    }

    fn end_or_pipe(&mut self, operator: usize) {
        self.end_command(operator);
        self.cwd.end_or_pipe();
        self.expects_command = true;
    }

    fn end_command(&mut self, operator: usize) {
        self.words.skip_bytes(operator);
        let mut words = std::mem::take(&mut self.command).into_iter().filter(|word| !word.is_redirect_target);
        let Some(name) = words.find(is_name) else { return };
        let words: Vec<ShellWord> = words.collect();
        let name = base(&name.text);
        let wraps = |predicate: fn(&str) -> bool| {
            WRAPPERS.contains(&name) && words.iter().any(|word| predicate(base(&word.text)))
        };
        self.script.applies_a_patch |= is_patch(name) || wraps(is_patch);
        self.script.is_ambiguous |= wraps(may_change_folder)
            || wraps(|word| word.starts_with("-C") || word.starts_with("--chdir"))
            || matches!(name, "if" | "then" | "else" | "elif" | "for" | "while" | "until" | "do" | "case")
            || matches!(name, "function" | "{" | "!" | "eval");
        match name {
            "cd" | "pushd" | "chdir" => self.cwd.change_folder(&words),
            "popd" => self.cwd.set_unknown(),
            _ => {}
        }
        for word in words.into_iter().filter(|word| word.text.contains("*** ")) {
            self.body(name, word.text, !word.expands, self.cwd.current.clone());
        }
    }
}

/// The program that a word names.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

fn is_patch(program: &str) -> bool {
    matches!(program, "apply_patch" | "applypatch")
}

/// Whether a word is a command's name, and not `NAME=value` before it or a redirection.
fn is_name(word: &ShellWord) -> bool {
    let is_assignment = word.text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    });
    !word.is_redirect_target && !is_assignment
}
