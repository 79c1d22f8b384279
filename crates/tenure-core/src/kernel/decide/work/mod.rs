//! One file per request about work: what it leads to.

mod claim;
mod derive;
mod spend;

use crate::authority::{DeriveError, SpendError};
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::work::WorkCommand;

pub(super) fn decide(draft: &mut Draft<'_>, command: &WorkCommand) -> Result<Answer, Refusal> {
    match command {
        WorkCommand::Claim(claim) => claim::claim(draft, claim),
        WorkCommand::Derive(derive) => derive::derive(draft, derive),
        WorkCommand::Spend(spend) => spend::spend(draft, spend),
    }
}

impl Refusal {
    /// Why a child cannot be like that, said to who asked at this tick.
    fn of_derive(error: &DeriveError, draft: &Draft<'_>) -> Refusal {
        match error {
            DeriveError::WorkOutOfScope => Refusal::OutOfScope { what: "work_id" },
            DeriveError::ScopeTooWide => Refusal::OutOfScope { what: "scope" },
            DeriveError::OutlivesParent { parent_expires_at } => {
                Refusal::OutlivesParent { remaining: parent_expires_at.since(draft.now) }
            }
            DeriveError::Budget(exceeded) => Refusal::BudgetExceeded { left: exceeded.left },
        }
    }

    fn of_spend(error: &SpendError) -> Refusal {
        match error {
            SpendError::OutOfScope => Refusal::OutOfScope { what: "for" },
            SpendError::Budget(exceeded) => Refusal::BudgetExceeded { left: exceeded.left },
        }
    }
}
