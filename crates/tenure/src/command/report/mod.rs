//! `tenure report`.

mod view;

use clap::{Args, Subcommand};
use tenure_api::BlockerReportList;

use crate::client::with_local_client;
use crate::failure::Failure;
use crate::output::Format;

/// Shows which agents stopped because a file was not free, and lets them go on.
///
/// An agent that needs a file of another one tries once more after three minutes. If the file is still not free, it stops,
/// and leaves a report: which file, who has it, for how long, and when something was last heard from that one. It waits for
/// an instruction then: `tenure report resume`, `tenure give`, or a word in its own window.
#[derive(Debug, Args)]
pub struct ReportArguments {
    #[command(subcommand)]
    command: ReportCommand,
}

#[derive(Debug, Subcommand)]
enum ReportCommand {
    List(List),
    Show(Show),
    Resume(Resume),
}

/// Shows all reports that are remembered, the oldest first.
///
/// Example: tenure report list
#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    format: Format,
}

/// Shows one report.
///
/// Example: tenure report show R-17
#[derive(Debug, Args)]
struct Show {
    /// Its name
    id: String,
    #[command(flatten)]
    format: Format,
}

/// Gives a session that stopped the file that it needs, if that is free by now, so that it can go on.
///
/// Tell the agent in its own window to go on: Tenure cannot. Exit code 75: somebody still has the file. Only for people: it
/// is refused to whatever an agent started.
///
/// Example: tenure report resume R-17
#[derive(Debug, Args)]
struct Resume {
    /// Its name
    id: String,
    #[command(flatten)]
    format: Format,
}

impl ReportArguments {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ReportCommand::List(list) => list.run(),
            ReportCommand::Show(show) => show.run(),
            ReportCommand::Resume(resume) => resume.run(),
        }
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let reports = with_local_client(async |client| client.blocker_reports().await)?;
        self.format
            .print_table(&BlockerReportList { reports }, "No reports.\n", |all| view::table(&all.reports))
    }
}

impl Show {
    fn run(self) -> Result<(), Failure> {
        let report = with_local_client(async |client| client.blocker_report(&self.id).await)?;
        self.format.print(&report, view::fields)
    }
}

impl Resume {
    fn run(self) -> Result<(), Failure> {
        let report = with_local_client(async |client| client.resume_blocked_session(&self.id).await)?;
        self.format.print(&report, view::resume_message)
    }
}
