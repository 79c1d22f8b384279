//! The client: keeps a lease alive, and stops by itself when it cannot.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use tenure_client::{Acquire, Client, Wait};
//!
//! let client = Client::from_environment()?;
//! let wanted = Acquire::new("deploy:prod", "ci-42", Duration::from_secs(30));
//! let guard = client.hold(wanted).wait(Wait::For(Duration::from_secs(300))).await?;
//! for step in ["build", "upload", "switch"] {
//!     let fence = guard.check()?; // right before each effect
//!     println!("{step} with fence {}", fence.0);
//! }
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Client`] has one method per request. [`Client::hold`] does the rest: it waits, keeps the lease alive, and its
//! [`Guard`] stops believing before anybody else can hold the lease. [`agent`] does the same for agents, which declare
//! everything that they are about to touch.
//!
//! Below that, [`Keeper`] is a step function like the registrar: it is told what happened and what the local clock
//! says, and answers with what to send. [`believed_until`] is the rule it stops by, [`FenceGate`] the one
//! by which a resource refuses whoever is late all the same; [`FenceFile`] keeps it in a file.

// What other crates and users rely on says what it is for.
#![warn(missing_docs)]

pub mod agent;
mod background;
mod calls;
mod client;
mod clock;
mod connection;
mod error;
mod farewell;
mod fence;
mod hold;
mod keeper;
#[cfg(test)]
mod keeper_tests;
mod key;
mod settings;

pub use calls::{EventFilter, EventStream, Filter, From};
pub use client::Client;
pub use clock::{ALLOWANCE, believed_until, boot_microseconds};
pub use connection::{InvalidUrl, TlsError};
pub use error::Error;
pub use fence::{FenceFile, FenceFileError, FenceGate, StaleFence};
pub use hold::{Guard, HoldError, Holding, Lost, Place, Wait};
pub use keeper::{Attempt, Call, Effect, Input, Keeper, Outcome};
pub use key::{IdempotencyKey, InvalidKey, Secret};
pub use settings::{ClientBuilder, SettingsError};

// What requests and answers are made of, so that a program needs this crate alone.
pub use tenure_api::{
    Acquire, AgentLease, AgentView, ChangeMode, Code, CreateToken, CreatedToken, Explanation, Granted,
    IntentAccepted, IntentRequest, Lease, LeaseState, Page, Problem, Queue, Recall, Refused, Release, Renew,
    Renewed, Revoke, RevokedToken, ServerEvent, SessionView, Token, Transfer, Waiter, Wanted,
};
pub use tenure_core::kernel::Fence;
