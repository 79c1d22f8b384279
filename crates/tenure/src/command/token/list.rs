//! `tenure token list`.

use clap::Args;
use tenure_api::{ApiTokenList, ApiTokenView};

use crate::client::with_client;
use crate::failure::Failure;
use crate::output::{Format, Table};

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
