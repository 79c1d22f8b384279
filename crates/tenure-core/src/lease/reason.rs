//! Why a lease was given back.

use std::fmt;

use super::LeaseError;

/// Why a lease was given back. CTR-0202: kept for audit; nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseReason {
    /// The work is done.
    Completed,
    /// The work was broken off, by its holder or because the registrar took the lease away.
    Aborted,
    /// The holder gave it up of its own accord.
    Voluntary,
}

impl ReleaseReason {
    /// The one spelling that is written anywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "COMPLETED",
            Self::Aborted => "ABORTED",
            Self::Voluntary => "VOLUNTARY",
        }
    }

    /// CTR-0201: reads a reason in any mixture of upper and lower case.
    pub fn parse(value: &str) -> Result<Self, LeaseError> {
        [Self::Completed, Self::Aborted, Self::Voluntary]
            .into_iter()
            .find(|reason| reason.as_str().eq_ignore_ascii_case(value))
            .ok_or_else(|| LeaseError::InvalidReleaseReason { value: value.to_owned() })
    }
}

impl fmt::Display for ReleaseReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S2-13, S2-14
    #[test]
    fn release_reason_parses_any_case_and_prints_upper_case() {
        for (canonical, reason) in [
            ("COMPLETED", ReleaseReason::Completed),
            ("ABORTED", ReleaseReason::Aborted),
            ("VOLUNTARY", ReleaseReason::Voluntary),
        ] {
            assert_eq!(reason.as_str(), canonical);
            assert_eq!(reason.to_string(), canonical);
            assert_eq!(ReleaseReason::parse(canonical), Ok(reason));
            assert_eq!(ReleaseReason::parse(&canonical.to_lowercase()), Ok(reason));
            let mixed = format!("{}{}", canonical[..3].to_lowercase(), &canonical[3..]);
            assert_eq!(ReleaseReason::parse(&mixed), Ok(reason));
        }
    }

    // S2-14, S2-63
    #[test]
    fn unknown_release_reason_is_named_in_the_error() {
        for value in ["", " COMPLETED", "DONE", "EXPIRED"] {
            assert_eq!(
                ReleaseReason::parse(value),
                Err(LeaseError::InvalidReleaseReason { value: value.to_owned() }),
                "{value:?}"
            );
        }
    }
}
