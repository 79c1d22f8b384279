//! `tenure files`.

pub mod view;

use clap::Args;

use crate::failure::Failure;
use crate::output::{write_answer, write_table, write_text};
use crate::server::ask_here;

/// Shows which files coding agents are editing on this machine: who has each, since when, and who waits for it.
///
/// An agent gets a file by itself when it first changes it, and has it until it commits, ends, dies, or is silent for half a
/// minute after its turn. Whoever else wants it meanwhile tries once more after three minutes, and then stops and reports
/// (`tenure report list`).
///
/// FILE is below its working tree; the folder stands before it where there are several. LAST HEARD is when the owner last
/// did anything at all. WAITING says who wants the file, and when the one retry of each is due.
///
/// Example: tenure files
/// Example: tenure files --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Files {
    /// Print one JSON list instead of a table
    #[arg(long)]
    json: bool,
}

impl Files {
    /// Reads the list and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let found = ask_here(async |client| client.files().await)?;
        if self.json {
            write_answer(&found.files)?;
        } else if found.files.is_empty() {
            write_text("No files.\n")?;
        } else {
            write_table(&view::table(&found.files))?;
        }
        Ok(())
    }
}
