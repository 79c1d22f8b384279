//! `tenure report`.

use clap::{Args, Subcommand};
use tenure_api::{BlockerReport, BlockerReportList};

use crate::client::with_local_client;
use crate::command::file::files::view::format_owner;
use crate::duration::format_short;
use crate::failure::Failure;
use crate::output::{Format, Table};

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
        self.format.print_table(&BlockerReportList { reports }, "No reports.\n", |all| table(&all.reports))
    }
}

impl Show {
    fn run(self) -> Result<(), Failure> {
        let report = with_local_client(async |client| client.blocker_report(&self.id).await)?;
        self.format.print(&report, fields)
    }
}

impl Resume {
    fn run(self) -> Result<(), Failure> {
        let report = with_local_client(async |client| client.resume_blocked_session(&self.id).await)?;
        self.format.print(&report, resume_message)
    }
}

pub fn table(reports: &[BlockerReport]) -> Table {
    let heads = ["REPORT", "STATE", "BLOCKED FILE", "WHO STOPPED", "OWNER", "LOCK AGE", "SINCE"];
    let mut table = Table::with_header(&heads);
    for report in reports {
        table.row([
            report.id.clone(),
            report.state.clone(),
            report.blocked_file.clone(),
            format_owner(&report.blocked),
            format_owner(&report.owner),
            format_short(report.lock_age_ms),
            report.blocked_at.clone(),
        ]);
    }
    table
}

pub fn fields(report: &BlockerReport) -> Table {
    let mut table = Table::default();
    table.field("report", &report.id);
    table.field("blocked file", &report.blocked_file);
    if let Some(root) = &report.root {
        table.field("working tree", root);
    }
    table.field("owner identity", format_owner(&report.owner));
    if !report.owner.task.is_empty() {
        table.field("owner's task", &report.owner.task);
    }
    table.field("lock age", format_short(report.lock_age_ms));
    table.field("last heartbeat", &report.last_heartbeat_at);
    table.field("retry interval", format!("{}s", report.retry_interval_seconds));
    table.field("state", &report.state);
    table.field("who stopped", format_owner(&report.blocked));
    table.field("asked", &report.asked_at);
    table.field("blocked", &report.blocked_at);
    if !report.circle.is_empty() {
        table.field("wait for each other", report.circle.join(", "));
    }
    match &report.held_now_by {
        Some(now) => table.field("held now by", format_owner(now)),
        None => table.field("held now by", "nobody"),
    }
    if let Some(closed_at) = &report.closed_at {
        table.field("over", closed_at);
    }
    table
}

pub fn resume_message(report: &BlockerReport) -> String {
    let text = format!(
        "{} has {} now. Tell it in its own window to go on.",
        format_owner(&report.blocked),
        report.blocked_file
    );
    text.replace(char::is_control, " ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::file::files::view::tests::sample_owner;

    // S4-34 to S4-39
    #[test]
    fn report_shows_its_six_fields_by_name() {
        let report = BlockerReport {
            id: "R-3".to_owned(),
            blocked_file: "src/a.rs".to_owned(),
            root: Some("/repo".to_owned()),
            resource: "FILE:0/src/a.rs".to_owned(),
            owner: sample_owner(),
            lock_age_ms: 420_000,
            last_heartbeat_at: "2026-01-01T00:06:58.000Z".to_owned(),
            retry_interval_seconds: 180,
            state: "waiting_for_instruction".to_owned(),
            blocked: tenure_api::FileOwner { session: "s2".to_owned(), ..sample_owner() },
            asked_at: "2026-01-01T00:04:00.000Z".to_owned(),
            blocked_at: "2026-01-01T00:07:00.000Z".to_owned(),
            circle: vec!["claude/s2".to_owned(), "claude/s1".to_owned()],
            held_now_by: None,
            closed_at: None,
        };
        let expected = "\
report               R-3
blocked file         src/a.rs
working tree         /repo
owner identity       claude s1 (pid 7)
lock age             7m
last heartbeat       2026-01-01T00:06:58.000Z
retry interval       180s
state                waiting_for_instruction
who stopped          claude s2 (pid 7)
asked                2026-01-01T00:04:00.000Z
blocked              2026-01-01T00:07:00.000Z
wait for each other  claude/s2, claude/s1
held now by          nobody
";
        assert_eq!(fields(&report).to_string(), expected);
        assert!(table(&[report]).to_string().contains("R-3     waiting_for_instruction  src/a.rs"));
    }
}
