//! A place to install into, and what is there before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenure_hooks::install::{
    InstallContext, InstallPlan, InstallScope, InstallTarget, UserFolders, apply_plan, plan_install,
    plan_uninstall,
};

/// An empty project, and a folder of Tenure's own beside it.
pub struct TestProject {
    _folder: TempDir,
    pub context: InstallContext,
}

impl TestProject {
    pub fn new() -> Self {
        // In memory where there is such a place: every write is synced, and properties write often.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("project");
        fs::create_dir(&root).unwrap();
        let program = PathBuf::from("/opt/with space/tenure");
        let backups = top.join("state/backups");
        let context = InstallContext {
            root,
            scope: InstallScope::Project,
            program,
            backups,
            user_folders: user_folders(&top.join("home")),
            chosen_shell: None,
            login_shell: None,
            interception_unavailable: None,
        };
        Self { _folder: folder, context }
    }

    /// For a root that is there already.
    pub fn at_root(root: &Path) -> Self {
        let mut project = Self::new();
        project.context.root = root.to_owned();
        project
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.context.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.context.root.join(path)).unwrap()
    }

    /// Installs, and says what was planned.
    pub fn install(&self, what: InstallTarget) -> InstallPlan {
        let plan = plan_install(what, &self.context).unwrap();
        apply_plan(&plan).unwrap();
        plan
    }

    pub fn uninstall(&self, what: InstallTarget) -> InstallPlan {
        let plan = plan_uninstall(what, &self.context).unwrap();
        apply_plan(&plan).unwrap();
        plan
    }

    /// Everything below the root: folders, contents and modes.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        snapshot(&self.context.root)
    }

    /// Whether nothing is remembered any more. The shell stays: settings that are not known here may name it.
    pub fn has_no_records(&self) -> bool {
        let remaining = fs::read_dir(&self.context.backups).into_iter().flatten();
        remaining.map(|entry| entry.unwrap().file_name()).all(|name| name == "bin")
    }
}

/// Somebody who lives there.
pub fn user_folders(home: &Path) -> UserFolders {
    UserFolders::new(|name| (name == "HOME").then(|| home.into()))
}

/// Everything below a folder but what git keeps for itself. Of a link, where it leads.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if metadata.is_dir() {
            let is_of_git =
                ["objects", "logs", "refs"].iter().any(|name| path.ends_with(format!(".git/{name}")));
            if !is_of_git {
                found.extend(snapshot(&path));
            }
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(path, (metadata.mode(), content));
    }
    found
}
