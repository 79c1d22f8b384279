//! Which calls are told, and which are refused without a question.

use libc::{c_int, c_long};

/// A call that is told. What its arguments are, the manual pages say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
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

impl Call {
    /// Whether it opens a file by its name.
    pub const fn opens(self) -> bool {
        matches!(self, Call::Open | Call::OpenAt | Call::OpenAt2 | Call::Create)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// If any of these bits is set in the lower half of this argument.
    Any {
        argument: u32,
        of: c_int,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Told(Call),
    Refused(c_int),
}

pub(crate) struct Rule {
    pub(crate) number: c_long,
    pub(crate) when: When,
    pub(crate) fate: Fate,
}

/// Flags of an `open` that changes something. Reading alone has none of them.
const CHANGES: c_int = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// Later than the C library's table on some machines, and the same number everywhere.
const FCHMODAT2: c_long = 452;

const fn told(number: c_long, call: Call, when: When) -> Rule {
    Rule { number, when, fate: Fate::Told(call) }
}

const fn refused(number: c_long, when: When, error: c_int) -> Rule {
    Rule { number, when, fate: Fate::Refused(error) }
}

/// The most frequent ones first: each call is compared with one after the other.
pub(crate) const RULES: &[Rule] = &[
    told(libc::SYS_openat, Call::OpenAt, When::Any { argument: 2, of: CHANGES }),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_open, Call::Open, When::Any { argument: 1, of: CHANGES }),
    told(libc::SYS_openat2, Call::OpenAt2, When::Always),
    told(libc::SYS_execve, Call::Execute, When::Always),
    told(libc::SYS_execveat, Call::ExecuteAt, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_unlink, Call::Unlink, When::Always),
    told(libc::SYS_unlinkat, Call::UnlinkAt, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_rmdir, Call::RemoveFolder, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_rename, Call::Rename, When::Always),
    // Some machines are younger than this call, and have only its successor.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    told(libc::SYS_renameat, Call::RenameAt, When::Always),
    told(libc::SYS_renameat2, Call::RenameAt2, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_chmod, Call::ChangeMode, When::Always),
    told(libc::SYS_fchmod, Call::ChangeModeOf, When::Always),
    told(libc::SYS_fchmodat, Call::ChangeModeAt, When::Always),
    told(FCHMODAT2, Call::ChangeModeAt2, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_link, Call::Link, When::Always),
    told(libc::SYS_linkat, Call::LinkAt, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_symlink, Call::Symlink, When::Always),
    told(libc::SYS_symlinkat, Call::SymlinkAt, When::Always),
    told(libc::SYS_truncate, Call::Truncate, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_creat, Call::Create, When::Always),
    #[cfg(target_arch = "x86_64")]
    told(libc::SYS_mknod, Call::MakeNode, When::Always),
    told(libc::SYS_mknodat, Call::MakeNodeAt, When::Always),
    // What is put into such a ring is opened by the system itself, past every filter. Programs do without.
    refused(libc::SYS_io_uring_setup, When::Always, libc::ENOSYS),
    refused(libc::SYS_io_uring_enter, When::Always, libc::ENOSYS),
    refused(libc::SYS_io_uring_register, When::Always, libc::ENOSYS),
    // A file by its number: nobody can say which name it has.
    refused(libc::SYS_open_by_handle_at, When::Any { argument: 2, of: CHANGES }, libc::EPERM),
];

/// What the call of this number is, if it is told.
pub(crate) fn call_of(number: c_int) -> Option<Call> {
    RULES.iter().find(|rule| rule.number == c_long::from(number)).and_then(|rule| match rule.fate {
        Fate::Told(call) => Some(call),
        Fate::Refused(_) => None,
    })
}
