//! Whether a program that settings name is there, and is this one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, access};

/// This program, also where its name is another one's by now.
const OWN: &str = "/proc/self/exe";

/// How it stands with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookProgramState {
    /// It is this one, or the same bytes.
    Same,
    Other,
    NotExecutable,
    Missing,
}

pub fn inspect_program(path: &Path) -> HookProgramState {
    let Ok(about) = fs::metadata(path) else { return HookProgramState::Missing };
    if !about.is_file() || access(path, Access::EXEC_OK).is_err() {
        return HookProgramState::NotExecutable;
    }
    let is_own = fs::metadata(OWN).is_ok_and(|own| {
        let is_one = (own.dev(), own.ino()) == (about.dev(), about.ino());
        is_one || own.len() == about.len() && is_equal(path).unwrap_or(false)
    });
    if is_own { HookProgramState::Same } else { HookProgramState::Other }
}

impl HookProgramState {
    /// What is wrong with it, as the end of a sentence that begins with its name. Nothing if all is well.
    pub const fn problem(self) -> Option<&'static str> {
        match self {
            HookProgramState::Same => None,
            HookProgramState::Other => Some(OTHER_PROGRAM),
            HookProgramState::NotExecutable => Some("cannot be executed"),
            HookProgramState::Missing => Some("is gone"),
        }
    }
}

/// What is said of another program. It may be as good as this one: a second copy, an older version. That is tried.
pub const OTHER_PROGRAM: &str = "is another program than this one";

fn is_equal(path: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(path)?, File::open(OWN)?);
    let (mut ours, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let (some, more) = (fill(&mut one, &mut ours)?, fill(&mut other, &mut right)?);
        if ours[..some] != right[..more] {
            return Ok(false);
        }
        if some == 0 {
            return Ok(true);
        }
    }
}

/// Reads as much as fits, or until the end.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_are_compared_by_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(inspect_program(&path("gone")), HookProgramState::Missing);
        assert_eq!(inspect_program(folder.path()), HookProgramState::NotExecutable);
        fs::copy(OWN, path("copy")).unwrap();
        assert_eq!(inspect_program(&path("copy")), HookProgramState::Same);
        std::os::unix::fs::symlink(std::env::current_exe().unwrap(), path("link")).unwrap();
        assert_eq!(inspect_program(&path("link")), HookProgramState::Same);
        fs::write(path("other"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(path("other"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(inspect_program(&path("other")), HookProgramState::Other);
        let mut bytes = fs::read(path("copy")).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path("changed"), bytes).unwrap();
        fs::set_permissions(path("changed"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(inspect_program(&path("changed")), HookProgramState::Other);
    }
}
