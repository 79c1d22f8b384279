//! Files: what hooks of coding agents ask, and what people see.

mod ask;
mod report;
mod verdict;
mod view;

pub use ask::{FileAsk, FileCommit, FileEventKind, FileForce, FileGive, FileNews, FileSpeaker, FileStaged};
pub use report::{BlockerReport, BlockerReports};
pub use verdict::{CommitNote, FileVerdict, HeldBy, LeftBy, Standing, VerdictKind};
pub use view::{
    AuditedTree, Blame, BlamedLine, FileChange, FileOwner, FileView, FileWaiter, Files, OneFile,
    SessionOfAgent,
};
