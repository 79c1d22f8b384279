//! `tenure acquire`.

use std::path::PathBuf;

use clap::Args;
use tenure_api::LeaseGrants;
use tenure_client::IdempotencyKey;

use super::lease_request::LeaseRequestArguments;
use super::{lease_token, lease_view};
use crate::client::with_client;
use crate::duration::parse_milliseconds;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, write_json, write_text};

/// Takes a lease, and prints its id, its fence and the token that renews and releases it.
///
/// Nobody renews it for you: `tenure renew` does, or it runs out. To run one command under a lease, `tenure run` is
/// simpler and safer. Several resources are taken all at once or not at all. Exit code 75: somebody else has it.
///
/// Example: tenure acquire deploy:prod --ttl 5m --wait 1m --token-file lease.token
#[derive(Debug, Args)]
pub struct Acquire {
    /// What to take, as `domain:name`; `pool:*` is any free one of a pool
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    #[command(flatten)]
    request: LeaseRequestArguments,
    /// How long to wait for it [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds, default_value = "0s", hide_default_value = true)]
    wait: u64,
    /// Makes the request one and the same however often it is sent: 1 to 255 visible characters
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Write the token to this file, which only its owner can read, and not to standard output
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Acquire {
    /// Asks for the lease.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key.as_deref().map(IdempotencyKey::parse).transpose();
        let key = key.map_err(|error| Failure::new(exit::USAGE, "--key cannot be used", &error))?;
        if self.token_file.is_some() && self.resources.len() > 1 {
            return Err(Failure::from_message(
                exit::USAGE,
                "--token-file is for one resource: each lease has a token of its own",
            ));
        }
        let requests = self.request.requests(self.resources, self.wait);
        let mut leases = with_client(async |client| match &requests[..] {
            [request] => Ok(vec![client.acquire(request, key.as_ref()).await?]),
            requests => Ok(client.acquire_all(requests, key.as_ref()).await?),
        })?;
        if let Some(path) = &self.token_file {
            for granted in &mut leases {
                lease_token::write(path, &granted.token)?;
                granted.token.clear();
            }
        }
        match (&leases[..], self.format.json) {
            ([granted], true) => write_json(granted)?,
            (_, true) => write_json(&LeaseGrants { leases })?,
            (all, false) => {
                let texts = all.iter().map(|granted| {
                    lease_view::granted_lease_table(granted, self.token_file.is_none()).to_string()
                });
                write_text(&texts.collect::<Vec<_>>().join("\n"))?;
            }
        }
        Ok(())
    }
}
