//! Which names a call changes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, OFlags};
use tenure_host::git::is_git_variable;
use tenure_seccomp::{ProcessMemory, Syscall};

use super::path_lookup::{descriptor, has_flag, is_unnamed, open_flags, opens_for_change};
use super::{BaseFolder, ExecutedProgram, PathArgument, PathChange, SyscallEffect};

/// So many words say which program this is.
const INITIAL_ARGUMENTS: usize = 6;
/// More words than any command line of git has that is looked at.
const MAX_ARGUMENTS: usize = 100_000;
const MAX_VARIABLES: usize = 4096;
/// What this call does, with what its arguments point to. An error if that cannot be read.
pub fn decode_effect(
    call: Syscall,
    arguments: &[u64; 6],
    memory: &ProcessMemory,
) -> io::Result<SyscallEffect> {
    let text = |place: usize| memory.read_path(arguments[place]);
    let at = |place: usize| base_folder(arguments[place]);
    let plain =
        |place: usize, follows, change| path_argument(BaseFolder::Working, text(place)?, follows, change);
    let there = |folder: usize, place: usize, follows, change| {
        path_argument(at(folder), text(place)?, follows, change)
    };
    Ok(match call {
        Syscall::Open => open(BaseFolder::Working, text(0)?, open_flags(arguments[1])),
        Syscall::OpenAt => open(at(0), text(1)?, open_flags(arguments[2])),
        Syscall::OpenAt2 => {
            // Three numbers: the flags, the mode, and how the path is followed.
            let (flags, how) = (memory.read_u64(arguments[2])?, memory.read_u64(arguments[2] + 16)?);
            open(at(0), rooted(text(1)?, how), open_flags(flags))
        }
        Syscall::Create => {
            open(BaseFolder::Working, text(0)?, OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC)
        }
        Syscall::Truncate => SyscallEffect::Changes(vec![plain(0, true, PathChange::Lost)?]),
        Syscall::Rename => rename(plain(0, false, PathChange::Moved)?, plain(1, false, PathChange::Lost)?, 0),
        Syscall::RenameAt => {
            rename(there(0, 1, false, PathChange::Moved)?, there(2, 3, false, PathChange::Lost)?, 0)
        }
        Syscall::RenameAt2 => rename(
            there(0, 1, false, PathChange::Moved)?,
            there(2, 3, false, PathChange::Lost)?,
            arguments[4],
        ),
        Syscall::Unlink | Syscall::RemoveFolder => {
            SyscallEffect::Changes(vec![plain(0, false, PathChange::Lost)?])
        }
        Syscall::UnlinkAt => SyscallEffect::Changes(vec![there(0, 1, false, PathChange::Lost)?]),
        Syscall::Link => SyscallEffect::Changes(vec![
            plain(0, false, PathChange::Touched)?,
            plain(1, false, PathChange::Made)?,
        ]),
        Syscall::LinkAt => {
            let follows = has_flag(arguments[4], AtFlags::SYMLINK_FOLLOW);
            SyscallEffect::Changes(vec![
                there(0, 1, follows, PathChange::Touched)?,
                there(2, 3, false, PathChange::Made)?,
            ])
        }
        Syscall::Symlink => SyscallEffect::Changes(vec![plain(1, false, PathChange::Made)?]),
        Syscall::SymlinkAt => SyscallEffect::Changes(vec![there(1, 2, false, PathChange::Made)?]),
        Syscall::MakeNode => SyscallEffect::Changes(vec![plain(0, false, PathChange::Made)?]),
        Syscall::MakeNodeAt => SyscallEffect::Changes(vec![there(0, 1, false, PathChange::Made)?]),
        Syscall::ChangeMode => SyscallEffect::Changes(vec![plain(0, true, PathChange::Touched)?]),
        Syscall::ChangeModeAt => SyscallEffect::Changes(vec![there(0, 1, true, PathChange::Touched)?]),
        Syscall::ChangeModeAt2 => {
            let follows = !has_flag(arguments[3], AtFlags::SYMLINK_NOFOLLOW);
            SyscallEffect::Changes(vec![there(0, 1, follows, PathChange::Touched)?])
        }
        Syscall::ChangeModeOf => {
            SyscallEffect::Changes(vec![path_argument(at(0), OsString::new(), true, PathChange::Touched)?])
        }
        Syscall::Execute => {
            execute(plain(0, true, PathChange::Touched)?, arguments[1], arguments[2], memory)?
        }
        Syscall::ExecuteAt => {
            execute(there(0, 1, true, PathChange::Touched)?, arguments[2], arguments[3], memory)?
        }
    })
}

fn path_argument(
    folder: BaseFolder,
    text: OsString,
    follows: bool,
    change: PathChange,
) -> io::Result<PathArgument> {
    Ok(PathArgument { folder, text, follows, change })
}

fn base_folder(number: u64) -> BaseFolder {
    match descriptor(number) {
        number if number < 0 => BaseFolder::Working,
        number => BaseFolder::Descriptor(number),
    }
}

/// A path whose beginning is the folder, whatever it begins with.
fn rooted(text: OsString, how: u64) -> OsString {
    const IN_ROOT: u64 = 0x10;
    if how & IN_ROOT == 0 {
        return text;
    }
    let bytes = text.as_bytes();
    let begin = bytes.iter().position(|byte| *byte != b'/').unwrap_or(bytes.len());
    let below = OsStr::from_bytes(&bytes[begin..]);
    if below.is_empty() { OsString::from(".") } else { below.to_owned() }
}

fn open(folder: BaseFolder, text: OsString, flags: OFlags) -> SyscallEffect {
    if !opens_for_change(flags) || is_unnamed(flags) {
        return SyscallEffect::Nothing;
    }
    let is_made = flags.contains(OFlags::CREATE | OFlags::EXCL);
    let only_reads = !flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
    let change = match flags {
        _ if is_made => PathChange::Made,
        // As `flock` does it.
        _ if only_reads => PathChange::Ensured,
        // Whatever is added at the end takes nothing away. Everything else may: a file can be emptied or written over later.
        flags if flags.contains(OFlags::APPEND) && !flags.contains(OFlags::TRUNC) => PathChange::Touched,
        _ => PathChange::Lost,
    };
    SyscallEffect::Changes(vec![PathArgument {
        folder,
        text,
        follows: !is_made && !flags.contains(OFlags::NOFOLLOW),
        change,
    }])
}

/// With the flag that exchanges them, both only change their names.
///
/// A slash at the end says that it is a folder, which is looked at anyway.
fn rename(from: PathArgument, to: PathArgument, flags: u64) -> SyscallEffect {
    const EXCHANGE: u64 = 2;
    let (from, to) = (without_slashes(from), without_slashes(to));
    let change = if flags & EXCHANGE == 0 { to.change } else { PathChange::Moved };
    SyscallEffect::Changes(vec![from, PathArgument { change, ..to }])
}

fn without_slashes(name: PathArgument) -> PathArgument {
    let bytes = name.text.as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len().min(1), |last| last + 1);
    PathArgument { text: OsStr::from_bytes(&bytes[..end]).to_owned(), ..name }
}

fn execute(
    file: PathArgument,
    arguments: u64,
    environment: u64,
    memory: &ProcessMemory,
) -> io::Result<SyscallEffect> {
    let mut program = ExecutedProgram {
        file,
        arguments: memory.read_string_array(arguments, INITIAL_ARGUMENTS)?,
        environment: Vec::new(),
    };
    // What is further on the command line, and the environment, matters only for git.
    if program.may_be_git() {
        program.arguments = memory.read_string_array(arguments, MAX_ARGUMENTS)?;
        let all = memory.read_string_array(environment, MAX_VARIABLES)?;
        program.environment = all.iter().filter_map(|variable| git_variable(variable)).collect();
    }
    Ok(SyscallEffect::Executes(program))
}

impl ExecutedProgram {
    /// Whether this may be git, by the name of its file or the one that it is called by.
    pub fn may_be_git(&self) -> bool {
        let names = [Some(&self.file.text), self.arguments.first()];
        names.into_iter().flatten().any(|name| {
            let last = name.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            last == b"git" || last.starts_with(b"git-")
        })
    }
}

fn git_variable(variable: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = variable.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]));
    is_git_variable(name).then(|| (name.to_owned(), value.to_owned()))
}
