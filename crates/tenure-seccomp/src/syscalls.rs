//! Which calls are notified, and which are rejected at once.

use libc::{c_int, c_long};

/// A call that is told. What its arguments are, the manual pages say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syscall {
    /// `open`, if it may write, create or empty a file.
    Open,
    /// `openat`, if it may.
    OpenAt,
    /// `openat2`. Its flags are in memory, where the filter does not see them.
    OpenAt2,
    /// `creat`.
    Create,
    /// `truncate`.
    Truncate,
    /// `rename`.
    Rename,
    /// `renameat`.
    RenameAt,
    /// `renameat2`.
    RenameAt2,
    /// `unlink`.
    Unlink,
    /// `unlinkat`, also where it removes a folder.
    UnlinkAt,
    /// `rmdir`. An empty folder has no content, but a repository needs some of its folders.
    RemoveFolder,
    /// `link`.
    Link,
    /// `linkat`.
    LinkAt,
    /// `symlink`.
    Symlink,
    /// `symlinkat`.
    SymlinkAt,
    /// `mknod`.
    MakeNode,
    /// `mknodat`.
    MakeNodeAt,
    /// `chmod`.
    ChangeMode,
    /// `fchmodat`.
    ChangeModeAt,
    /// `fchmodat2`.
    ChangeModeAt2,
    /// `fchmod`.
    ChangeModeOf,
    /// `execve`.
    Execute,
    /// `execveat`.
    ExecuteAt,
}

impl Syscall {
    /// Whether it opens a file by its name.
    pub const fn is_open(self) -> bool {
        matches!(self, Syscall::Open | Syscall::OpenAt | Syscall::OpenAt2 | Syscall::Create)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleCondition {
    Always,
    /// If any of these bits is set in the lower half of this argument.
    AnyBitSet {
        argument: u32,
        bits: c_int,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleAction {
    Notify(Syscall),
    Fail(c_int),
}

pub(crate) struct Rule {
    pub(crate) number: c_long,
    pub(crate) condition: RuleCondition,
    pub(crate) action: RuleAction,
}

/// Flags of an `open` that changes something. Reading alone has none of them.
const WRITE_FLAGS: c_int = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// Later than the C library's table on some machines, and the same number everywhere.
const FCHMODAT2: c_long = 452;

const fn notify(number: c_long, call: Syscall, when: RuleCondition) -> Rule {
    Rule { number, condition: when, action: RuleAction::Notify(call) }
}

const fn fail(number: c_long, when: RuleCondition, error: c_int) -> Rule {
    Rule { number, condition: when, action: RuleAction::Fail(error) }
}

/// The most frequent ones first: each call is compared with one after the other.
pub(crate) const RULES: &[Rule] = &[
    notify(libc::SYS_openat, Syscall::OpenAt, RuleCondition::AnyBitSet { argument: 2, bits: WRITE_FLAGS }),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_open, Syscall::Open, RuleCondition::AnyBitSet { argument: 1, bits: WRITE_FLAGS }),
    notify(libc::SYS_openat2, Syscall::OpenAt2, RuleCondition::Always),
    notify(libc::SYS_execve, Syscall::Execute, RuleCondition::Always),
    notify(libc::SYS_execveat, Syscall::ExecuteAt, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_unlink, Syscall::Unlink, RuleCondition::Always),
    notify(libc::SYS_unlinkat, Syscall::UnlinkAt, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_rmdir, Syscall::RemoveFolder, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_rename, Syscall::Rename, RuleCondition::Always),
    // Some machines are younger than this call, and have only its successor.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    notify(libc::SYS_renameat, Syscall::RenameAt, RuleCondition::Always),
    notify(libc::SYS_renameat2, Syscall::RenameAt2, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_chmod, Syscall::ChangeMode, RuleCondition::Always),
    notify(libc::SYS_fchmod, Syscall::ChangeModeOf, RuleCondition::Always),
    notify(libc::SYS_fchmodat, Syscall::ChangeModeAt, RuleCondition::Always),
    notify(FCHMODAT2, Syscall::ChangeModeAt2, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_link, Syscall::Link, RuleCondition::Always),
    notify(libc::SYS_linkat, Syscall::LinkAt, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_symlink, Syscall::Symlink, RuleCondition::Always),
    notify(libc::SYS_symlinkat, Syscall::SymlinkAt, RuleCondition::Always),
    notify(libc::SYS_truncate, Syscall::Truncate, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_creat, Syscall::Create, RuleCondition::Always),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_mknod, Syscall::MakeNode, RuleCondition::Always),
    notify(libc::SYS_mknodat, Syscall::MakeNodeAt, RuleCondition::Always),
    // What is put into such a ring is opened by the system itself, past every filter. Programs do without.
    fail(libc::SYS_io_uring_setup, RuleCondition::Always, libc::ENOSYS),
    fail(libc::SYS_io_uring_enter, RuleCondition::Always, libc::ENOSYS),
    fail(libc::SYS_io_uring_register, RuleCondition::Always, libc::ENOSYS),
    // A file by its number: nobody can say which name it has.
    fail(
        libc::SYS_open_by_handle_at,
        RuleCondition::AnyBitSet { argument: 2, bits: WRITE_FLAGS },
        libc::EPERM,
    ),
];

/// What the call of this number is, if it is told.
pub(crate) fn syscall_by_number(number: c_int) -> Option<Syscall> {
    RULES.iter().find(|rule| rule.number == c_long::from(number)).and_then(|rule| match rule.action {
        RuleAction::Notify(call) => Some(call),
        RuleAction::Fail(_) => None,
    })
}
