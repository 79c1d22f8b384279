//! The ledger in one directory: a log of our own in preallocated segments, nothing to install.
//!
//! Segments start at 1 MiB and double up to 16 MiB; the head of each says how large it is.
//!
//! ```text
//! data/ lock                        who writes, by flock
//!       identity                    which ledger, which epoch, on which machine
//!       0000000000000001.segment    records, one per batch, each with its sums and its hash
//!       0000000000000002.segment
//!       checkpoint-0000000000001234 what all events up to number 1234 add up to, signed
//!       spare                       the next segment, filled with zeros already
//!       reserve-1                   more, for when the disk is full; they grow with the number of leases
//!       clean                       there only after an orderly end
//! ```
//!
//! **When a tail is torn.** A record counts as cut short, and is dropped, only if one of its sectors was never
//! written and nothing stands behind it. Everything else that does not fit is damage: the ledger refuses to
//! open and names the record. So nothing that was acknowledged is ever dropped in silence.
//!
//! **After an unclean end** the last record may be in the system's memory and not on the disk, or in doubt after a
//! failed sync. It is copied into a new segment and synced before it counts.

mod chain_verifier;
mod checkpoint_files;
mod copy;
mod directory_disk;
mod disk;
mod file_sizes;
mod identity;
mod ledger;
mod maintenance;
mod read_only;
mod reader;
mod record;
mod recovery;
mod segment;
mod segment_pool;
mod store;
mod witness;

pub use directory_disk::DirectoryDisk;
pub use disk::{Disk, DiskFile};
pub use ledger::{EmbeddedLedger, LedgerOptions};
pub(crate) use read_only::EmbeddedReadOnlyLedger;
pub use recovery::EmbeddedRecovery;
pub use store::EmbeddedStore;
