//! Any command line in any small repository: whatever file it changes or loses was named before.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::SystemTime;

use tenure_host::git::predict_impact;

use crate::git::support::{Repository, contents, file_stats, git_command, lost_paths, rewritten_paths};
use crate::paths::random_tree::TestRng;

/// Among them: a file that is a folder elsewhere, names that look like options and patterns, what git ignores.
const NAMES: [&[u8]; 16] = [
    b"a.rs",
    b"b.txt",
    b"d/a.rs",
    b"d/b.txt",
    b"d/e/a.rs",
    b"d/e/c",
    b"m/a.rs",
    b"m/new",
    b"k",
    b"k/deep",
    b"two words",
    b"-dash",
    b"[x]*",
    b"\xff\xfe",
    b"gen/out",
    b"x.log",
];

const REVISIONS: [&str; 12] =
    ["main", "side", "HEAD", "HEAD~1", "side~1", "main~1", "-", "v1", "other", "main...side", "stash", "far"];

const PATHS: [&str; 13] =
    [".", "*.rs", ":/", ":(top)d", "d", "..", "../a.rs", "a.rs", ":!d", "k", ":(icase)A.RS", "e", "-dash"];

/// `R` is a revision, `P` one or two paths, `N` a name, `D` what differs between two branches, `M` the same as mails.
const LINES: &[&str] = &[
    "stash",
    "stash -u",
    "stash -a",
    "stash push -k",
    "stash push -S",
    "stash push P",
    "stash push -u -- P",
    "stash pop",
    "stash apply --index",
    "stash apply 1",
    "stash branch fresh",
    "stash pop",
    "stash apply",
    "reset --hard",
    "reset --har R",
    "reset --merge R",
    "reset --keep R",
    "reset --mixed R",
    "reset R -- P",
    "checkout R",
    "checkout R",
    "checkout -f R",
    "checkout -m R",
    "checkout -f",
    "checkout -- P",
    "checkout P",
    "checkout R -- P",
    "checkout R P",
    "checkout --no-overlay R -- P",
    "checkout --ours -- P",
    "checkout -m -- P",
    "checkout -B fresh R",
    "checkout --orphan lone R",
    "checkout -b once",
    "switch R",
    "switch -d R",
    "switch -f R",
    "switch --discard-changes R",
    "switch -m R",
    "switch -C fresh R",
    "switch --orphan empty",
    "restore P",
    "restore -s R P",
    "restore -SW -s R -- P",
    "restore --staged P",
    "restore --merge P",
    "clean -f",
    "clean -fd",
    "clean -fdx",
    "clean -ffd -- P",
    "clean -f P",
    "clean -fdX",
    "rm -rf P",
    "rm -r --cached P",
    "merge R",
    "merge R",
    "merge --no-commit --no-ff R",
    "merge --squash R",
    "merge --autostash R",
    "merge --abort",
    "cherry-pick R",
    "cherry-pick -n R",
    "cherry-pick main..side",
    "cherry-pick --abort",
    "cherry-pick --skip",
    "revert --no-edit R",
    "revert --no-edit R~1..R",
    "rebase R",
    "rebase --autostash --onto R R",
    "rebase --abort",
    "rebase --skip",
    "read-tree -u -m R",
    "read-tree -u --reset R",
    "checkout-index -fa",
    "checkout-index -f N",
    "reset --merge",
    "reset --hard :/side",
    "checkout :/main",
    "cherry-pick --continue",
    "revert --abort",
    "revert --skip",
    "revert --continue",
    "read-tree -u -m HEAD R",
    "read-tree -u -m R R",
    "read-tree -u -m main~1 HEAD R",
    "restore -s R:d .",
    "clean",
    "clean -fx -e *.rs",
    "clean -fd -e d",
    "clean -fX -e d",
    "-c clean.requireForce=no clean -d",
    "-c merge.autostash=yes merge R",
    "-c core.excludesFile=/dev/null clean -fdx",
    "mv N N",
    "mv -f N N",
    "mv -k P d",
    "mv -f N N m",
    "apply D",
    "apply --index D",
    "apply -R D",
    "apply -3 D",
    "apply --reject D",
    "apply --directory=m D",
    "am M",
    "am -3 M",
    "am --abort",
    "am --skip",
];

fn path(name: &[u8]) -> PathBuf {
    OsStr::from_bytes(name).into()
}

struct RandomRepository {
    repository: Repository,
    random: TestRng,
}

impl RandomRepository {
    fn new(seed: u64) -> Self {
        let mut world = Self { repository: Repository::new(), random: TestRng(seed) };
        world.repository.write(".gitignore", "gen/\n*.log\n");
        for _ in 0..10 {
            world.write();
        }
        world.commit("main");
        world.git(&["branch", "side"]);
        world.git(&["tag", "v1"]);
        // A branch that only another repository has.
        world.git(&["update-ref", "refs/remotes/origin/far", "HEAD"]);
        for branch in ["main", "side", "main", "side", "other"] {
            world.git(&["checkout", "--quiet", "-f", branch]);
            world.git(&["checkout", "--quiet", "-f", "-b", branch]);
            for _ in 0..world.random.below(5) {
                world.mutate();
            }
            world.commit(branch);
        }
        world.git(&["update-ref", "refs/remotes/origin/far", "side"]);
        for _ in 0..2 {
            world.mutate();
            world.mutate();
            world.git(&["stash", "-u"]);
        }
        for (name, arguments) in [
            ("differences", &["diff", "-M", "--binary", "main", "side"][..]),
            ("mails", &["format-patch", "--quiet", "--stdout", "main..side"]),
        ] {
            let output = git_command(&world.repository.root).args(arguments).output().unwrap();
            fs::write(world.repository.sibling_path(name), output.stdout).unwrap();
        }
        let branch = *world.random.pick(&["main", "side", "other"]);
        world.git(&["checkout", "--quiet", "-f", branch]);
        world
    }

    /// May fail: not everything can be done everywhere.
    fn git<A: AsRef<OsStr>>(&self, arguments: &[A]) {
        git_command(&self.repository.root).args(arguments).output().unwrap();
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    fn name(&mut self) -> PathBuf {
        path(NAMES[self.random.below(NAMES.len())])
    }

    /// Some lines, most of which others have too: so that files are merged, and taken for renamed.
    fn write(&mut self) {
        let name = self.name();
        let file = self.repository.root.join(&name);
        for above in file.ancestors().skip(1).take_while(|above| *above != self.repository.root) {
            let _ = fs::remove_file(above);
        }
        let _ = fs::remove_dir_all(&file);
        let lines = (0..8).map(|line| match self.random.below(9) {
            0 => format!("{}\n", self.random.below(3)),
            _ => format!("{name:?} line {line}\n"),
        });
        let content: String = lines.collect();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn mutate(&mut self) {
        let root = self.repository.root.clone();
        let (one, other, what) = (self.name(), self.name(), self.random.below(13));
        let from_git = |verb: &[&str], names: &[&PathBuf]| {
            let names = names.iter().map(|name| name.as_os_str());
            self.git(&verb.iter().map(OsStr::new).chain([OsStr::new("--")]).chain(names).collect::<Vec<_>>());
        };
        match what {
            0 => drop(fs::remove_file(root.join(one))),
            1 => from_git(&["add"], &[&one]),
            2 => from_git(&["rm", "-r", "--cached", "--quiet"], &[&one]),
            3 => from_git(&["mv", "-f"], &[&one, &other]),
            4 => drop(fs::rename(root.join(one), root.join(other))),
            5 => from_git(&["add", "--intent-to-add"], &[&one]),
            6 => from_git(&["mv", "-f"], &[&"d".into(), &"m".into()]),
            7 => {
                from_git(&["update-index", "--assume-unchanged"], &[&one]);
                self.write();
            }
            8 => {
                let _ = fs::remove_file(root.join(&one));
                let _ = std::os::unix::fs::symlink(other, root.join(one));
            }
            9 => {
                if let Ok(file) = fs::File::options().append(true).open(root.join(one)) {
                    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
                }
            }
            _ => self.write(),
        }
    }

    /// A command line, with the folder in which it runs.
    fn line(&mut self) -> (PathBuf, Vec<OsString>) {
        let line = *self.random.pick(LINES);
        let mut words = vec![OsString::from("git")];
        let folder = ["", "", "d", "d/e", "m"][self.random.below(5)];
        let folder = if self.repository.root.join(folder).is_dir() { folder } else { "" };
        let is_from_above = self.random.below(3) == 0;
        if is_from_above {
            words.extend(["-C".into(), if folder.is_empty() { "." } else { folder }.into()]);
        }
        for word in line.split(' ') {
            match word {
                "P" => {
                    for _ in 0..=self.random.below(2) {
                        words.push((*self.random.pick(&PATHS)).into());
                    }
                }
                "N" => words.push(self.name().into()),
                "D" => words.push(self.repository.sibling_path("differences").into()),
                "M" => words.push(self.repository.sibling_path("mails").into()),
                "R:d" => words.push(format!("{}:d", self.random.pick(&REVISIONS)).into()),
                "R" => words.push((*self.random.pick(&REVISIONS)).into()),
                "R~1..R" => {
                    let revision = *self.random.pick(&REVISIONS);
                    words.push(format!("{revision}~1..{revision}").into());
                }
                word => words.push(word.into()),
            }
        }
        let folder = if is_from_above { "" } else { folder };
        (self.repository.root.join(folder), words)
    }

    fn ignored(&self) -> BTreeSet<PathBuf> {
        let options = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z"];
        let output = git_command(&self.repository.root).args(options).output().unwrap();
        output.stdout.split(|byte| *byte == 0).map(path).collect()
    }

    /// Whether the command changed anything. Whatever it changed was named.
    fn step(&mut self) -> bool {
        let (folder, words) = self.line();
        let ignored = self.ignored();
        let before = contents(&self.repository.root);
        let stamps_before = file_stats(&self.repository.root);
        let named = predict_impact(&words, &folder, &[]).unwrap();
        let again = ["git", "read-tree", "--reset", "-u", "HEAD"].map(OsString::from);
        let named_again = predict_impact(&again, &self.repository.root, &[]).unwrap();
        assert_eq!(file_stats(&self.repository.root), stamps_before, "asking changes nothing");
        let status = git_command(&self.repository.root).args(["status", "--short"]).output().unwrap();
        let mut run = git_command(&folder);
        run.env("GIT_EDITOR", "true").env("GIT_SEQUENCE_EDITOR", "true");
        let trace = self.repository.sibling_path("trace");
        let _ = fs::remove_file(&trace);
        run.env("GIT_TRACE", &trace);
        let output = run.args(&words[1..]).output().unwrap();
        let mut lost = lost_paths(&before, &contents(&self.repository.root));
        // Also what only looks the same: git would be refused there in the middle.
        lost.extend(rewritten_paths(&stamps_before, &self.repository.root));
        let mut paths = named.map(|named| named.paths).unwrap_or_default();
        assert!(paths.is_sorted_by(|one, other| one < other), "{paths:?}");
        // A merge that fails puts back what was dirty, by another process of git, which is asked about by itself.
        let trace = fs::read(trace).unwrap();
        if String::from_utf8_lossy(&trace).contains("run_command: git read-tree -v --reset -u") {
            paths.extend(named_again.into_iter().flat_map(|named| named.paths));
        }
        let missed: Vec<_> =
            lost.iter().filter(|path| !paths.contains(path) && !ignored.contains(*path)).collect();
        assert!(
            missed.is_empty(),
            "{words:?} in {folder:?} lost {missed:?}\nnamed: {paths:?}\n{}{}",
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&status.stdout),
        );
        !lost.is_empty()
    }
}

fn law(seeds: std::ops::Range<u64>) {
    let mut changes = 0;
    for seed in seeds.clone() {
        let mut world = RandomRepository::new(seed);
        for step in 0..8 {
            for _ in 0..world.random.below(4) {
                world.mutate();
            }
            eprintln!("seed {seed}, step {step}");
            changes += u64::from(world.step());
        }
    }
    let worlds = seeds.end - seeds.start;
    assert!(changes > worlds, "{changes} changes in {worlds} repositories show little");
}

#[test]
fn every_file_that_a_random_command_changes_was_predicted() {
    law(1..13);
}

#[test]
fn proof_every_file_that_a_random_command_changes_was_predicted() {
    law(1000..1300);
}
