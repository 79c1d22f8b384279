//! The Rust client: keeps a lease alive, and stops relying on it in time when it cannot.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use tenure_client::{AcquireRequest, Client, WaitLimit};
//!
//! let client = Client::from_environment()?;
//! let request = AcquireRequest::new("deploy:prod", "ci-42", Duration::from_secs(30));
//! let lease = client.hold(request).wait(WaitLimit::For(Duration::from_secs(300))).await?;
//! for step in ["build", "upload", "switch"] {
//!     let fence = lease.check()?; // right before each effect
//!     println!("{step} with fence {}", fence.0);
//! }
//! lease.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Client`] has one method per request. [`Client::hold`] does the rest: it waits, keeps the lease alive, and its
//! [`HeldLease`] reports the loss before another client can hold the lease. [`agent`] does the same for agents, which
//! declare all resources that they are about to use.
//!
//! Below that, [`KeepAlive`] is a step function like the registrar: its inputs are events and the local clock, its effects
//! are requests. It stops by the rule [`local_deadline`]. A resource rejects stale holders all the same by [`FenceGate`], or
//! by [`FenceFile`], which keeps it in a file.

// What other crates and users rely on says what it is for.
#![warn(missing_docs)]

pub mod agent;
mod calls;
mod cleanup_requests;
mod client;
mod clock;
mod error;
mod fence;
mod hold;
mod http;
mod keepalive;
#[cfg(test)]
mod keepalive_tests;

pub use calls::{EventFilter, EventStartPosition, EventStream, LeaseFilter};
pub use client::{Client, ClientBuilder, IdempotencyKey, InvalidKey, Secret, SettingsError};
pub use clock::{SAFETY_MARGIN, boot_microseconds, local_deadline};
pub use error::Error;
pub use fence::{FenceFile, FenceFileError, FenceGate, StaleFence};
pub use hold::{HeldLease, HoldError, HoldRequest, LeaseLost, QueuePosition, WaitLimit};
pub use http::{InvalidUrl, TlsError};
pub use keepalive::{AttemptId, Effect, Input, KeepAlive, KeepAliveRequest, ReplyOutcome};
// What requests and answers are made of, so that a program needs this crate alone.
pub use tenure_api::{
    AcceptedIntent, AcquireRequest, AgentLease, AgentView, ApiTokenRequest, ApiTokenView, Code,
    CreatedApiToken, DenialView, Explanation, IntentRequest, IntentSessionView, Lease, LeaseGrant, LeasePage,
    LeaseRenewal, LeaseState, ModeChangeRequest, Problem, Queue, Recall, ReleaseRequest, RenewalRequest,
    ResourceAccess, RevocationRequest, RevokedApiToken, ServerEvent, TransferRequest, Waiter,
};
pub use tenure_core::kernel::Fence;
