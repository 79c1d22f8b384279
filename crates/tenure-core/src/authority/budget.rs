//! The budget of a work lease.

use thiserror::Error;

use crate::rules::InvalidInput;

/// Amounts that can be used up: of episodes, of tool calls, of tokens, and of milliseconds.
///
/// ```
/// use tenure_core::authority::Budget;
/// let budget = Budget { tokens: 100, tool_calls: 3, ..Budget::ZERO };
/// let call = Budget { tokens: 40, tool_calls: 1, ..Budget::ZERO };
/// let left = budget.minus(call).unwrap();
/// assert_eq!((left.tokens, left.tool_calls), (60, 2));
/// // All or nothing: there would be tool calls, but not enough tokens.
/// assert!(left.minus(Budget { tokens: 61, tool_calls: 1, ..Budget::ZERO }).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    /// How many times an agent may be run.
    pub episodes: u64,
    /// How many tools may be called.
    pub tool_calls: u64,
    /// How many tokens may be read and written.
    pub tokens: u64,
    /// For how many milliseconds something may run.
    pub duration_ms: u64,
}

/// More than is left. Nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "only {} episodes, {} tool calls, {} tokens and {} ms are left",
    remaining.episodes, remaining.tool_calls, remaining.tokens, remaining.duration_ms
)]
pub struct BudgetExceeded {
    /// What is left.
    pub remaining: Budget,
}

impl Budget {
    /// Nothing of anything.
    pub const ZERO: Budget = Budget { episodes: 0, tool_calls: 0, tokens: 0, duration_ms: 0 };

    /// The largest amount. Programs that keep numbers as doubles still tell any two apart.
    pub const MAX_AMOUNT: u64 = (1 << 53) - 1;

    /// As much of everything as there can be.
    pub const MAX: Budget = Budget {
        episodes: Self::MAX_AMOUNT,
        tool_calls: Self::MAX_AMOUNT,
        tokens: Self::MAX_AMOUNT,
        duration_ms: Self::MAX_AMOUNT,
    };

    /// How many bytes [`Self::canonical_bytes`] has.
    pub const BYTES: usize = 4 * 8;

    /// Sees that no amount is over [`Self::MAX_AMOUNT`].
    pub fn check(self) -> Result<(), InvalidInput> {
        if self.amounts().into_iter().all(|amount| amount <= Self::MAX_AMOUNT) {
            return Ok(());
        }
        let reason = format!("an amount is over {}, the largest that there is", Self::MAX_AMOUNT);
        Err(InvalidInput::new("budget", reason))
    }

    /// What is left after `amount`: of everything, or nothing is taken at all.
    pub fn minus(self, amount: Budget) -> Result<Budget, BudgetExceeded> {
        self.combine(amount, u64::checked_sub).ok_or(BudgetExceeded { remaining: self })
    }

    /// Both together; nothing where that is more than can be counted.
    pub fn plus(self, amount: Budget) -> Option<Budget> {
        self.combine(amount, u64::checked_add)
    }

    /// Takes `amount` away: of everything, or nothing is taken at all.
    pub fn deduct(&mut self, amount: Budget) -> Result<(), BudgetExceeded> {
        *self = self.minus(amount)?;
        Ok(())
    }

    /// Whether of anything there is nothing left.
    pub fn is_exhausted(self) -> bool {
        self.amounts().contains(&0)
    }

    /// Whether there is at least as much of everything here as in `amount`.
    pub fn covers(self, amount: Budget) -> bool {
        self.minus(amount).is_ok()
    }

    /// The amounts, in the order in which they are signed.
    pub fn amounts(self) -> [u64; 4] {
        [self.episodes, self.tool_calls, self.tokens, self.duration_ms]
    }

    /// The budget with these amounts.
    pub fn from_amounts([episodes, tool_calls, tokens, duration_ms]: [u64; 4]) -> Budget {
        Budget { episodes, tool_calls, tokens, duration_ms }
    }

    /// The bytes that are signed: each amount in 8 bytes, the highest first.
    pub fn canonical_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (place, amount) in bytes.chunks_exact_mut(8).zip(self.amounts()) {
            place.copy_from_slice(&amount.to_be_bytes());
        }
        bytes
    }

    /// The budget in these bytes.
    pub fn from_canonical_bytes(bytes: [u8; Self::BYTES]) -> Budget {
        let (amounts, _) = bytes.as_chunks::<8>();
        let amount = |index: usize| u64::from_be_bytes(amounts[index]);
        Budget::from_amounts([amount(0), amount(1), amount(2), amount(3)])
    }

    fn combine(self, other: Budget, both: impl Fn(u64, u64) -> Option<u64>) -> Option<Budget> {
        Some(Budget {
            episodes: both(self.episodes, other.episodes)?,
            tool_calls: both(self.tool_calls, other.tool_calls)?,
            tokens: both(self.tokens, other.tokens)?,
            duration_ms: both(self.duration_ms, other.duration_ms)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn budget() -> impl Strategy<Value = Budget> {
        let amount = prop_oneof![0..4_u64, any::<u64>(), Just(u64::MAX)];
        prop::array::uniform4(amount).prop_map(Budget::from_amounts)
    }

    proptest! {
        // S2-108
        #[test]
        fn deduct_takes_every_amount_or_none(has in budget(), amount in budget()) {
            let mut remaining = has;
            let enough = has.amounts().into_iter().zip(amount.amounts()).all(|(has, amount)| has >= amount);
            prop_assert_eq!(remaining.deduct(amount).is_ok(), enough);
            if enough {
                prop_assert_eq!(remaining.plus(amount), Some(has));
            } else {
                prop_assert_eq!(remaining, has);
            }
            prop_assert_eq!(has.covers(amount), enough);
        }

        // S2-110
        #[test]
        fn canonical_bytes_round_trip_and_are_unique(one in budget(), other in budget()) {
            prop_assert_eq!(Budget::from_canonical_bytes(one.canonical_bytes()), one);
            prop_assert_eq!(one == other, one.canonical_bytes() == other.canonical_bytes());
        }
    }

    // S2-108
    #[test]
    fn budget_is_exhausted_when_any_amount_is_zero() {
        assert!(Budget::ZERO.is_exhausted() && !Budget::MAX.is_exhausted());
        for index in 0..4 {
            let mut amounts = [5; 4];
            amounts[index] = 0;
            assert!(Budget::from_amounts(amounts).is_exhausted());
        }
        assert!(Budget::MAX.check().is_ok());
        assert!(Budget { tokens: Budget::MAX_AMOUNT + 1, ..Budget::MAX }.check().is_err());
    }
}
