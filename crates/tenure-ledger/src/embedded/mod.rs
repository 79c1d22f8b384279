//! The ledger in one directory: a log in preallocated segments, with nothing to install.
//!
//! Segments start at 1 MiB and double up to 16 MiB; the head of each says how large it is.
//!
//! ```text
//! data/ lock                        held by the writer (flock)
//!       identity                    id of the ledger, its epoch and its machine
//!       0000000000000001.segment    records, one per batch, each with its checksums and its hash
//!       0000000000000002.segment
//!       checkpoint-0000000000001234 the state after event 1234, signed
//!       spare                       the next segment, filled with zeros already
//!       reserve-1                   more, for when the disk is full; they grow with the number of leases
//!       clean                       there only after a clean shutdown
//! ```
//!
//! **Torn tail.** A record counts as torn, and is dropped, only if one of its sectors was never written and nothing stands
//! behind it. Any other mismatch is damage: the ledger does not open, and the error names the record. So no acknowledged
//! record is ever dropped silently.
//!
//! **After an unclean shutdown** the last record may be in the page cache and not on the disk, or in doubt after a failed
//! sync. It is copied into a new segment and synced before it counts.

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
