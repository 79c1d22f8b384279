//! Where a lease is in its life.

use std::fmt;

use super::LeaseError;

/// Where a lease is in its life: it begins active, ends once, and stays ended.
///
/// INV-0101: [`Active`](Self::Active) leads to one of the two others, and nothing leads out of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseState {
    /// Somebody holds it. Whether its time is up is a question about time, not about this state.
    Active,
    /// Its holder gave it back, or the registrar took it away.
    Released,
    /// Its time ran out.
    Expired,
}

impl LeaseState {
    /// INV-0102: whether it is over for good. Every later operation on such a lease fails.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Released | Self::Expired)
    }

    /// CTR-0102: the one spelling that is written anywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Released => "RELEASED",
            Self::Expired => "EXPIRED",
        }
    }

    /// CTR-0101: reads a state in any mixture of upper and lower case.
    ///
    /// ```
    /// use tenure_core::lease::{LeaseError, LeaseState};
    /// assert_eq!(LeaseState::parse("released"), Ok(LeaseState::Released));
    /// assert!(matches!(LeaseState::parse("gone"), Err(LeaseError::InvalidLeaseState { value }) if value == "gone"));
    /// ```
    pub fn parse(value: &str) -> Result<Self, LeaseError> {
        [Self::Active, Self::Released, Self::Expired]
            .into_iter()
            .find(|state| state.as_str().eq_ignore_ascii_case(value))
            .ok_or_else(|| LeaseError::InvalidLeaseState { value: value.to_owned() })
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S2-8, S2-9, S2-10: one state goes on, two are the end
    #[test]
    fn only_active_is_not_terminal() {
        assert!(!LeaseState::Active.is_terminal());
        assert!(LeaseState::Released.is_terminal());
        assert!(LeaseState::Expired.is_terminal());
    }

    // S2-11, S2-12
    #[test]
    fn lease_state_parses_any_case_and_prints_upper_case() {
        for (canonical, state) in [
            ("ACTIVE", LeaseState::Active),
            ("RELEASED", LeaseState::Released),
            ("EXPIRED", LeaseState::Expired),
        ] {
            assert_eq!(state.as_str(), canonical);
            assert_eq!(state.to_string(), canonical);
            let mixed = format!("{}{}", &canonical[..1], canonical[1..].to_lowercase());
            for spelling in [canonical.to_owned(), canonical.to_lowercase(), mixed] {
                assert_eq!(LeaseState::parse(&spelling), Ok(state), "{spelling}");
            }
        }
    }

    // S2-11, S2-64
    #[test]
    fn unknown_lease_state_is_named_in_the_error() {
        for value in ["", "ACTIVE ", "GONE", "ACTIVE\0", "ＡＣＴＩＶＥ"] {
            assert_eq!(
                LeaseState::parse(value),
                Err(LeaseError::InvalidLeaseState { value: value.to_owned() }),
                "{value:?}"
            );
        }
    }
}
