//! The shell around the step function: threads, a clock, a ledger. It decides nothing.

mod audit;
mod bell;
mod callers;
mod clock;
mod feed;
mod handle;
mod housekeeper;
mod inbox;
mod key_file;
mod pen;
mod proof;
mod publisher;
mod replay;
mod restore;
mod run;
mod service;
mod view;
mod writer;

pub use audit::{Audit, AuditError, audit, audit_archive, begin_replay};
pub use callers::{Listener, WaitOver};
pub use clock::{BootClock, Clock, boot_microseconds};
pub use feed::{Feed, Next, Observer, Subscription};
pub use handle::Handle;
pub use housekeeper::Routine;
pub use inbox::Response;
pub use key_file::key_file;
pub use proof::Proof;
pub use replay::{Replay, ReplayError, replay};
pub use restore::{RestoreFailure, RestoreOptions, Restored, restore};
pub use service::{Service, ServiceError, ServiceOptions, StopError};
pub use view::View;
pub use writer::{Office, StartError, Writer, WriterFailure};
