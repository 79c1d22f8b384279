//! What a path means: one file has one name, whoever says it from wherever.

use std::path::{Component, Path, PathBuf};

/// How paths become names of resources.
#[derive(Debug, Clone)]
pub enum PathResolver {
    /// The files are on this machine: a path starts here, and its links are followed.
    Local {
        folder: PathBuf,
        /// What lies below is named from there on. Without it, names are whole paths.
        root: Option<PathBuf>,
    },
    /// The files are wherever the caller is: a path is taken as it is said.
    Remote,
}

impl PathResolver {
    /// Paths of this machine, from `folder` on.
    pub fn local(folder: &Path, root: Option<&Path>) -> Self {
        Self::Local { folder: real(folder), root: root.map(|root| real(&folder.join(root))) }
    }

    /// The path as it stands in a resource's name. What ends with `/` means everything below, and so does a folder that
    /// is there.
    pub fn resource_name(&self, path: &str) -> String {
        let means_all = path.ends_with('/');
        match self {
            Self::Remote => with_end(&plain(Path::new(path)), means_all),
            Self::Local { folder, root } => {
                let whole = real(&folder.join(path));
                let means_all = means_all || whole.is_dir();
                let named = match root.as_ref().and_then(|root| whole.strip_prefix(root).ok()) {
                    Some(rest) => rest,
                    None => &whole,
                };
                with_end(named, means_all)
            }
        }
    }
}

fn with_end(path: &Path, means_all: bool) -> String {
    // The root itself has no name; a pattern says what is meant.
    if path.as_os_str().is_empty() {
        return "*".to_owned();
    }
    let mut name = path.to_string_lossy().into_owned();
    if means_all && !name.ends_with('/') {
        name.push('/');
    }
    name
}

/// Without `.` and `..`, as far as the path itself tells.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some_and(|name| name != "..") => {
                plain.pop();
            }
            Component::ParentDir if plain.has_root() => {}
            part => plain.push(part),
        }
    }
    plain
}

/// With its links followed, as far as it exists, part by part as the system does: `..` after a link leads to where the link
/// leads, not to where it lies. A file that is about to be made has no link yet, its folder may have.
fn real(path: &Path) -> PathBuf {
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // What is there has no link in it any more.
            Component::ParentDir => {
                real.pop();
            }
            part => {
                real.push(part);
                real = real.canonicalize().unwrap_or(real);
            }
        }
    }
    real
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_to_one_file_have_one_resource_name() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("project/src")).unwrap();
        std::os::unix::fs::symlink(top.join("project"), top.join("link")).unwrap();
        let places = PathResolver::local(&top.join("project"), None);
        let whole = format!("{}/project/src/lib.rs", top.display());
        for input in ["src/lib.rs", "./src/lib.rs", "src/../src//lib.rs", "../link/src/lib.rs", &whole] {
            assert_eq!(places.resource_name(input), whole, "{input}");
        }
        // `link/..` is where the link leads to, for whoever writes the file.
        std::os::unix::fs::symlink(top.join("project/src"), top.join("inside")).unwrap();
        assert_eq!(places.resource_name("../inside/../lib.rs"), format!("{}/project/lib.rs", top.display()));
        assert_eq!(
            places.resource_name("new/../src/lib.rs"),
            whole,
            "what is not there yet leads nowhere else"
        );
        let below = PathResolver::local(&top.join("project/src"), Some(Path::new("..")));
        for input in ["lib.rs", &whole, "../../link/src/lib.rs"] {
            assert_eq!(below.resource_name(input), "src/lib.rs", "{input}");
        }
        assert_eq!(
            below.resource_name("/elsewhere/a"),
            "/elsewhere/a",
            "what is not below the root keeps its name"
        );
    }

    #[test]
    fn path_of_a_folder_names_everything_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("src")).unwrap();
        let places = PathResolver::local(&top, Some(&top));
        assert_eq!(places.resource_name("src"), "src/", "it is there");
        assert_eq!(places.resource_name("new/"), "new/", "it will be");
        assert_eq!(places.resource_name("new"), "new", "nobody knows");
        assert_eq!(places.resource_name("src/*.rs"), "src/*.rs");
        assert_eq!(places.resource_name("."), "*");
    }

    #[test]
    fn remote_paths_are_only_normalised() {
        for (input, name) in [
            ("./src/lib.rs", "src/lib.rs"),
            ("src/", "src/"),
            ("/a/../b", "/b"),
            ("../a", "../a"),
            (".", "*"),
        ] {
            assert_eq!(PathResolver::Remote.resource_name(input), name);
        }
    }
}
