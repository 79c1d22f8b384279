//! What hooks are put into: whose folders, which program, what the system allows.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tenure_gate::install::{InstallContext, InstallScope, UserFolders};

use crate::configuration::{Folders, variable};
use crate::exit;
use crate::failure::Failure;
use crate::seccomp_probe;

/// This program, also where its name is another one's by now.
const OWN: &str = "/proc/self/exe";

/// What is the same for all places.
#[derive(Debug, Clone)]
pub struct InstallEnvironment {
    pub person: UserFolders,
    /// Why calls cannot be watched here; nothing, if they can.
    pub unwatchable: Option<String>,
    program: PathBuf,
    backups: PathBuf,
}

impl InstallEnvironment {
    pub fn detect() -> Result<Self, Failure> {
        let folders = Folders::new(variable);
        let state = folders.state("what Tenure has installed", "set HOME").map_err(|_| {
            let what =
                "neither XDG_STATE_HOME nor HOME says where Tenure writes down what it installs; set HOME";
            Failure::from_message(exit::CONFIGURATION, what)
        })?;
        Ok(Self {
            person: UserFolders::new(variable),
            unwatchable: seccomp_probe::seccomp_unavailable_reason(),
            program: program()?,
            backups: state.join("tenure-installed"),
        })
    }

    pub fn location(&self, root: PathBuf, scope: InstallScope) -> InstallContext {
        InstallContext {
            root,
            scope,
            program: self.program.clone(),
            backups: self.backups.clone(),
            user_folders: self.person.clone(),
            chosen_shell: variable("CLAUDE_CODE_SHELL").map(PathBuf::from),
            login_shell: variable("SHELL").map(PathBuf::from).filter(|shell| !shell.as_os_str().is_empty()),
            interception_unavailable: self.unwatchable.clone(),
        }
    }
}

/// The path that hooks shall name.
///
/// It is the one by which we were called, if that leads here: a link is there so that it can lead to another version later, and
/// hooks that name the version itself would be gone with it.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(exit::UNAVAILABLE, "the program's own path cannot be seen", &error))?;
    let called = std::env::args_os().next().and_then(|name| called(&name, variable("PATH")));
    Ok(called.filter(|path| is_one_file(path, Path::new(OWN))).unwrap_or(own))
}

/// The path that this name means, if it is absolute or found in the PATH.
fn called(name: &OsString, folders: Option<OsString>) -> Option<PathBuf> {
    let name = Path::new(name);
    if name.is_absolute() {
        return Some(name.to_owned());
    }
    if name.components().count() != 1 {
        return None;
    }
    let folders = folders.unwrap_or_default();
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| path.is_file()).filter(|path| path.is_absolute())
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    let number = |path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    number(one).is_some_and(|found| Some(found) == number(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_name_is_resolved_through_path_like_in_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("one/tenure")).unwrap();
        fs::create_dir(path("two")).unwrap();
        fs::write(path("two/tenure"), "").unwrap();
        let folders = std::env::join_paths([path("none"), path("one"), path("two")]).unwrap();
        let found = |name: &str| called(&name.into(), Some(folders.clone()));
        assert_eq!(found("tenure"), Some(path("two/tenure")), "a folder is no program");
        assert_eq!(found("/opt/tenure"), Some("/opt/tenure".into()));
        assert_eq!((found("two/tenure"), found("./tenure"), found("other")), (None, None, None));
        std::os::unix::fs::symlink(path("two/tenure"), path("link")).unwrap();
        assert!(
            is_one_file(&path("link"), &path("two/tenure")) && !is_one_file(&path("none"), &path("none"))
        );
    }
}
