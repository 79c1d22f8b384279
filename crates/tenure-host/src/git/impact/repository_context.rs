//! The repository that a command line means, and how it is asked.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::super::command_line::GlobalOptions;
use super::super::env::{is_git_variable, is_location_variable, is_pathspec_variable};
use super::super::query::GitQuery;
use super::file_lists::lines;

type Variables = Vec<(OsString, OsString)>;

/// One working tree, seen from where git runs, with what the agent's git was told.
pub(super) struct RepositoryContext {
    /// Where git runs, after every `-C`.
    pub folder: PathBuf,
    location: Variables,
    environment: Variables,
    /// How the agent's paths are read, by its environment and by its options.
    pathspec_environment: Variables,
    pathspecs: Vec<OsString>,
    settings: Vec<OsString>,
    /// Settings that were made, and nobody knows to what.
    unknown_settings: Vec<String>,
    pub root: PathBuf,
    /// The commit that is checked out, if there is one.
    pub head: Option<String>,
}

impl RepositoryContext {
    /// Nothing if there is no working tree.
    pub fn new(
        global: &GlobalOptions,
        cwd: &Path,
        environment: &[(OsString, OsString)],
    ) -> Result<Option<Self>, GitError> {
        let variables = environment.iter().filter(|(name, _)| is_git_variable(name)).cloned();
        let (mut place, environment): (Variables, Variables) =
            variables.partition(|(name, _)| is_location_variable(name));
        let (paths_are, environment) =
            environment.into_iter().partition(|(name, _)| is_pathspec_variable(name));
        let named = [("GIT_DIR", &global.git_dir), ("GIT_WORK_TREE", &global.work_tree)];
        for (name, value) in named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))) {
            place.retain(|(other, _)| other != name);
            place.push((name.into(), value));
        }
        let folder: PathBuf = cwd.join(&global.folder).components().collect();
        let is_set = |name: &str| place.iter().any(|(other, _)| other == name);
        // Without a name for the working tree, there is none.
        if !folder.is_dir() || (global.is_bare && !is_set("GIT_WORK_TREE")) {
            return Ok(None);
        }
        if global.is_bare && !is_set("GIT_DIR") {
            place.push(("GIT_DIR".into(), folder.clone().into()));
        }
        Self {
            folder,
            location: place,
            environment,
            pathspec_environment: paths_are,
            pathspecs: global.pathspecs.clone(),
            settings: global.settings.clone(),
            unknown_settings: global.unknown_settings.clone(),
            root: PathBuf::new(),
            head: None,
        }
        .discover()
    }

    /// The tree at another place, with what else was told.
    pub fn for_folder(&self, folder: &Path) -> Result<Option<Self>, GitError> {
        Self {
            folder: folder.to_owned(),
            location: Vec::new(),
            environment: self.environment.clone(),
            pathspec_environment: Vec::new(),
            pathspecs: Vec::new(),
            settings: self.settings.clone(),
            unknown_settings: self.unknown_settings.clone(),
            root: PathBuf::new(),
            head: None,
        }
        .discover()
    }

    fn discover(mut self) -> Result<Option<Self>, GitError> {
        self.root = match self.rev_parse_path("--show-toplevel") {
            Err(GitError::NotARepository | GitError::Bare) => return Ok(None),
            output => output?,
        };
        self.head = self.resolve_commit(OsStr::new("HEAD"))?;
        Ok(Some(self))
    }

    /// A query whose paths, if any, are patterns of our own.
    pub fn query<A: Into<OsString>>(
        &self,
        subcommand: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> GitQuery<'_> {
        let mut query = GitQuery::new(&self.folder, subcommand, arguments);
        query.location = &self.location;
        query.environment = Some(&self.environment);
        query.settings = &self.settings;
        query.pathspecs = &[];
        query
    }

    /// Asks about the agent's paths, with `otherwise` where it named none. Paths that git cannot read mean everything: the
    /// command itself will be refused by git, or knows better.
    pub fn query_paths(
        &self,
        subcommand: &'static str,
        options: &[impl AsRef<OsStr>],
        paths: &[OsString],
        otherwise: Option<&str>,
    ) -> Result<Vec<u8>, GitError> {
        self.query_paths_as(subcommand, options, paths, otherwise, true)
    }

    /// The same with the settings of this process in place of the agent's: for what the gate itself thinks of a path.
    pub fn query_paths_with_own_settings(
        &self,
        subcommand: &'static str,
        options: &[impl AsRef<OsStr>],
        paths: &[OsString],
        otherwise: Option<&str>,
    ) -> Result<Vec<u8>, GitError> {
        self.query_paths_as(subcommand, options, paths, otherwise, false)
    }

    fn query_paths_as(
        &self,
        subcommand: &'static str,
        options: &[impl AsRef<OsStr>],
        paths: &[OsString],
        otherwise: Option<&str>,
        is_agents: bool,
    ) -> Result<Vec<u8>, GitError> {
        let new_query = |paths: &[OsString]| {
            let options = options.iter().map(|option| option.as_ref().to_owned()).chain(["--".into()]);
            let mut query = self.query(subcommand, options.chain(paths.iter().cloned()));
            if !is_agents {
                (query.environment, query.settings) = (None, &[]);
            }
            query
        };
        if !paths.is_empty() {
            let mut query = new_query(paths);
            query.pathspecs = &self.pathspecs;
            let place = [&self.location[..], &self.pathspec_environment].concat();
            query.location = &place;
            match query.output() {
                Err(GitError::Failed { .. }) => {}
                answered => return answered,
            }
        }
        new_query(&otherwise.map(OsString::from).into_iter().collect::<Vec<_>>()).output()
    }

    /// Whether a setting says yes; `otherwise` where nobody set it. One that cannot be read says the opposite of `otherwise`.
    pub fn config_bool(&self, name: &str, otherwise: bool) -> Result<bool, GitError> {
        if self.unknown_settings.iter().any(|unknown| unknown == name) {
            return Ok(!otherwise);
        }
        match self.query("config", ["--get", "--type=bool", name]).optional_output() {
            Ok(None) => Ok(otherwise),
            Ok(Some(value)) => Ok(value.trim_ascii() == b"true"),
            Err(GitError::Failed { .. }) => Ok(!otherwise),
            Err(error) => Err(error),
        }
    }

    /// The text of a setting. The last one counts.
    pub fn config_value(&self, name: &str) -> Result<Option<String>, GitError> {
        let value = self.query("config", ["--get", name]).optional_output()?;
        Ok(value.map(|value| String::from_utf8_lossy(&value).trim_end_matches('\n').to_owned()))
    }

    /// The commit that this word means.
    pub fn resolve_commit(&self, word: &OsStr) -> Result<Option<String>, GitError> {
        self.resolve(word, "^{commit}")
    }

    /// The tree that this word means.
    pub fn resolve_tree(&self, word: &OsStr) -> Result<Option<String>, GitError> {
        self.resolve(word, "^{tree}")
    }

    fn resolve(&self, word: &OsStr, kind: &str) -> Result<Option<String>, GitError> {
        let word = if word == "-" { OsStr::new("@{-1}") } else { word };
        // After a colon, whatever stands behind belongs to a message (`:/text`) or to a path (`HEAD:folder`).
        if word.as_bytes().contains(&b':') {
            let Some(id) = self.rev_parse_verify(word.to_owned())? else { return Ok(None) };
            return self.rev_parse_verify((id + kind).into());
        }
        // `A...B` is where they parted.
        if let Some(at) = word.as_bytes().windows(3).position(|dots| dots == b"...") {
            let or_head = |side: &[u8]| if side.is_empty() { b"HEAD".to_vec() } else { side.to_vec() };
            let sides = [&word.as_bytes()[..at], &word.as_bytes()[at + 3..]];
            let [one, other] = sides.map(|side| self.resolve_commit(&OsString::from_vec(or_head(side))));
            let (Some(one), Some(other)) = (one?, other?) else { return Ok(None) };
            return Ok(self.merge_bases(&one, &other)?.into_iter().next());
        }
        let mut name = word.to_owned();
        name.push(kind);
        self.rev_parse_verify(name)
    }

    fn rev_parse_verify(&self, name: OsString) -> Result<Option<String>, GitError> {
        let options = ["--verify", "--quiet", "--end-of-options"].map(OsString::from);
        match self.query("rev-parse", options.into_iter().chain([name])).optional_output() {
            Ok(id) => Ok(id.map(|id| String::from_utf8_lossy(&id).trim().to_owned())),
            // Not a name at all.
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl RepositoryContext {
    /// Where two commits parted. More than one, if they met in between.
    pub fn merge_bases(&self, one: &str, other: &str) -> Result<Vec<String>, GitError> {
        let output = self.query("merge-base", ["--all", one, other]).optional_output()?;
        Ok(lines(&output.unwrap_or_default()))
    }

    /// Branches of others that git may mean by a name that is not there.
    pub fn guessed_remote_branches(&self, word: &OsStr) -> Result<Vec<String>, GitError> {
        let mut pattern = OsString::from("--remotes=*/");
        pattern.push(word);
        match self.query("rev-parse", [pattern]).output() {
            Err(GitError::Failed { .. }) => Ok(Vec::new()),
            output => Ok(lines(&output?)),
        }
    }

    /// Options that are set for every merge into the branch that is checked out.
    pub fn merge_options(&self) -> Result<Vec<OsString>, GitError> {
        let output = self.query("rev-parse", ["--symbolic-full-name", "HEAD"]).optional_output();
        let name = match output {
            // There is no commit yet.
            Err(GitError::Failed { .. }) => return Ok(Vec::new()),
            output => String::from_utf8_lossy(&output?.unwrap_or_default()).trim_end_matches('\n').to_owned(),
        };
        let Some(branch) = name.strip_prefix("refs/heads/") else { return Ok(Vec::new()) };
        let options = self.config_value(&format!("branch.{branch}.mergeoptions"))?.unwrap_or_default();
        Ok(options.split_whitespace().map(OsString::from).collect())
    }

    /// The commits that the last fetch means to be merged.
    pub fn fetch_heads(&self) -> Result<Vec<String>, GitError> {
        let text = self.read_git_file("FETCH_HEAD")?;
        let lines = text.lines().filter(|line| !line.contains("\tnot-for-merge\t"));
        let ids = lines.filter_map(|line| line.split('\t').next().map(OsString::from));
        ids.filter_map(|id| self.resolve_commit(&id).transpose()).collect()
    }

    /// The folder of another working tree of this repository, by its path or the end of its path.
    pub fn linked_worktree(&self, folder: &Path, name: &OsStr) -> Result<Option<PathBuf>, GitError> {
        let named = folder.join(name);
        if named.is_dir() {
            return Ok(Some(named));
        }
        let noted = self.rev_parse_path("--git-common-dir")?.join("worktrees");
        let entries = std::fs::read_dir(folder.join(noted)).into_iter().flatten().flatten();
        let trees = entries.filter_map(|entry| {
            let content = std::fs::read(entry.path().join("gitdir")).ok()?;
            let path = Path::new(OsStr::from_bytes(content.strip_suffix(b"\n").unwrap_or(&content)));
            Some(path.parent()?.to_path_buf())
        });
        Ok(trees.into_iter().find(|tree| tree.ends_with(name) && tree.is_dir()))
    }

    /// What git has noted in a file of its own; empty if there is none.
    pub fn read_git_file(&self, name: &str) -> Result<String, GitError> {
        let content =
            std::fs::read(self.rev_parse_path("--absolute-git-dir")?.join(name)).unwrap_or_default();
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    /// A folder that git keeps, relative to where git runs if it is not absolute.
    pub fn rev_parse_path(&self, which: &str) -> Result<PathBuf, GitError> {
        let mut output = self.query("rev-parse", [which]).output()?;
        // One line end, and no more: a name may end with one of its own.
        if output.last() == Some(&b'\n') {
            output.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(output)))
    }
}
