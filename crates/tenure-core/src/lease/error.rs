//! Why an event cannot be applied, or a value not be read.

use thiserror::Error;

use crate::rules::InvalidInput;

/// Why an event was refused. The projection is as it was before.
///
/// CTR-0601: each variant names what it is about and the values that did not fit. Times are those of the
/// clock that decided: ticks where the lease has them, else Unix nanoseconds. Values are printed quoted,
/// so that a name with a line break in it cannot forge a line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// CTR-0501: somebody holds this work item. End that lease first.
    #[error(
        "work {work_id:?} is held under lease {existing_lease_id:?}; end that lease before issuing another"
    )]
    WorkAlreadyLeased {
        /// The work item that was asked for.
        work_id: String,
        /// The lease that holds it.
        existing_lease_id: String,
    },
    /// No lease has this id, or it was pruned.
    #[error("no lease {lease_id:?}: it was never issued, or it has been pruned")]
    LeaseNotFound {
        /// The id that was asked for.
        lease_id: String,
    },
    /// CTR-0504: the lease has ended. Issue a new one.
    #[error("lease {lease_id:?} is {current_state} and stays so; issue a new lease")]
    LeaseAlreadyTerminal {
        /// The lease that was to be changed.
        lease_id: String,
        /// How it ended, as [`LeaseState::as_str`](super::LeaseState::as_str) spells it.
        current_state: String,
    },
    /// The lease's time was over when it was to be renewed, although nobody had recorded that yet.
    #[error(
        "lease {lease_id:?} was over at {expired_at}, before the renewal; record its expiry and issue a new lease"
    )]
    LeaseExpired {
        /// The lease that was to be renewed.
        lease_id: String,
        /// When it was over.
        expired_at: u64,
    },
    /// CTR-0201: not a reason.
    #[error("{value:?} is no release reason; use COMPLETED, ABORTED or VOLUNTARY")]
    InvalidReleaseReason {
        /// What was given.
        value: String,
    },
    /// CTR-0101: not a state.
    #[error("{value:?} is no lease state; use ACTIVE, RELEASED or EXPIRED")]
    InvalidLeaseState {
        /// What was given.
        value: String,
    },
    /// The signature does not belong to the lease. Found where signatures are verified, before an event
    /// is appended; the reducer itself never finds it.
    #[error("the registrar's signature of lease {lease_id:?} is not valid; do not trust this lease")]
    InvalidSignature {
        /// The lease that it was to prove.
        lease_id: String,
    },
    /// CTR-0503: an issue or a renewal without a signature.
    #[error("lease {lease_id:?} carries no registrar signature; have the registrar sign it")]
    MissingSignature {
        /// The lease that lacks it.
        lease_id: String,
    },
    /// A renewal has to give the holder more time; this one would give none, or take some away.
    #[error(
        "renewing lease {lease_id:?} until {new_expires_at} gives no more time than {current_expires_at}; name a later end"
    )]
    RenewalDoesNotExtend {
        /// The lease that was to be renewed.
        lease_id: String,
        /// Until when it lives.
        current_expires_at: u64,
        /// Until when it was to live.
        new_expires_at: u64,
    },
    /// The payload is not a stored event of this version.
    #[error("the bytes are no stored lease event; the ledger is damaged or of another version")]
    DecodeError(#[from] prost::DecodeError),
    /// CTR-0502: ids are used once.
    #[error("lease {lease_id:?} exists already; use an id that was never used")]
    LeaseAlreadyExists {
        /// The id that was used again.
        lease_id: String,
    },
    /// CTR-0505: this actor may not end that lease. A holder may release its own, the registrar may revoke.
    #[error(
        "{actor_id:?} may not end lease {lease_id:?}; only its holder may release it, only the registrar revoke it"
    )]
    Unauthorized {
        /// The lease that was to be ended.
        lease_id: String,
        /// Who tried.
        actor_id: String,
    },
    /// The lease was to be expired before its time.
    #[error(
        "lease {lease_id:?} lives until {lease_expires_at} and cannot expire at {provided}; wait until its own clock is there"
    )]
    InvalidExpiration {
        /// The lease that was to be expired.
        lease_id: String,
        /// When it was said to have expired; 0 if that was not said in the lease's own ticks.
        provided: u64,
        /// When it is over.
        lease_expires_at: u64,
    },
    /// A lease was to be issued that in ticks would not live at all.
    #[error(
        "lease {lease_id:?} would live from tick {issued_at_tick} to {expires_at_tick}; its end must come later"
    )]
    InvalidTickTiming {
        /// The lease that was to be issued.
        lease_id: String,
        /// Its first tick.
        issued_at_tick: u64,
        /// The tick at which it would be over.
        expires_at_tick: u64,
    },
    /// A value that is not acceptable whatever the state is.
    #[error("{field}: {reason}")]
    InvalidInput {
        /// Which field of the event.
        field: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
}

impl LeaseError {
    /// An [`InvalidInput`](Self::InvalidInput) that names `field`.
    pub(super) fn invalid(field: &str, reason: impl Into<String>) -> Self {
        Self::InvalidInput { field: field.to_owned(), reason: reason.into() }
    }
}

impl From<InvalidInput> for LeaseError {
    fn from(error: InvalidInput) -> Self {
        Self::invalid(error.field, error.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S2-59 to S2-72, S2-73: whoever reads the message finds the lease, the work and the values in it
    #[test]
    fn error_messages_name_the_lease_and_the_values() {
        let id = || "lease-7".to_owned();
        let decode = <crate::proto::LeaseEvent as prost::Message>::decode([0xFF].as_slice()).unwrap_err();
        let errors: Vec<(LeaseError, &[&str])> = vec![
            (
                LeaseError::WorkAlreadyLeased { work_id: "work-3".into(), existing_lease_id: id() },
                &["work-3", "lease-7"],
            ),
            (LeaseError::LeaseNotFound { lease_id: id() }, &["lease-7"]),
            (
                LeaseError::LeaseAlreadyTerminal { lease_id: id(), current_state: "EXPIRED".into() },
                &["lease-7", "EXPIRED"],
            ),
            (LeaseError::LeaseExpired { lease_id: id(), expired_at: 41 }, &["lease-7", "41"]),
            (LeaseError::InvalidReleaseReason { value: "bored".into() }, &["bored", "VOLUNTARY"]),
            (LeaseError::InvalidLeaseState { value: "gone".into() }, &["gone", "RELEASED"]),
            (LeaseError::InvalidSignature { lease_id: id() }, &["lease-7"]),
            (LeaseError::MissingSignature { lease_id: id() }, &["lease-7"]),
            (
                LeaseError::RenewalDoesNotExtend {
                    lease_id: id(),
                    current_expires_at: 42,
                    new_expires_at: 40,
                },
                &["lease-7", "42", "40"],
            ),
            (LeaseError::DecodeError(decode), &["no stored lease event"]),
            (LeaseError::LeaseAlreadyExists { lease_id: id() }, &["lease-7"]),
            (
                LeaseError::Unauthorized { lease_id: id(), actor_id: "mallory".into() },
                &["lease-7", "mallory"],
            ),
            (
                LeaseError::InvalidExpiration { lease_id: id(), provided: 40, lease_expires_at: 42 },
                &["lease-7", "40", "42"],
            ),
            (
                LeaseError::InvalidTickTiming { lease_id: id(), issued_at_tick: 43, expires_at_tick: 42 },
                &["lease-7", "43", "42"],
            ),
            (LeaseError::invalid("work_id", "is empty"), &["work_id", "is empty"]),
        ];
        for (error, needed) in errors {
            let message = error.to_string();
            for word in needed {
                assert!(message.contains(word), "{message:?} does not name {word:?}");
            }
        }
    }

    // S2-73
    #[test]
    fn line_breaks_in_names_are_escaped_in_messages() {
        let error = LeaseError::LeaseNotFound { lease_id: "x\nroot logged in".into() };
        assert!(!error.to_string().contains('\n'));
    }

    // S2-68, S2-72
    #[test]
    fn decode_error_exposes_its_source() {
        let cause = <crate::proto::LeaseEvent as prost::Message>::decode([0xFF].as_slice()).unwrap_err();
        let error = LeaseError::from(cause.clone());
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), cause.to_string());
        let input = crate::rules::check_id("work_id", "").unwrap_err();
        assert!(
            matches!(LeaseError::from(input), LeaseError::InvalidInput { field, .. } if field == "work_id")
        );
    }
}
