//! `tenure token revoke`.

use clap::Args;

use crate::client::with_client;
use crate::failure::Failure;
use crate::output::Format;

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
