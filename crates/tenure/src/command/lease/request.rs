//! What every command asks for that takes a lease.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tenure_api::AcquireRequest;
use tenure_client::Secret;

use crate::client::default_holder;
use crate::duration::parse_milliseconds;
use crate::exit;
use crate::failure::Failure;

/// How a lease is wanted.
#[derive(Debug, Args)]
pub struct LeaseRequestArguments {
    /// How long the lease lives unless it is renewed: 1s to 24h
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds, default_value = "30s")]
    pub ttl: u64,
    /// Whether others may hold it at the same time
    #[arg(long, value_enum, default_value_t = LeaseMode::Exclusive)]
    mode: LeaseMode,
    /// Who will hold it, in at most 128 bytes [default: USER@HOST:PROCESS]
    #[arg(long, value_name = "NAME")]
    holder: Option<String>,
    /// Something to note with the lease, for people; can be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
}

/// Who may hold a resource together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LeaseMode {
    /// Nobody else
    Exclusive,
    /// Others that hold it shared
    Shared,
}

impl LeaseRequestArguments {
    /// A request for each of these resources, for one holder.
    pub fn requests(self, resources: Vec<String>, wait_ms: u64) -> Vec<AcquireRequest> {
        let holder = self.holder.unwrap_or_else(default_holder);
        let labels: BTreeMap<String, String> = self.labels.into_iter().collect();
        let mode = match self.mode {
            LeaseMode::Exclusive => None,
            LeaseMode::Shared => Some("shared".to_owned()),
        };
        let request = |resource| AcquireRequest {
            resource,
            holder: holder.clone(),
            ttl_ms: self.ttl,
            mode: mode.clone(),
            wait_ms,
            labels: labels.clone(),
        };
        resources.into_iter().map(request).collect()
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a label is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

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
