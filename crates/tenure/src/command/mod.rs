//! What can be asked of the command line.

mod agents;
mod completions;
mod control;
mod doctor;
mod explain;
mod files;
mod guard;
mod hook;
mod install;
mod lease;
mod lease_request;
mod lease_view;
mod ledger;
mod log;
mod mcp;
mod passport;
mod replay;
mod report;
mod run;
mod serve;
mod session;
mod token;
mod verify;
mod watch;
mod who;
mod work;
mod worker;

use std::process::ExitCode;

use clap::Subcommand;

pub use self::doctor::run_internal_subcommand as run_doctor_subcommand;
pub use self::guard::exit_code as guard_exit_code;
pub use self::hook::run_hook_command;
pub use self::run::run_internal_subcommand;
use crate::failure::Failure;

/// A command, with its own help text.
#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(serve::Serve),
    Worker(worker::Worker),
    Run(run::Run),
    Acquire(lease::Acquire),
    Renew(lease::Renew),
    Release(lease::Release),
    Transfer(lease::Transfer),
    Revoke(lease::Revoke),
    List(lease::List),
    Show(lease::Show),
    Who(who::Who),
    Watch(watch::Watch),
    Explain(explain::Explain),
    Mcp(mcp::Mcp),
    Control(control::Control),
    Session(session::SessionArguments),
    Agents(agents::AgentsArguments),
    Contention(explain::Contention),
    Work(work::Work),
    Files(files::Files),
    Blame(files::Blame),
    Report(report::ReportArguments),
    Give(files::Give),
    ForceRelease(files::ForceRelease),
    Install(install::Install),
    Uninstall(install::Uninstall),
    Guard(guard::Guard),
    Doctor(doctor::Doctor),
    Hook(hook::Hook),
    Stop(serve::Stop),
    Token(token::Token),
    Verify(verify::Verify),
    Replay(replay::ReplayAt),
    Log(log::Log),
    Passport(passport::Passport),
    Ledger(ledger::Ledger),
    Completions(completions::Completions),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> ExitCode {
        let done = match self {
            Command::Serve(serve) => return serve.run(),
            Command::Worker(worker) => return worker.run().unwrap_or_else(Failure::report),
            Command::Run(run) => return run.run().unwrap_or_else(Failure::report),
            Command::Hook(hook) => return hook.run(),
            Command::Guard(guard) => return guard.run(),
            Command::Doctor(doctor) => return doctor.run().unwrap_or_else(Failure::report),
            Command::Acquire(acquire) => acquire.run(),
            Command::Renew(renew) => renew.run(),
            Command::Release(release) => release.run(),
            Command::Transfer(transfer) => transfer.run(),
            Command::Revoke(revoke) => revoke.run(),
            Command::List(list) => list.run(),
            Command::Show(show) => show.run(),
            Command::Who(command) => command.run(),
            Command::Watch(watch) => watch.run(),
            Command::Explain(explain) => explain.run(),
            Command::Mcp(mcp) => mcp.run(),
            Command::Control(control) => control.run(),
            Command::Session(session) => session.run(),
            Command::Agents(agents) => agents.run(),
            Command::Contention(contention) => contention.run(),
            Command::Work(work) => work.run(),
            Command::Files(files) => files.run(),
            Command::Blame(blame) => blame.run(),
            Command::Report(report) => report.run(),
            Command::Give(command) => command.run(),
            Command::ForceRelease(force) => force.run(),
            Command::Install(install) => install.run(),
            Command::Uninstall(uninstall) => uninstall.run(),
            Command::Stop(stop) => stop.run(),
            Command::Token(token) => token.run(),
            Command::Completions(completions) => completions.run(),
            Command::Verify(verify) => verify.run(),
            Command::Replay(replay) => replay.run(),
            Command::Log(log) => log.run(),
            Command::Passport(passport) => passport.run(),
            Command::Ledger(ledger) => ledger.run(),
        };
        done.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
    }
}
