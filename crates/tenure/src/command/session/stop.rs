//! `tenure session stop`.

use clap::Args;

use super::patience::{self, Goal};
use super::view;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Asks for a session's end, and prints where it is.
///
/// Its worker ends the pipeline, sees it gone, and gives back its leases; `--wait` waits for that. What is over stays as it
/// is. Exit code 1: there is no such session.
///
/// Example: tenure session stop SESSION --wait
#[derive(Debug, Args)]
pub struct Stop {
    /// The session's id
    #[arg(value_name = "SESSION")]
    id: String,
    /// Wait until it is over
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    format: Format,
}

impl Stop {
    /// Asks for its end.
    pub fn run(self) -> Result<(), Failure> {
        let (accepted, session) = ask(async |client| {
            let accepted = client.stop_session(&self.id).await?;
            let session = match self.wait {
                true => Some(patience::until(&client, &self.id, Goal::Over).await?),
                false => None,
            };
            Ok((accepted, session))
        })?;
        match &session {
            Some(session) => self.format.print(session, view::fields)?,
            None => self.format.print(&accepted, view::accepted)?,
        }
        Ok(())
    }
}
