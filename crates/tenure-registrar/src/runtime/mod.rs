//! The runtime around the step function: threads, a clock, a ledger. It decides nothing.

mod appender;
mod clock;
mod feed;
mod handle;
mod inbox;
mod key_file;
mod ledger_verification;
mod maintenance;
mod pending_replies;
mod proof;
mod publisher;
mod replay;
mod restore;
mod service;
mod view;
mod waker;
mod writer;
mod writer_loop;

pub use clock::{BootClock, Clock, boot_microseconds};
pub use feed::{AppliedEvent, Feed, FeedItem, Observer, Subscription};
pub use handle::Handle;
pub use inbox::Response;
pub use key_file::key_file_path;
pub use ledger_verification::{
    LedgerVerification, LedgerVerificationError, start_replay, verify_ledger, verify_ledger_directory,
};
pub use maintenance::MaintenanceOptions;
pub use pending_replies::{WaitListener, WaitOutcome};
pub use proof::BatchProof;
pub use replay::{Replay, ReplayError, replay};
pub use restore::{RestoreFailure, RestoreOptions, RestoreReport, restore};
pub use service::{RegistrarService, ServiceError, ServiceOptions, StopError};
pub use view::StateView;
pub use writer::{StartError, Writer, WriterConfig, WriterFailure};
