//! The shell around the step function: threads, a clock, a ledger. It decides nothing.

mod bell;
mod clock;
mod feed;
mod housekeeper;
mod inbox;
mod proof;
mod replay;
mod service;
mod view;
mod writer;

pub use clock::{BootClock, Clock};
pub use feed::{Feed, Next, Subscription};
pub use housekeeper::Routine;
pub use inbox::Response;
pub use proof::Proof;
pub use replay::{Replay, ReplayError, replay};
pub use service::{Service, ServiceError, ServiceOptions, StopError, key_file};
pub use view::View;
pub use writer::{Handle, Office, StartError, Writer, WriterFailure};
