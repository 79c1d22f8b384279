//! What people and CI run. One file is one command; its doc comment is its help text.

mod advisories;
mod agents;
mod architecture;
mod bench;
mod bugs;
mod copy;
mod dereferenced;
mod figures;
mod fresh;
mod layers;
mod mcp;
mod openapi;
mod problem;
mod process;
mod purity;
mod python;
mod rows;
mod schemathesis;
mod secret_scan;
mod sim;
mod source;
mod surface;
mod test;
mod tools;
mod traces;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::problem::Problem;
use crate::workspace::Workspace;

/// The tasks of the Tenure repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Test(test::Arguments),
    Layers(layers::Arguments),
    Rows(rows::Arguments),
    Openapi(openapi::Arguments),
    Schemathesis(schemathesis::Arguments),
    Mcp(mcp::Arguments),
    Python(python::Arguments),
    Sim(sim::Arguments),
    Surface(surface::Arguments),
    Bench(bench::Arguments),
    Bugs(bugs::Arguments),
    Figures(figures::Arguments),
    Fresh(fresh::Arguments),
    Advisories(advisories::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("\n{problem}");
            ExitCode::from(problem.exit_code())
        }
    }
}

fn run(command: &Command) -> Result<(), Problem> {
    let workspace = Workspace::find()?;
    match command {
        Command::Test(arguments) => test::run(&workspace, arguments),
        Command::Layers(arguments) => layers::run(&workspace, arguments),
        Command::Rows(arguments) => rows::run(&workspace, arguments),
        Command::Openapi(arguments) => openapi::run(&workspace, arguments),
        Command::Schemathesis(arguments) => schemathesis::run(&workspace, arguments),
        Command::Mcp(arguments) => mcp::run(&workspace, arguments),
        Command::Python(arguments) => python::run(&workspace, arguments),
        Command::Surface(arguments) => surface::run(&workspace, arguments),
        Command::Sim(arguments) => sim::run(&workspace, arguments),
        Command::Bench(arguments) => bench::run(&workspace, arguments),
        Command::Bugs(arguments) => bugs::run(&workspace, arguments),
        Command::Figures(arguments) => figures::run(&workspace, arguments),
        Command::Fresh(arguments) => fresh::run(&workspace, arguments),
        Command::Advisories(arguments) => advisories::run(&workspace, arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
