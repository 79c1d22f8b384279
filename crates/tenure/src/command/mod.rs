//! The commands, in one folder per API.

mod admin;
mod agent;
mod control;
mod file;
mod intent;
mod lease;
mod ledger;
mod work;

use std::process::ExitCode;

use clap::Subcommand;

pub use self::file::doctor::run_internal_subcommand as run_doctor_subcommand;
pub use self::file::guard::exit_code as guard_exit_code;
pub use self::file::hook::run_hook_command;
pub use self::lease::run::run_internal_subcommand;
use crate::failure::Failure;

/// A command, with its own help text.
#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(admin::serve::Serve),
    Worker(intent::worker::Worker),
    Run(lease::run::Run),
    Acquire(lease::Acquire),
    Renew(lease::Renew),
    Release(lease::Release),
    Transfer(lease::Transfer),
    Revoke(lease::Revoke),
    List(lease::List),
    Show(lease::Show),
    Who(lease::who::Who),
    Watch(lease::watch::Watch),
    Explain(lease::explain::Explain),
    Mcp(agent::mcp::Mcp),
    Control(control::Control),
    Session(intent::session::SessionArguments),
    Agents(agent::AgentsArguments),
    Contention(lease::explain::Contention),
    Work(work::Work),
    Files(file::files::Files),
    Blame(file::files::Blame),
    Report(file::report::ReportArguments),
    Give(file::files::Give),
    ForceRelease(file::files::ForceRelease),
    Install(file::install::Install),
    Uninstall(file::install::Uninstall),
    Guard(file::guard::Guard),
    Doctor(file::doctor::Doctor),
    Hook(file::hook::Hook),
    Stop(admin::serve::Stop),
    Token(admin::token::Token),
    Verify(ledger::verify::Verify),
    Replay(ledger::replay::ReplayAt),
    Log(ledger::log::Log),
    Passport(ledger::passport::Passport),
    Ledger(ledger::Ledger),
    Completions(admin::completions::Completions),
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
