//! What every command asks for that takes a lease.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use tenure_api::AcquireRequest;

use crate::client::default_holder;
use crate::duration::parse_milliseconds;

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
