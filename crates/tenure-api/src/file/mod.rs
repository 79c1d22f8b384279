//! Files: what hooks of coding agents ask, and what people see.

mod blocker_report;
mod request;
mod verdict;
mod view;

pub use blocker_report::{BlockerReport, BlockerReportList};
pub use request::{
    CommitReport, FileAcquireRequest, FileCaller, FileEventKind, FileEventReport, FileForceReleaseRequest,
    FileGiveRequest, StagedFilesRequest,
};
pub use verdict::{
    CommitResult, FileVerdict, FileVerdictKind, GrantGeneration, HeldFileView, UncommittedFile,
};
pub use view::{
    AuditedWorktree, Blame, BlamedLine, FileEventDetails, FileOwner, FileSessionView, FileStatus, FileView,
    FileWaiter, FilesOverview,
};
