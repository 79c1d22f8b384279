//! Files: which session of a coding agent may change which file of a working tree.
//!
//! A lease on a file has no holder that renews it: it lasts as long as its owner lives. Whether a process lives, and whether
//! a file is committed or still open, is told from outside; what follows from that is decided here. Whoever meets a living
//! owner gets one ticket for that file, may come back once when its time has come, and is reported as blocked if the file is
//! still not free then.

mod acquire;
mod activity;
mod command;
mod contention;
mod decide;
mod event;
mod retry_ticket;
mod session;
mod session_lifecycle;

pub use command::{
    FileAcquire, FileCommand, FileOutcome, FileRequest, FileSessionActivity, FileSessionEnd, FileSessionInfo,
    HeldFile,
};
pub(super) use contention::blocked_requests_of;
pub(super) use decide::decide;
pub use event::{ContentionNotice, FileEvent};
pub use retry_ticket::{BlockedReport, FileOwner, RetryTicket, RetryTicketEnd};
pub use session::{FileSession, UncommittedFile};

use super::name::Principal;
use super::newtypes::TickDuration;

/// In whose name leases on files are held.
pub const FILES_PRINCIPAL: &str = "system:files";

/// How long a lease on a file lasts at most. Its owner's life decides, not this: a machine that slept for a week must not find
/// its agents without what they hold.
pub const FILE_LEASE_TTL: TickDuration = TickDuration::from_secs(366 * 24 * 60 * 60);

/// In whose name leases on files are held.
pub fn files_principal() -> Principal {
    Principal::parse(FILES_PRINCIPAL).expect("it is a name")
}
