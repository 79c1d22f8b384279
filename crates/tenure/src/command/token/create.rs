//! `tenure token create`.

use clap::Args;
use tenure_api::ApiTokenRequest;

use crate::client::with_client;
use crate::duration::parse_milliseconds;
use crate::failure::Failure;
use crate::output::{write_json, write_text};
use crate::terminal_message::print_stderr;

/// Makes a token and prints its secret, which is shown this one time only.
///
/// The secret goes to standard output and nothing else does, so that it can be put where it belongs.
///
/// Example: tenure token create ci --scope leases:write --resource deploy: --expires-in 90d > ci.token
#[derive(Debug, Args)]
pub struct Create {
    /// Who speaks with it. No two living tokens have the same name
    name: String,
    /// What it may do: leases:read, leases:write, control:write, v3:write or admin; can be repeated
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<String>,
    /// On what: only resources that begin like this; can be repeated [default: all]
    #[arg(long = "resource", value_name = "PREFIX")]
    resources: Vec<String>,
    /// How long it is good for [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds)]
    expires_in: Option<u64>,
    /// Print one JSON value, with the secret in it
    #[arg(long)]
    json: bool,
}

impl Create {
    /// Makes it.
    pub fn run(self) -> Result<(), Failure> {
        let Self { name, scopes, resources, expires_in: expires_in_ms, json } = self;
        let request = ApiTokenRequest { name, scopes, resources, expires_in_ms };
        let created = with_client(async |client| Ok(client.create_token(&request).await?))?;
        if json {
            write_json(&created)?;
        } else {
            write_text(&format!("{}\n", created.secret))?;
            let token = &created.token;
            print_stderr(&format!(
                "Token {} of {} was made. Its secret is not shown again.\n",
                token.id, token.name
            ));
        }
        Ok(())
    }
}
