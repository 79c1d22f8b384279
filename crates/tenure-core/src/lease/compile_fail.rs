//! What must not compile, each beside a twin that does.
//!
//! S2-8, S2-13, S2-74: a variant may be added without breaking anybody, so nobody may do without `_`.
//!
//! ```
//! use tenure_core::lease::{LeaseError, LeaseState, ReleaseReason};
//! fn state(state: LeaseState) { match state { LeaseState::Active | LeaseState::Released | LeaseState::Expired => {} _ => {} } }
//! fn reason(reason: ReleaseReason) { match reason { ReleaseReason::Completed | ReleaseReason::Aborted | ReleaseReason::Voluntary => {} _ => {} } }
//! fn error(error: LeaseError) { match error {
//!     LeaseError::WorkAlreadyLeased { .. } | LeaseError::LeaseNotFound { .. } | LeaseError::LeaseAlreadyTerminal { .. }
//!     | LeaseError::LeaseExpired { .. } | LeaseError::InvalidReleaseReason { .. } | LeaseError::InvalidLeaseState { .. }
//!     | LeaseError::InvalidSignature { .. } | LeaseError::MissingSignature { .. } | LeaseError::RenewalDoesNotExtend { .. }
//!     | LeaseError::DecodeError(_) | LeaseError::LeaseAlreadyExists { .. } | LeaseError::Unauthorized { .. }
//!     | LeaseError::InvalidExpiration { .. } | LeaseError::InvalidTickTiming { .. } | LeaseError::InvalidInput { .. } => {}
//!     _ => {} } }
//! ```
//! ```compile_fail
//! use tenure_core::lease::LeaseState;
//! fn state(state: LeaseState) { match state { LeaseState::Active | LeaseState::Released | LeaseState::Expired => {} } }
//! ```
//! ```compile_fail
//! use tenure_core::lease::ReleaseReason;
//! fn reason(reason: ReleaseReason) { match reason { ReleaseReason::Completed | ReleaseReason::Aborted | ReleaseReason::Voluntary => {} } }
//! ```
//! ```compile_fail
//! use tenure_core::lease::LeaseError;
//! fn error(error: LeaseError) { match error {
//!     LeaseError::WorkAlreadyLeased { .. } | LeaseError::LeaseNotFound { .. } | LeaseError::LeaseAlreadyTerminal { .. }
//!     | LeaseError::LeaseExpired { .. } | LeaseError::InvalidReleaseReason { .. } | LeaseError::InvalidLeaseState { .. }
//!     | LeaseError::InvalidSignature { .. } | LeaseError::MissingSignature { .. } | LeaseError::RenewalDoesNotExtend { .. }
//!     | LeaseError::DecodeError(_) | LeaseError::LeaseAlreadyExists { .. } | LeaseError::Unauthorized { .. }
//!     | LeaseError::InvalidExpiration { .. } | LeaseError::InvalidTickTiming { .. } | LeaseError::InvalidInput { .. } => {}
//! } }
//! ```
//!
//! S2-29: a field may be added, so a lease is taken apart with `..`.
//!
//! ```
//! use tenure_core::lease::Lease;
//! fn id(Lease { lease_id, work_id, actor_id, state, issued_at, expires_at, issued_at_tick, expires_at_tick,
//!     registrar_signature, renewal_count, last_renewed_at, release_reason, terminated_at, .. }: Lease) {}
//! ```
//! ```compile_fail
//! use tenure_core::lease::Lease;
//! fn id(Lease { lease_id, work_id, actor_id, state, issued_at, expires_at, issued_at_tick, expires_at_tick,
//!     registrar_signature, renewal_count, last_renewed_at, release_reason, terminated_at }: Lease) {}
//! ```
//!
//! S2-42, S2-43, S2-87: whoever asks a wall clock is told.
//!
//! ```
//! #![deny(deprecated)]
//! fn ask(lease: &tenure_core::lease::Lease, tick: &tenure_core::lease::HtfTick) { lease.is_expired_at_tick(tick); }
//! ```
//! ```compile_fail
//! #![deny(deprecated)]
//! fn ask(lease: &tenure_core::lease::Lease) { lease.is_expired_at(1); }
//! ```
//! ```compile_fail
//! #![deny(deprecated)]
//! fn ask(lease: &tenure_core::lease::Lease) { lease.time_remaining(1); }
//! ```
//! ```compile_fail
//! #![deny(deprecated)]
//! fn ask(state: &tenure_core::lease::LeaseReducerState) { state.get_expired_but_active(1); }
//! ```
