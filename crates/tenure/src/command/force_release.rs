//! `tenure force-release`.

use std::path::PathBuf;

use clap::Args;
use tenure_api::FileForce;

use super::files::view;
use super::path::absolute;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask_here;

/// Takes a file from the agent that has it, so that anybody may have it.
///
/// What that agent has written stays as it is; it is told when it next wants to change the file. Only for people: it is
/// refused to whatever an agent started. The ledger keeps who did it, and why.
///
/// Example: tenure force-release src/main.rs --reason "it hangs"
#[derive(Debug, Args)]
pub struct ForceRelease {
    /// Which file
    path: PathBuf,
    /// Why, for people; it stands in the ledger
    #[arg(long, value_name = "TEXT", default_value = "by hand")]
    reason: String,
    #[command(flatten)]
    format: Format,
}

impl ForceRelease {
    /// Takes it.
    pub fn run(self) -> Result<(), Failure> {
        let force = FileForce { path: absolute(&self.path)?, reason: self.reason };
        let file = ask_here(async |client| client.force_release_file(&force).await)?;
        self.format.print(&file, |file| {
            let text = format!("{} was taken from {}.", file.path, view::owner(&file.owner));
            text.replace(char::is_control, " ") + "\n"
        })
    }
}
