//! The command line.

mod autostart;
mod client;
mod command;
mod config;
mod duration;
mod exit;
mod failure;
mod mcp;
mod output;
mod terminal_message;

use std::process::ExitCode;

use clap::Parser;

/// Who may touch this, until when, and how can they prove it?
///
/// Tenure is one lease authority for anything that two parties must not touch at once: a deployment, a
/// device, a tuner, a work item, a source file.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: command::Command,
}

fn main() -> ExitCode {
    if let Some(code) = command::run_internal_subcommand(std::env::args_os()) {
        return code;
    }
    if let Some(result) = tenure_guard::run_internal_subcommand(std::env::args_os(), autostart::connect) {
        return command::guard_exit_code(result);
    }
    if let Some(code) = tenure_guard::seccomp_probe::run_internal_subcommand(std::env::args_os()) {
        return code;
    }
    if let Some(code) = command::run_doctor_subcommand(std::env::args_os()) {
        return code;
    }
    // Before anything else: a hook has to be quick, and a wrong command line of one must not let an edit through.
    if let Some(code) = command::run_hook_command(std::env::args_os()) {
        return code;
    }
    match Arguments::try_parse() {
        Ok(arguments) => arguments.command.run(),
        Err(error) => {
            // A closed pipe is no reason to panic.
            let _ = error.print();
            if error.use_stderr() { exit::USAGE.into() } else { ExitCode::SUCCESS }
        }
    }
}
