//! `tenure completions`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::write_text;
use crate::{Arguments, exit};

/// Writes what a shell needs to complete `tenure`'s command lines, or its manual pages.
///
/// Example: tenure completions bash > ~/.local/share/bash-completion/completions/tenure
/// Example: tenure completions man --to ~/.local/share/man/man1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    /// For what
    #[arg(value_enum)]
    what: CompletionFormat,
    /// Write into this directory, and not to standard output; manual pages become one file for each command
    #[arg(long, value_name = "DIRECTORY")]
    to: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompletionFormat {
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
    /// Manual pages
    Man,
}

impl Completions {
    /// Writes them.
    pub fn run(self) -> Result<(), Failure> {
        for (name, text) in self.files()? {
            match &self.to {
                Some(folder) => write(&folder.join(name), &text)?,
                None => write_text(&text)?,
            }
        }
        Ok(())
    }

    /// Each file with its name.
    fn files(&self) -> io::Result<Vec<(String, String)>> {
        let mut command = Arguments::command();
        let (shell, name) = match self.what {
            CompletionFormat::Bash => (Shell::Bash, "tenure"),
            CompletionFormat::Zsh => (Shell::Zsh, "_tenure"),
            CompletionFormat::Fish => (Shell::Fish, "tenure.fish"),
            CompletionFormat::Man => {
                command.build();
                let mut pages = Vec::new();
                add_pages(&command, &mut pages)?;
                return Ok(pages);
            }
        };
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "tenure", &mut text);
        Ok(vec![(name.to_owned(), in_utf8(text)?)])
    }
}

/// The page of a command and those of the commands below it. `help` needs none.
fn add_pages(command: &clap::Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), in_utf8(text)?));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        add_pages(below, pages)?;
    }
    Ok(())
}

fn in_utf8(text: Vec<u8>) -> io::Result<String> {
    String::from_utf8(text).map_err(io::Error::other)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written
        .map_err(|error| Failure::new(exit::DISK, &format!("{} cannot be written", path.display()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_manual_page() {
        let pages = Completions { what: CompletionFormat::Man, to: None }.files().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["tenure.1", "tenure-run.1", "tenure-token-create.1", "tenure-ledger-copy.1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(pages.iter().all(|(_, page)| page.contains(".TH")));
    }
}
