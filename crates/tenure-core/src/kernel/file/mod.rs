//! Files: which session of a coding agent may change which file of a working tree.
//!
//! A lease on a file has no holder that renews it: it lasts as long as its owner lives. Whether a process lives, and whether
//! a file is committed or still open, is told from outside; what follows from that is decided here. Whoever meets a living
//! owner gets one ticket for that file, may come back once when its time has come, and is reported as blocked if the file is
//! still not free then.

mod command;
mod event;
mod session;
mod ticket;

pub use command::{FileAcquire, FileAnswer, FileCommand, FileEnd, FileWant, HeldFile, Introduction, Sign};
pub use event::{Contended, FileEvent};
pub use session::{FileSession, LeftFile};
pub use ticket::{Blocked, FileTicket, Owner, TicketEnd};

use super::name::Principal;
use super::value::Span;

/// In whose name leases on files are held.
pub const FILES: &str = "system:files";

/// How long a lease on a file lasts at most. Its owner's life decides, not this: a machine that slept for a week must not find
/// its agents without what they hold.
pub const FILE_LEASE: Span = Span::from_secs(366 * 24 * 60 * 60);

/// In whose name leases on files are held.
pub fn files() -> Principal {
    Principal::parse(FILES).expect("it is a name")
}
