//! `tenure serve`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::exit;

/// Runs the lease authority (not in this version yet: it says so and ends).
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:7420", value_name = "ADDRESS")]
    listen: String,
    /// Where to keep the ledger. By default under the XDG state directory.
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
}

impl Serve {
    /// Says what is missing, and what can be done instead.
    pub fn run(self) -> ExitCode {
        let version = env!("CARGO_PKG_VERSION");
        let kept =
            self.data.map_or_else(String::new, |data| format!(" with the ledger in {}", data.display()));
        let _ = writeln!(
            std::io::stderr(),
            "tenure {version} cannot serve yet: this version has the core and the ledger as libraries, but no API.\n\
             Nothing was started on {}{kept}, and nothing was written.\n\
             What works today: the libraries, and the proof of the core: cargo xtask sim --seeds 20",
            self.listen,
        );
        exit::UNAVAILABLE.into()
    }
}
