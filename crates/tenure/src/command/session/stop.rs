//! `tenure session stop`.

use clap::Args;

use super::patience::{self, Goal};
use super::view;
use crate::failure::Failure;
use crate::output::{write_answer, write_text};
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
    /// Print one JSON value instead of text
    #[arg(long)]
    json: bool,
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
        match (&session, self.json) {
            (Some(session), true) => write_answer(session)?,
            (Some(session), false) => write_text(&view::fields(session).to_string())?,
            (None, true) => write_answer(&accepted)?,
            (None, false) => write_text(&view::accepted(&accepted).to_string())?,
        }
        Ok(())
    }
}
