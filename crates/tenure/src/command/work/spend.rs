//! `tenure work spend`.

use clap::Args;
use tenure_api::{Budget, Purpose, SpendWork};

use super::amounts::{Amounts, Key};
use super::view;
use crate::command::lease_token::LeaseToken;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Uses up something of what a lease allows: all of it, or nothing.
///
/// Spending nothing asks whether the lease lives and allows what it is for.
///
/// Example: tenure work spend 4f1d09aa-17 --tokens 1200 --tool-calls 1 --tool search --key call-7
#[derive(Debug, Args)]
pub struct Spend {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    lease_id: String,
    #[command(flatten)]
    amounts: Amounts,
    /// On which work; the lease has to allow it
    #[arg(long = "work", value_name = "WORK")]
    work_id: Option<String>,
    /// With which tool; the lease has to allow it
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// In which namespace; the lease has to allow it
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    key: Key,
    #[command(flatten)]
    token: LeaseToken,
    #[command(flatten)]
    format: Format,
}

impl Spend {
    /// Spends it.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key.read()?;
        let purpose = Purpose { work_id: self.work_id, tool: self.tool, namespace: self.namespace };
        let Budget { episodes, tool_calls, tokens, duration_ms } = self.amounts.budget();
        let request = SpendWork {
            lease_id: self.lease_id,
            token: self.token.read()?.expose().to_owned(),
            episodes,
            tool_calls,
            tokens,
            duration_ms,
            purpose: (purpose != Purpose::default()).then_some(purpose),
        };
        let spent = ask(async |client| Ok(client.spend_work(&request, key.as_ref()).await?))?;
        self.format.print(&spent, |spent| {
            format!("{} has left: {}\n", spent.lease_id, view::amounts(&spent.remaining))
        })
    }
}
