//! The token that came with a lease, and must not be seen by others.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use tenure_client::Secret;

use crate::exit;
use crate::failure::Failure;

/// Where the lease's token is found.
///
/// On a command line every user of the machine can read it in /proc, so prefer the file or the environment.
#[derive(Debug, Args)]
pub struct LeaseTokenArguments {
    /// The lease's token. Others on this machine can read it here: prefer --token-file or TENURE_LEASE_TOKEN
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file", allow_hyphen_values = true)]
    token: Option<RedactedArgument>,
    /// A file that holds the lease's token, as `tenure acquire --token-file` writes it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// A value of the command line that no message shows.
#[derive(Debug, Clone)]
struct RedactedArgument(Secret);

impl From<String> for RedactedArgument {
    fn from(text: String) -> Self {
        Self(Secret::new(text))
    }
}

impl LeaseTokenArguments {
    /// Reads it.
    pub fn read(self) -> Result<Secret, Failure> {
        if let Some(RedactedArgument(token)) = self.token {
            return Ok(token);
        }
        if let Some(path) = self.token_file {
            let text = fs::read_to_string(&path).map_err(|error| {
                Failure::new(exit::USAGE, &format!("{} cannot be read", path.display()), &error)
            })?;
            return Ok(Secret::new(text.trim()));
        }
        match std::env::var("TENURE_LEASE_TOKEN") {
            Ok(token) if !token.is_empty() => Ok(Secret::new(token)),
            _ => Err(Failure::from_message(exit::USAGE, "the lease's token is needed").with_hint(
                "It came with the lease. Put it into TENURE_LEASE_TOKEN, or name a file that holds it with \
                 --token-file.",
            )),
        }
    }
}

/// Writes a token where only its owner reads it.
pub fn write(path: &Path, token: &str) -> Result<(), Failure> {
    let write = || {
        // Made anew, so that it never has the rights of a file that was there before.
        let beside = path.with_added_extension("new");
        let _ = fs::remove_file(&beside);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        writeln!(file, "{token}")?;
        fs::rename(&beside, path)
    };
    write()
        .map_err(|error| Failure::new(exit::DISK, &format!("{} cannot be written", path.display()), &error))
}
