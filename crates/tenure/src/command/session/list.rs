//! `tenure session list`.

use clap::{Args, ValueEnum};
use tenure_api::Sessions;

use super::view;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Shows the sessions that go on, and those that ended last; the newest first.
///
/// Ended ones are remembered for a while only; `tenure log` shows all that happened.
///
/// Example: tenure session list --state running
#[derive(Debug, Args)]
pub struct List {
    /// Only those in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    /// No worker has taken it
    New,
    /// Its leases are held, its pipeline is about to start
    Starting,
    /// Its pipeline runs
    Running,
    /// Somebody asked for its end
    Stopping,
    /// It is over
    Ended,
}

impl List {
    /// Reads the list and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let state = self.state.map(|state| match state {
            State::New => "NEW",
            State::Starting => "STARTING",
            State::Running => "RUNNING",
            State::Stopping => "STOPPING",
            State::Ended => "ENDED",
        });
        let sessions = ask(async |client| Ok(client.sessions(state).await?))?;
        self.format.print_table(&Sessions { sessions }, "No sessions.\n", |all| view::table(&all.sessions))
    }
}
