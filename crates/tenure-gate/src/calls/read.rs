//! Which names a call changes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, OFlags};
use tenure_seccomp::{Call, Memory};

use super::place::{changes, descriptor, has, has_no_name, of_open};
use super::{Change, Does, Folder, Name, Program};
use crate::git::tells_git;

/// So many words say which program this is.
const FIRST_WORDS: usize = 6;
/// More words than any command line of git has that is looked at.
const MOST_WORDS: usize = 100_000;
const MOST_VARIABLES: usize = 4096;
/// What this call does, with what its arguments point to. An error if that cannot be read.
pub fn read(call: Call, arguments: &[u64; 6], memory: &Memory) -> io::Result<Does> {
    let text = |place: usize| memory.text(arguments[place]);
    let at = |place: usize| folder(arguments[place]);
    let plain = |place: usize, follows, change| name(Folder::Working, text(place)?, follows, change);
    let there =
        |folder: usize, place: usize, follows, change| name(at(folder), text(place)?, follows, change);
    Ok(match call {
        Call::Open => open(Folder::Working, text(0)?, of_open(arguments[1])),
        Call::OpenAt => open(at(0), text(1)?, of_open(arguments[2])),
        Call::OpenAt2 => {
            // Three numbers: the flags, the mode, and how the path is followed.
            let (flags, how) = (memory.number(arguments[2])?, memory.number(arguments[2] + 16)?);
            open(at(0), rooted(text(1)?, how), of_open(flags))
        }
        Call::Create => open(Folder::Working, text(0)?, OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC),
        Call::Truncate => Does::Changes(vec![plain(0, true, Change::Lost)?]),
        Call::Rename => rename(plain(0, false, Change::Moved)?, plain(1, false, Change::Lost)?, 0),
        Call::RenameAt => rename(there(0, 1, false, Change::Moved)?, there(2, 3, false, Change::Lost)?, 0),
        Call::RenameAt2 => {
            rename(there(0, 1, false, Change::Moved)?, there(2, 3, false, Change::Lost)?, arguments[4])
        }
        Call::Unlink | Call::RemoveFolder => Does::Changes(vec![plain(0, false, Change::Lost)?]),
        Call::UnlinkAt => Does::Changes(vec![there(0, 1, false, Change::Lost)?]),
        Call::Link => Does::Changes(vec![plain(0, false, Change::Touched)?, plain(1, false, Change::Made)?]),
        Call::LinkAt => {
            let follows = has(arguments[4], AtFlags::SYMLINK_FOLLOW);
            Does::Changes(vec![there(0, 1, follows, Change::Touched)?, there(2, 3, false, Change::Made)?])
        }
        Call::Symlink => Does::Changes(vec![plain(1, false, Change::Made)?]),
        Call::SymlinkAt => Does::Changes(vec![there(1, 2, false, Change::Made)?]),
        Call::MakeNode => Does::Changes(vec![plain(0, false, Change::Made)?]),
        Call::MakeNodeAt => Does::Changes(vec![there(0, 1, false, Change::Made)?]),
        Call::ChangeMode => Does::Changes(vec![plain(0, true, Change::Touched)?]),
        Call::ChangeModeAt => Does::Changes(vec![there(0, 1, true, Change::Touched)?]),
        Call::ChangeModeAt2 => {
            let follows = !has(arguments[3], AtFlags::SYMLINK_NOFOLLOW);
            Does::Changes(vec![there(0, 1, follows, Change::Touched)?])
        }
        Call::ChangeModeOf => Does::Changes(vec![name(at(0), OsString::new(), true, Change::Touched)?]),
        Call::Execute => execute(plain(0, true, Change::Touched)?, arguments[1], arguments[2], memory)?,
        Call::ExecuteAt => execute(there(0, 1, true, Change::Touched)?, arguments[2], arguments[3], memory)?,
    })
}

fn name(folder: Folder, text: OsString, follows: bool, change: Change) -> io::Result<Name> {
    Ok(Name { folder, text, follows, change })
}

fn folder(number: u64) -> Folder {
    match descriptor(number) {
        number if number < 0 => Folder::Working,
        number => Folder::Descriptor(number),
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

fn open(folder: Folder, text: OsString, flags: OFlags) -> Does {
    if !changes(flags) || has_no_name(flags) {
        return Does::Nothing;
    }
    let is_made = flags.contains(OFlags::CREATE | OFlags::EXCL);
    let only_reads = !flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
    let change = match flags {
        _ if is_made => Change::Made,
        // As `flock` does it.
        _ if only_reads => Change::Ensured,
        // Whatever is added at the end takes nothing away. Everything else may: a file can be emptied or written over later.
        flags if flags.contains(OFlags::APPEND) && !flags.contains(OFlags::TRUNC) => Change::Touched,
        _ => Change::Lost,
    };
    Does::Changes(vec![Name { folder, text, follows: !is_made && !flags.contains(OFlags::NOFOLLOW), change }])
}

/// With the flag that exchanges them, both only change their names.
///
/// A slash at the end says that it is a folder, which is looked at anyway.
fn rename(from: Name, to: Name, flags: u64) -> Does {
    const EXCHANGE: u64 = 2;
    let (from, to) = (without_slashes(from), without_slashes(to));
    let change = if flags & EXCHANGE == 0 { to.change } else { Change::Moved };
    Does::Changes(vec![from, Name { change, ..to }])
}

fn without_slashes(name: Name) -> Name {
    let bytes = name.text.as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len().min(1), |last| last + 1);
    Name { text: OsStr::from_bytes(&bytes[..end]).to_owned(), ..name }
}

fn execute(file: Name, arguments: u64, environment: u64, memory: &Memory) -> io::Result<Does> {
    let mut program =
        Program { file, arguments: memory.texts(arguments, FIRST_WORDS)?, environment: Vec::new() };
    // What is further on the command line, and the environment, matters only for git.
    if program.may_be_git() {
        program.arguments = memory.texts(arguments, MOST_WORDS)?;
        let all = memory.texts(environment, MOST_VARIABLES)?;
        program.environment = all.iter().filter_map(|variable| gits(variable)).collect();
    }
    Ok(Does::Executes(program))
}

impl Program {
    /// Whether this may be git, by the name of its file or the one that it is called by.
    pub fn may_be_git(&self) -> bool {
        let names = [Some(&self.file.text), self.arguments.first()];
        names.into_iter().flatten().any(|name| {
            let last = name.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            last == b"git" || last.starts_with(b"git-")
        })
    }
}

fn gits(variable: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = variable.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]));
    tells_git(name).then(|| (name.to_owned(), value.to_owned()))
}
