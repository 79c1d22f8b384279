//! `tenure files`.

mod audit;
pub mod view;

use clap::Args;

use crate::client::with_local_client;
use crate::failure::Failure;
use crate::output::{Format, write_json, write_table, write_text};

/// Shows which files coding agents are editing on this machine: who has each, since when, and who waits for it.
///
/// An agent gets a file by itself when it first changes it, and has it until it commits, ends, dies, or is silent for half a
/// minute after its turn. Whoever else wants it meanwhile tries once more after three minutes, and then stops and reports
/// (`tenure report list`).
///
/// FILE is below its working tree; the folder stands before it where there are several. LAST HEARD is when the owner last
/// did anything at all. WAITING says who wants the file, and when the one retry of each is due.
///
/// --audit shows the working trees that are watched for changes that no lease explains, and what of them is not. Such changes are
/// in the ledger (`tenure watch --type file.violated`).
///
/// Example: tenure files
/// Example: tenure files --json
/// Example: tenure files --audit
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Files {
    #[command(flatten)]
    format: Format,
    /// Show which working trees are watched, instead of files
    #[arg(long)]
    audit: bool,
}

impl Files {
    /// Reads the list and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let found = with_local_client(async |client| client.files().await)?;
        match (self.audit, self.format.json) {
            (true, true) => write_json(&found.audit)?,
            (true, false) if found.audit.is_empty() => write_text("No trees are watched.\n")?,
            (true, false) => write_table(&audit::table(&found.audit))?,
            (false, true) => write_json(&found.files)?,
            (false, false) => {
                if found.files.is_empty() {
                    write_text("No files.\n")?;
                } else {
                    write_table(&view::table(&found.files))?;
                }
                write_text(&audit::format_uncovered_trees(&found.audit))?;
            }
        }
        Ok(())
    }
}
