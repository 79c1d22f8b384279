//! `tenure token`.

use clap::{Args, Subcommand};
use tenure_api::{ApiTokenList, ApiTokenRequest, ApiTokenView};
use tenure_host::stderr::print_stderr;

use crate::client::with_client;
use crate::duration::parse_milliseconds;
use crate::failure::Failure;
use crate::output::{Format, Table, write_json, write_text};

/// Makes, lists and revokes the tokens with which requests are made.
///
/// A token says who speaks, and what it may do on which resources. All of this needs the scope `admin`.
#[derive(Debug, Args)]
pub struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

impl Token {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            TokenCommand::Create(create) => create.run(),
            TokenCommand::List(list) => list.run(),
            TokenCommand::Revoke(revoke) => revoke.run(),
        }
    }
}

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

/// Shows every token that is good, without its secret.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    format: Format,
}

impl List {
    /// Reads the list and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let tokens = with_client(async |client| Ok(client.tokens().await?))?;
        self.format.print_table(
            &ApiTokenList { tokens },
            "No tokens. `tenure token create` makes one.\n",
            |all| table(&all.tokens),
        )
    }
}

fn table(tokens: &[ApiTokenView]) -> Table {
    let mut table =
        Table::with_header(&["TOKEN", "NAME", "SCOPES", "RESOURCES", "CREATED", "EXPIRES", "LAST USED"]);
    let or_dash = |time: &Option<String>| time.clone().unwrap_or_else(|| "-".to_owned());
    for token in tokens {
        let resources = if token.resources.is_empty() { "all".to_owned() } else { token.resources.join(" ") };
        table.row([
            token.id.clone(),
            token.name.clone(),
            token.scopes.join(" "),
            resources,
            token.created_at.clone(),
            or_dash(&token.expires_at),
            or_dash(&token.last_used_at),
        ]);
    }
    table
}

/// Makes a token worthless at once, and ends the leases that were taken with it.
///
/// Example: tenure token revoke TOKEN
#[derive(Debug, Args)]
pub struct Revoke {
    /// The token's id, as `tenure token list` shows it
    #[arg(value_name = "TOKEN")]
    id: String,
    #[command(flatten)]
    format: Format,
}

impl Revoke {
    /// Revokes it.
    pub fn run(self) -> Result<(), Failure> {
        let revoked = with_client(async |client| Ok(client.revoke_token(&self.id).await?))?;
        self.format.print(&revoked, |revoked| {
            let (token, leases) = (&revoked.token, revoked.revoked_leases);
            let were = if leases == 1 { "lease was" } else { "leases were" };
            format!("The token of {} is worth nothing any more; {leases} {were} ended.\n", token.name)
        })
    }
}
