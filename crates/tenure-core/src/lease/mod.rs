//! Leases as an event-sourced projection: the library of the work API.
//!
//! A lease is one actor's claim on one work item for a limited time, and at any point of the ledger a work item has one
//! active lease at most. The registrar issues and signs leases; the [`LeaseReducer`] reads its events and rejects those that
//! no registrar should have written.
//!
//! ```text
//!             lease.issued             lease.released, lease.revoked
//!   (nothing) ───────────▶ ACTIVE ─────────────────────────────────▶ RELEASED
//!                          │    ▲ │
//!                          └────┘ └────────────────────────────────▶ EXPIRED
//!                    lease.renewed             lease.expired
//! ```
//!
//! Nothing else changes a lease: the same events give the same state, on every machine and every time. A state can be kept
//! as a [checkpoint](LeaseReducerState::to_checkpoint) and resumed from there; its history stays in the ledger.
//!
//! # What can be relied on
//!
//! - Whatever is not expressly allowed is rejected, and a rejected event changes nothing.
//! - [`Lease`] says which clock decides, [`LeaseReducer`] what happens where two clocks meet.
//! - Only its holder releases a lease, only the registrar revokes it, and no event expires it before its time.
//! - No event can date the end of a lease after its expiry, and so keep it from being pruned.
//! - Ids have at most 128 bytes, signatures 512; nothing that is longer gets into the state.
//!
//! # What cannot
//!
//! - A signature must be present, but is not verified here: the program that appends to the ledger does that before. A
//!   ledger that is replayed is trusted.
//! - The ledger must contain each event once. A lease that was pruned is forgotten here, its id included.
//!
//! # Examples
//!
//! A lease is issued, and can be queried:
//!
//! ```
//! use tenure_core::lease::{LeaseReducer, LeaseState, helpers};
//! use tenure_core::ledger::EventRecord;
//! use tenure_core::reducer::{Reducer, ReducerContext};
//!
//! let mut reducer = LeaseReducer::new();
//! let ctx = ReducerContext::new(1);
//!
//! let signature = vec![1, 2, 3, 4];
//! let payload = helpers::lease_issued_payload(
//!     "lease-001", "work-001", "agent-001", 1_000_000_000, 2_000_000_000, signature,
//! );
//! reducer.apply(&EventRecord::new("lease.issued", "session-1", "registrar", payload), &ctx)?;
//!
//! assert_eq!(reducer.state().get("lease-001").unwrap().state, LeaseState::Active);
//! assert!(reducer.state().has_active_lease("work-001"));
//! # Ok::<(), tenure_core::lease::LeaseError>(())
//! ```
//!
//! It is renewed, and later released by its holder; then another actor may have the work item:
//!
//! ```
//! # use tenure_core::lease::{LeaseReducer, LeaseState, ReleaseReason, helpers};
//! # use tenure_core::ledger::EventRecord;
//! # use tenure_core::reducer::{Reducer, ReducerContext};
//! # let mut reducer = LeaseReducer::new();
//! # let ctx = ReducerContext::new(1);
//! # let payload = helpers::lease_issued_payload(
//! #     "lease-001", "work-001", "agent-001", 1_000_000_000, 2_000_000_000, vec![1, 2, 3, 4],
//! # );
//! # reducer.apply(&EventRecord::new("lease.issued", "s", "registrar", payload), &ctx)?;
//! let payload = helpers::lease_renewed_payload("lease-001", 3_000_000_000, vec![5, 6, 7, 8]);
//! reducer.apply(&EventRecord::new("lease.renewed", "s", "registrar", payload), &ctx)?;
//! assert_eq!(reducer.state().get("lease-001").unwrap().expires_at, 3_000_000_000);
//!
//! let payload = helpers::lease_released_payload("lease-001", "COMPLETED");
//! reducer.apply(&EventRecord::new("lease.released", "s", "agent-001", payload), &ctx)?;
//! assert!(!reducer.state().has_active_lease("work-001"));
//! # assert_eq!(reducer.state().get("lease-001").unwrap().release_reason, Some(ReleaseReason::Completed));
//! # let payload = helpers::lease_issued_payload(
//! #     "lease-002", "work-001", "agent-002", 3_000_000_000, 4_000_000_000, vec![1],
//! # );
//! # reducer.apply(&EventRecord::new("lease.issued", "s", "registrar", payload), &ctx)?;
//! # Ok::<(), tenure_core::lease::LeaseError>(())
//! ```
//!
//! Ended leases can be pruned, all of them or up to a time, so that memory does not grow for ever:
//!
//! ```
//! # use tenure_core::lease::{LeaseReducer, helpers};
//! # use tenure_core::ledger::EventRecord;
//! # use tenure_core::reducer::{Reducer, ReducerContext};
//! # let mut reducer = LeaseReducer::new();
//! # let ctx = ReducerContext::new(1);
//! # for (lease, work, until) in [("lease-001", "work-001", 1_400_000_000), ("lease-002", "work-002", 2_000_000_000)] {
//! #     let payload = helpers::lease_issued_payload(lease, work, "a", 1_000_000_000, until, vec![1]);
//! #     reducer.apply(&EventRecord::new("lease.issued", "s", "registrar", payload), &ctx)?;
//! #     let payload = helpers::lease_released_payload(lease, "VOLUNTARY");
//! #     reducer.apply(&EventRecord::new("lease.released", "s", "a", payload), &ctx)?;
//! # }
//! // Two leases have ended, one of them by 1.5 s.
//! let pruned = reducer.state_mut().prune_terminal_leases_before(1_500_000_000);
//! assert_eq!(pruned, 1);
//! let pruned = reducer.state_mut().prune_terminal_leases();
//! assert_eq!(pruned, 1);
//! # Ok::<(), tenure_core::lease::LeaseError>(())
//! ```
//!
//! Time alone changes no state: a caller finds the expired leases, and records their ends. The ids are collected first,
//! because the leases are borrowed from the state that the events change:
//!
//! ```
//! # #![allow(deprecated)]
//! # use tenure_core::lease::{LeaseReducer, LeaseState, helpers};
//! # use tenure_core::ledger::EventRecord;
//! # use tenure_core::reducer::{Reducer, ReducerContext};
//! # let mut reducer = LeaseReducer::new();
//! # let ctx = ReducerContext::new(1);
//! # let payload = helpers::lease_issued_payload(
//! #     "lease-001", "work-001", "agent-001", 1_000_000_000, 2_000_000_000, vec![1, 2, 3, 4],
//! # );
//! # reducer.apply(&EventRecord::new("lease.issued", "s", "registrar", payload), &ctx)?;
//! let now = 2_500_000_000;
//! let over: Vec<String> =
//!     reducer.state().get_expired_but_active(now).iter().map(|lease| lease.lease_id.clone()).collect();
//! for lease_id in over {
//!     let payload = helpers::lease_expired_payload(&lease_id, now);
//!     reducer.apply(&EventRecord::new("lease.expired", "s", "registrar", payload), &ctx)?;
//! }
//! assert_eq!(reducer.state().get("lease-001").unwrap().state, LeaseState::Expired);
//! # Ok::<(), tenure_core::lease::LeaseError>(())
//! ```
//!
//! With ticks, [`LeaseReducerState::get_expired_but_active_at_tick`] finds them, and the event names the tick.
// Programs outside this workspace use this: what it offers says what it is for.
#![warn(missing_docs)]

mod checkpoint;
#[cfg(doctest)]
mod compile_fail;
mod error;
pub mod helpers;
mod projection;
mod record;
mod reducer;
#[cfg(test)]
mod reducer_tests;

pub use error::LeaseError;
pub use projection::LeaseReducerState;
pub use record::{HtfTick, Lease, LeaseState, LeaseSummary, ReleaseReason};
pub use reducer::{LeaseReducer, REGISTRAR};
