//! What people and CI run. The doc comment of a command's arguments is its help text.

mod bugs;
mod cargo;
mod clean_build;
mod clients;
mod figures;
mod language;
mod layers;
mod openapi_references;
mod process;
mod requirements;
mod secret_scan;
mod source_lines;
mod surface;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::process::TaskError;
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
    #[command(name = "rows")]
    Requirements(requirements::Arguments),
    Openapi(cargo::Openapi),
    Schemathesis(clients::Schemathesis),
    Mcp(clients::Mcp),
    Python(clients::Python),
    Sim(cargo::Sim),
    Surface(surface::Arguments),
    Bench(cargo::BenchCommand),
    Bugs(bugs::Arguments),
    Figures(figures::Arguments),
    #[command(name = "fresh")]
    CleanBuild(clean_build::CleanBuild),
    Language(language::Arguments),
    Advisories(cargo::Advisories),
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

fn run(command: &Command) -> Result<(), TaskError> {
    let workspace = Workspace::find()?;
    match command {
        Command::Test(arguments) => test::run(&workspace, arguments),
        Command::Layers(_) => layers::check(&workspace),
        Command::Requirements(arguments) => requirements::run(&workspace, arguments),
        Command::Openapi(arguments) => arguments.run(&workspace),
        Command::Schemathesis(arguments) => arguments.run(&workspace),
        Command::Mcp(arguments) => arguments.run(&workspace),
        Command::Python(arguments) => arguments.run(&workspace),
        Command::Surface(arguments) => surface::run(&workspace, arguments),
        Command::Sim(arguments) => arguments.run(&workspace),
        Command::Bench(arguments) => arguments.run(&workspace),
        Command::Bugs(arguments) => bugs::run(&workspace, arguments),
        Command::Figures(arguments) => figures::check(&workspace, arguments.list),
        Command::Language(arguments) => language::run(&workspace, arguments),
        Command::CleanBuild(arguments) => arguments.run(&workspace),
        Command::Advisories(arguments) => arguments.run(&workspace),
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
