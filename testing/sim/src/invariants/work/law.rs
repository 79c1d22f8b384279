//! The laws of work leases, by name.

use crate::invariants::{InvariantResult, Violation};

macro_rules! laws {
    ($($law:ident = $sentence:literal;)*) => {
        /// What a ledger and its answers must never show of work leases.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WorkLaw {
            $($law,)*
        }

        impl WorkLaw {
            pub const ALL: &[WorkLaw] = &[$(WorkLaw::$law,)*];

            /// The law as the beginning of each violation of it.
            pub const fn sentence(self) -> &'static str {
                match self { $(WorkLaw::$law => $sentence,)* }
            }
        }
    };
}

laws! {
    ScopeWithinParent = "a derived lease allows no more than its parent";
    EndWithinParent = "a derived lease never expires after its parent";
    BudgetFromParent = "the budget of a derived lease is deducted from its parent";
    SpentBelowWithinBudget = "the sum spent by a lease and below it never exceeds its budget";
    SpendWithinLease = "a spend is within the time, the scope and the remaining budget of its lease";
    ChildrenEndFirst = "a lease ends after the leases derived from it";
    EndsWithParent = "a lease revoked because of its parent ends in the same write as its parent";
    YoungestEndsFirst = "of the leases that end with their parent the youngest ends first";
    HolderOnly = "only the holder of a lease spends, derives, renews and releases";
    OncePerKey = "a key leads to one spend or one lease";
    AcknowledgedIsDurable = "what is acknowledged is in the ledger as it was requested";
    ExactRemaining = "the reported remaining budget is exact";
    RejectedChangesNothing = "a rejected request is not in the ledger";
    JustifiedRejections = "a rejection has the reason that it reports";
    ReplayedSums = "a replay gives the same sums";
}

impl WorkLaw {
    pub(super) fn ensure(self, holds: bool, detail: impl FnOnce() -> String) -> InvariantResult {
        self.require(holds.then_some(()), detail)
    }

    pub(super) fn require<T>(
        self,
        value: Option<T>,
        detail: impl FnOnce() -> String,
    ) -> Result<T, Violation> {
        value.ok_or_else(|| Violation(format!("{}: {}", self.sentence(), detail())))
    }
}
