//! The repository that a command line means, and how it is asked.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::super::run::Question;
use super::super::told::{is_pathspecs, is_place, tells_git};
use super::super::verbs::Global;

type Variables = Vec<(OsString, OsString)>;

/// One working tree, seen from where git runs, with what the agent's git was told.
pub(super) struct Asked {
    /// Where git runs, after every `-C`.
    pub folder: PathBuf,
    place: Variables,
    environment: Variables,
    /// How the agent's paths are read, by its environment and by its options.
    paths_are: Variables,
    pathspecs: Vec<OsString>,
    settings: Vec<OsString>,
    /// Settings that were made, and nobody knows to what.
    unknown: Vec<String>,
    pub root: PathBuf,
    /// The commit that is checked out, if there is one.
    pub head: Option<String>,
}

impl Asked {
    /// Nothing if there is no working tree.
    pub fn new(
        global: &Global,
        cwd: &Path,
        environment: &[(OsString, OsString)],
    ) -> Result<Option<Self>, GitError> {
        let told = environment.iter().filter(|(name, _)| tells_git(name)).cloned();
        let (mut place, others): (Variables, Variables) = told.partition(|(name, _)| is_place(name));
        let (paths_are, environment) = others.into_iter().partition(|(name, _)| is_pathspecs(name));
        let named = [("GIT_DIR", &global.git_dir), ("GIT_WORK_TREE", &global.work_tree)];
        for (name, value) in named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))) {
            place.retain(|(other, _)| other != name);
            place.push((name.into(), value));
        }
        let folder: PathBuf = cwd.join(&global.folder).components().collect();
        let is_told = |name: &str| place.iter().any(|(other, _)| other == name);
        // Without a name for the working tree, there is none.
        if !folder.is_dir() || (global.is_bare && !is_told("GIT_WORK_TREE")) {
            return Ok(None);
        }
        if global.is_bare && !is_told("GIT_DIR") {
            place.push(("GIT_DIR".into(), folder.clone().into()));
        }
        Self {
            folder,
            place,
            environment,
            paths_are,
            pathspecs: global.pathspecs.clone(),
            settings: global.settings.clone(),
            unknown: global.unknown.clone(),
            root: PathBuf::new(),
            head: None,
        }
        .found()
    }

    /// The tree at another place, with what else was told.
    pub fn elsewhere(&self, folder: &Path) -> Result<Option<Self>, GitError> {
        Self {
            folder: folder.to_owned(),
            place: Vec::new(),
            environment: self.environment.clone(),
            paths_are: Vec::new(),
            pathspecs: Vec::new(),
            settings: self.settings.clone(),
            unknown: self.unknown.clone(),
            root: PathBuf::new(),
            head: None,
        }
        .found()
    }

    fn found(mut self) -> Result<Option<Self>, GitError> {
        self.root = match self.git_folder("--show-toplevel") {
            Err(GitError::NotARepository | GitError::Bare) => return Ok(None),
            said => said?,
        };
        self.head = self.commit(OsStr::new("HEAD"))?;
        Ok(Some(self))
    }

    /// A question whose paths, if any, are patterns of our own.
    pub fn question<A: Into<OsString>>(
        &self,
        subcommand: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Question<'_> {
        let mut question = Question::new(&self.folder, subcommand, arguments);
        question.place = &self.place;
        question.environment = Some(&self.environment);
        question.settings = &self.settings;
        question.pathspecs = &[];
        question
    }

    /// Asks about the agent's paths, with `otherwise` where it named none. Paths that git cannot read mean everything: the
    /// command itself will be refused by git, or knows better.
    pub fn about(
        &self,
        subcommand: &'static str,
        options: &[impl AsRef<OsStr>],
        paths: &[OsString],
        otherwise: Option<&str>,
    ) -> Result<Vec<u8>, GitError> {
        self.about_as(subcommand, options, paths, otherwise, true)
    }

    /// The same with the settings of this process in place of the agent's: for what the gate itself thinks of a path.
    pub fn about_for_us(
        &self,
        subcommand: &'static str,
        options: &[impl AsRef<OsStr>],
        paths: &[OsString],
        otherwise: Option<&str>,
    ) -> Result<Vec<u8>, GitError> {
        self.about_as(subcommand, options, paths, otherwise, false)
    }

    fn about_as(
        &self,
        subcommand: &'static str,
        options: &[impl AsRef<OsStr>],
        paths: &[OsString],
        otherwise: Option<&str>,
        is_agents: bool,
    ) -> Result<Vec<u8>, GitError> {
        let question = |paths: &[OsString]| {
            let options = options.iter().map(|option| option.as_ref().to_owned()).chain(["--".into()]);
            let mut question = self.question(subcommand, options.chain(paths.iter().cloned()));
            if !is_agents {
                (question.environment, question.settings) = (None, &[]);
            }
            question
        };
        if !paths.is_empty() {
            let mut question = question(paths);
            question.pathspecs = &self.pathspecs;
            let place = [&self.place[..], &self.paths_are].concat();
            question.place = &place;
            match question.answer() {
                Err(GitError::Failed { .. }) => {}
                answered => return answered,
            }
        }
        question(&otherwise.map(OsString::from).into_iter().collect::<Vec<_>>()).answer()
    }

    /// Whether a setting says yes; `otherwise` where nobody set it. One that cannot be read says the opposite of `otherwise`.
    pub fn is_set(&self, name: &str, otherwise: bool) -> Result<bool, GitError> {
        if self.unknown.iter().any(|unknown| unknown == name) {
            return Ok(!otherwise);
        }
        match self.question("config", ["--get", "--type=bool", name]).answer_if_any() {
            Ok(None) => Ok(otherwise),
            Ok(Some(said)) => Ok(said.trim_ascii() == b"true"),
            Err(GitError::Failed { .. }) => Ok(!otherwise),
            Err(error) => Err(error),
        }
    }

    /// The text of a setting. The last one counts.
    pub fn setting(&self, name: &str) -> Result<Option<String>, GitError> {
        let said = self.question("config", ["--get", name]).answer_if_any()?;
        Ok(said.map(|said| String::from_utf8_lossy(&said).trim_end_matches('\n').to_owned()))
    }

    /// The commit that this word means.
    pub fn commit(&self, word: &OsStr) -> Result<Option<String>, GitError> {
        self.resolve(word, "^{commit}")
    }

    /// The tree that this word means.
    pub fn tree(&self, word: &OsStr) -> Result<Option<String>, GitError> {
        self.resolve(word, "^{tree}")
    }

    fn resolve(&self, word: &OsStr, kind: &str) -> Result<Option<String>, GitError> {
        let word = if word == "-" { OsStr::new("@{-1}") } else { word };
        // After a colon, whatever stands behind belongs to a message (`:/text`) or to a path (`HEAD:folder`).
        if word.as_bytes().contains(&b':') {
            let Some(id) = self.parsed(word.to_owned())? else { return Ok(None) };
            return self.parsed((id + kind).into());
        }
        // `A...B` is where they parted.
        if let Some(at) = word.as_bytes().windows(3).position(|dots| dots == b"...") {
            let or_head = |side: &[u8]| if side.is_empty() { b"HEAD".to_vec() } else { side.to_vec() };
            let sides = [&word.as_bytes()[..at], &word.as_bytes()[at + 3..]];
            let [one, other] = sides.map(|side| self.commit(&OsString::from_vec(or_head(side))));
            let (Some(one), Some(other)) = (one?, other?) else { return Ok(None) };
            return Ok(self.bases(&one, &other)?.into_iter().next());
        }
        let mut name = word.to_owned();
        name.push(kind);
        self.parsed(name)
    }

    fn parsed(&self, name: OsString) -> Result<Option<String>, GitError> {
        let options = ["--verify", "--quiet", "--end-of-options"].map(OsString::from);
        match self.question("rev-parse", options.into_iter().chain([name])).answer_if_any() {
            Ok(said) => Ok(said.map(|said| String::from_utf8_lossy(&said).trim().to_owned())),
            // Not a name at all.
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
