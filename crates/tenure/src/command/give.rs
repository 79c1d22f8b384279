//! `tenure give`.

use std::path::PathBuf;

use clap::Args;
use tenure_api::FileGive;

use super::files::view;
use super::path::absolute;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask_here;

/// Hands a file to another session of an agent: to one that waits for it, or to any that lives.
///
/// Whoever had it loses it at once, and is told when it next wants to change the file. `tenure files` shows the sessions. Only
/// for people: it is refused to whatever an agent started. The ledger keeps who did it.
///
/// Example: tenure give src/main.rs --to 7f3a
#[derive(Debug, Args)]
pub struct Give {
    /// Which file
    path: PathBuf,
    /// To which session: its name, or enough of its beginning
    #[arg(long, value_name = "SESSION")]
    to: String,
    #[command(flatten)]
    format: Format,
}

impl Give {
    /// Hands it over.
    pub fn run(self) -> Result<(), Failure> {
        let give = FileGive { path: absolute(&self.path)?, to: self.to };
        let file = ask_here(async |client| client.give_file(&give).await)?;
        self.format.print(&file, |file| {
            let text = format!("{} has {} now.", view::owner(&file.owner), file.path);
            text.replace(char::is_control, " ") + "\n"
        })
    }
}
