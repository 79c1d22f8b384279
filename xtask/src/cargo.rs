//! The commands that run one cargo command: simulator, benchmarks, OpenAPI document, advisories.

use xshell::cmd;

use crate::process::{self, TaskError};
use crate::tools;
use crate::workspace::Workspace;

/// Runs the simulator, optimised; prints exactly what it prints
///
/// `cargo xtask sim --seeds 20`, `cargo xtask sim --from 17 --seeds 1`. Every argument goes to the
/// simulator unchanged; `cargo xtask sim -- --help` shows what it knows.
#[derive(clap::Args)]
pub struct Sim {
    /// The simulator's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Sim {
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let sim = workspace.cargo(&["run", "--release", "--quiet", "--package", "tenure-sim", "--"]);
        process::run(
            sim.args(&self.arguments),
            "see above; a violation is repeated by its seed: `cargo xtask sim --from SEED --seeds 1`",
        )
    }
}

/// Measures, on a machine that does nothing else
///
/// A timing is a benchmark, never a test: `cargo xtask test` builds the benchmarks and does not run them.
#[derive(clap::Args)]
pub struct BenchCommand {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Decide and apply in the kernel, and the memory of its table
    Core(BenchArguments),
    /// Durable leases through the registrar, restarts, and many ends at once
    Ledger(BenchArguments),
    /// What a guard adds to opening a file and to whole commands; needs hyperfine
    Gate(BenchArguments),
    /// Compare Tenure with etcd, Redis, PostgreSQL, NATS and ZooKeeper; installs those that are missing
    ///
    /// Debian starts some of them as services of the machine when it installs them. Stop those first: the benchmark starts
    /// its own servers, on free ports. `-- --help` shows the options, such as `--quick` and `--write`.
    Peers(BenchArguments),
}

#[derive(clap::Args)]
struct BenchArguments {
    /// The benchmark's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl BenchCommand {
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let (package, bench, own) = match &self.subject {
            Subject::Core(own) => ("tenure-core", "core", own),
            Subject::Ledger(own) => ("tenure-registrar", "ledger", own),
            Subject::Gate(own) => {
                tools::install_hyperfine(&workspace.shell)?;
                ("tenure", "gate", own)
            }
            Subject::Peers(own) => return own.run_peers(workspace),
        };
        let cargo = workspace.cargo(&["bench", "--quiet", "--package", package, "--bench", bench, "--"]);
        process::run(
            cargo.args(&own.arguments),
            "see above; before believing a figure beyond its bound, repeat it on a machine that is idle",
        )
    }
}

impl BenchArguments {
    fn run_peers(&self, workspace: &Workspace) -> Result<(), TaskError> {
        tools::install_peers(workspace)?;
        let build = ["build", "--release", "--quiet", "--locked", "--package"];
        for package in ["tenure", "tenure-bench"] {
            process::run(workspace.cargo(&build).arg(package), "see above")?;
        }
        let programs = workspace.target.join("release");
        let bench = workspace.shell.cmd(programs.join("tenure-bench"));
        let bench = bench.arg("--tenure").arg(programs.join("tenure"));
        let bench = bench.arg("--nats").arg(tools::NATS.program(workspace, "nats-server"));
        process::run(
            bench.args(&self.arguments),
            "see above; before believing a figure, repeat it on a machine that is idle",
        )
    }
}

/// Compares docs/openapi.json with what the code says, or writes it anew
///
/// The description is made from the code by a test of the server, so that this task builds without the rest.
#[derive(clap::Args)]
pub struct Openapi {
    /// Write docs/openapi.json instead of comparing it
    #[arg(long)]
    write: bool,
}

impl Openapi {
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let test = workspace.cargo(&[
            "test",
            "--quiet",
            "--locked",
            "--package",
            "tenure-server",
            "--lib",
            "openapi",
        ]);
        let test = if self.write { test.env("TENURE_WRITE_OPENAPI", "1") } else { test };
        process::run(test, "see above; `cargo xtask openapi --write` writes docs/openapi.json anew")
    }
}

/// Looks the dependencies up in the public database of advisories
///
/// Apart from `cargo xtask test` because it needs the network, and because a new advisory must not
/// fail a change that has nothing to do with it.
#[derive(clap::Args)]
pub struct Advisories {}

impl Advisories {
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let (shell, deny) = (&workspace.shell, tools::DENY.require(workspace)?);
        process::run(
            cmd!(shell, "{deny} --log-level error fetch db"),
            "NOTHING was checked; try again on a machine that reaches the internet",
        )?;
        process::run(
            cmd!(shell, "{deny} --offline check advisories"),
            "update it (`cargo update --package NAME`); if it does not concern Tenure, say why in deny.toml",
        )
    }
}
