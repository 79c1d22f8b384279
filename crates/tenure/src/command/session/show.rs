//! `tenure session show`.

use clap::Args;

use super::patience::{self, Goal};
use super::view;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Shows everything about one session, also if it ended not long ago.
///
/// Exit code with `--wait` 0: it runs, or came to a good end. 1: it is over otherwise. Without `--wait` 0, wherever it is.
///
/// Example: tenure session show SESSION --wait
#[derive(Debug, Args)]
pub struct Show {
    /// The session's id
    #[arg(value_name = "SESSION")]
    id: String,
    /// Wait until it runs or is over
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    format: Format,
}

impl Show {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let session = ask(async |client| match self.wait {
            true => patience::until(&client, &self.id, Goal::Decided).await,
            false => Ok(client.session(&self.id).await?),
        })?;
        self.format.print(&session, view::fields)?;
        if self.wait { patience::verdict(&session) } else { Ok(()) }
    }
}
