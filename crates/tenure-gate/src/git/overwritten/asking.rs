//! The repository that a command line means, and what it is asked.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::super::changes::{names, status_paths};
use super::super::run::Question;
use super::super::verbs::Global;

/// What of an environment says to git where it is. Nothing else reaches the git that is asked.
const TOLD: [&str; 3] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];

/// How paths are compared: every name for itself, from the top of the tree, whatever the person has set.
pub(super) const COMPARE: [&str; 6] =
    ["--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-relative", "--ignore-submodules=dirty"];

/// Paths, relative to the top of the working tree.
pub(super) type Paths = BTreeSet<PathBuf>;

/// One working tree, seen from where git runs.
pub(super) struct Asked {
    /// Where git runs, after every `-C`.
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// How the agent's paths are read.
    pathspecs: Vec<OsString>,
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
        let told = |name: &OsStr| TOLD.iter().any(|told| name == *told);
        let mut environment: Vec<_> = environment.iter().filter(|(name, _)| told(name)).cloned().collect();
        let named = [("GIT_DIR", &global.git_dir), ("GIT_WORK_TREE", &global.work_tree)];
        for (name, value) in named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))) {
            environment.retain(|(other, _)| other != name);
            environment.push((name.into(), value));
        }
        let folder: PathBuf = cwd.join(&global.folder).components().collect();
        let is_told = |name: &str| environment.iter().any(|(other, _)| other == name);
        // Without a name for the working tree, there is none.
        if !folder.is_dir() || (global.is_bare && !is_told("GIT_WORK_TREE")) {
            return Ok(None);
        }
        if global.is_bare && !is_told("GIT_DIR") {
            environment.push(("GIT_DIR".into(), folder.clone().into()));
        }
        let pathspecs = global.pathspecs.clone();
        let mut asked = Self { folder, environment, pathspecs, root: PathBuf::new(), head: None };
        asked.root = match asked.git_folder("--show-toplevel") {
            Err(GitError::NotARepository | GitError::Bare) => return Ok(None),
            said => said?,
        };
        asked.head = asked.commit(OsStr::new("HEAD"))?;
        Ok(Some(asked))
    }

    /// A question whose paths, if any, are patterns of our own.
    pub fn question<A: Into<OsString>>(
        &self,
        subcommand: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Question<'_> {
        let mut question = Question::new(&self.folder, subcommand, arguments);
        question.environment = &self.environment;
        question.pathspecs = &[];
        question
    }

    /// Asks about the agent's paths, with `otherwise` where it named none. Paths that git cannot read mean everything: the
    /// command itself will be refused by git, or knows better.
    fn about(
        &self,
        subcommand: &'static str,
        options: &[&str],
        paths: &[OsString],
        otherwise: Option<&str>,
    ) -> Result<Vec<u8>, GitError> {
        let options = || options.iter().map(OsString::from).chain([OsString::from("--")]);
        if !paths.is_empty() {
            let mut question = self.question(subcommand, options().chain(paths.iter().cloned()));
            question.pathspecs = &self.pathspecs;
            match question.answer() {
                Err(GitError::Failed { .. }) => {}
                answered => return answered,
            }
        }
        self.question(subcommand, options().chain(otherwise.map(OsString::from))).answer()
    }

    /// What is not as in HEAD, also where git was told not to look.
    pub fn dirty(&self, untracked: bool, paths: &[OsString]) -> Result<Paths, GitError> {
        let options = [
            "--porcelain=v2",
            "-z",
            if untracked { "--untracked-files=all" } else { "--untracked-files=no" },
            "--ignored=no",
            "--no-renames",
            "--ignore-submodules=dirty",
        ];
        let mut dirty: Paths =
            status_paths(&self.about("status", &options, paths, None)?).into_iter().collect();
        dirty.extend(self.hidden(paths)?);
        Ok(dirty)
    }

    /// What git was told not to look at. Most verbs put the file back all the same.
    pub fn hidden(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let listed = self.about("ls-files", &["-v", "-z", "--full-name"], paths, Some(":/"))?;
        let is_there = |name: &OsStr| self.root.join(name).symlink_metadata().is_ok();
        let hidden = listed.split(|byte| *byte == 0).filter_map(|line| match line {
            // `assume-unchanged` has a small letter.
            [tag, b' ', name @ ..] if tag.is_ascii_lowercase() => Some(OsStr::from_bytes(name)),
            // `skip-worktree`: in a sparse tree, that is most of the files, and they are not there.
            [b'S', b' ', name @ ..] => Some(OsStr::from_bytes(name)).filter(|name| is_there(name)),
            _ => None,
        });
        Ok(hidden.map(PathBuf::from).collect())
    }

    /// What is in the index.
    pub fn tracked(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        Ok(names(&self.about("ls-files", &["-z", "--full-name"], paths, Some(":/"))?).collect())
    }

    /// What is neither in the index nor ignored: below the folder where git runs, if no path is named.
    pub fn untracked(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let options = ["--others", "--exclude-standard", "-z", "--full-name"];
        Ok(clean_names(&self.about("ls-files", &options, paths, None)?))
    }

    /// What can be merged anew, since git remembers how it was.
    pub fn resolved(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let listed = self.about("ls-files", &["--resolve-undo", "-z", "--full-name"], paths, Some(":/"))?;
        let names =
            listed.split(|byte| *byte == 0).filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// Where files differ from this tree.
    pub fn against(&self, tree: &str, paths: &[OsString]) -> Result<Paths, GitError> {
        let options: Vec<_> = COMPARE.into_iter().chain([tree]).collect();
        Ok(names(&self.about("diff", &options, paths, None)?).collect())
    }

    /// Where files differ from the index; these are names and no patterns.
    pub fn against_index(&self, files: &[OsString]) -> Result<Paths, GitError> {
        let literal = ["--literal-pathspecs".into()];
        let options = COMPARE.into_iter().map(OsString::from).chain(["--".into()]);
        let mut question = self.question("diff", options.chain(files.iter().cloned()));
        question.pathspecs = &literal;
        Ok(names(&question.answer()?).chain(self.hidden(&[])?).collect())
    }

    /// Where two trees differ. Without one, all that the other has.
    pub fn between(&self, one: Option<&str>, other: Option<&str>) -> Result<Paths, GitError> {
        let listed = match (one, other) {
            (None, None) => return Ok(Paths::new()),
            (Some(one), Some(other)) => {
                self.question("diff", COMPARE.into_iter().chain([one, other, "--"])).answer()?
            }
            (Some(tree), None) | (None, Some(tree)) => {
                self.question("ls-tree", ["-r", "-z", "--name-only", "--full-tree", tree]).answer()?
            }
        };
        Ok(names(&listed).collect())
    }

    /// All files below these folders that anybody could miss.
    pub fn below(&self, folders: &[OsString]) -> Result<Paths, GitError> {
        let options = ["--cached", "--others", "--exclude-standard", "-z", "--full-name", "--"];
        let folders = folders.iter().map(|folder| {
            let mut pattern = OsString::from(":(top,literal)");
            pattern.push(folder);
            pattern
        });
        let question = self.question("ls-files", options.into_iter().map(OsString::from).chain(folders));
        Ok(clean_names(&question.answer()?))
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
        let options = ["--verify", "--quiet", "--end-of-options"].map(OsString::from);
        match self.question("rev-parse", options.into_iter().chain([name])).answer_if_any() {
            Ok(said) => Ok(said.map(|said| String::from_utf8_lossy(&said).trim().to_owned())),
            // Not a name at all.
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where two commits parted. More than one, if they met in between.
    pub fn bases(&self, one: &str, other: &str) -> Result<Vec<String>, GitError> {
        let said = self.question("merge-base", ["--all", one, other]).answer_if_any()?;
        Ok(lines(&said.unwrap_or_default()))
    }

    /// Branches of others that git may mean by a name that is not there.
    pub fn guessed(&self, word: &OsStr) -> Result<Vec<String>, GitError> {
        let mut pattern = OsString::from("--remotes=*/");
        pattern.push(word);
        match self.question("rev-parse", [pattern]).answer() {
            Err(GitError::Failed { .. }) => Ok(Vec::new()),
            said => Ok(lines(&said?)),
        }
    }
}

pub(super) fn lines(said: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(said).lines().map(str::to_owned).collect()
}

/// A repository inside this one is one entry, with a slash at its end.
fn clean_names(listed: &[u8]) -> Paths {
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)))).collect()
}
