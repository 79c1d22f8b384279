//! The guard: what the system supports, and a real canary.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use tenure_api::FilesOverview;
use tenure_host::coding_agent::CodingAgent;
use tenure_host::{git, kernel_limits};

use super::canary::{Canaries, CanaryHolder};
use super::check::Check;
use super::fake_agent::{CommandOutput, FakeAgent};
use super::invoke::describe_response;
use super::server::EnforcementMode;

const NAME: &str = "gate.canary";
/// The most that Yama may forbid: those above a process may look into it.
const MAX_PTRACE_SCOPE: u32 = 1;

/// What is written, and where: `$0`.
pub const WRITE_SCRIPT: &str = "echo canary > \"$0\"";
/// The same, looked at and taken away again.
const WRITE_AND_REMOVE_SCRIPT: &str = "echo canary > \"$0\" && test -s \"$0\" && rm \"$0\"";

/// What helps where the system refuses.
pub const ALLOW_SECCOMP_FIX: &str = "allow seccomp in the container";

/// What of the system the gate needs.
pub fn check_kernel_support(unwatchable: Option<&str>) -> [Check; 2] {
    let kernel = match (unwatchable, kernel_limits::has_seccomp_user_notification()) {
        (None, _) => Check::ok("gate.kernel", "calls can be watched"),
        (Some(_), Some(false)) => Check::gap(
            "gate.kernel",
            "seccomp has no user notification, so `tenure guard` and `tenure-bash` can run nothing",
            "use a kernel from Linux 5.5 on that has it turned on",
        ),
        (Some(why), _) => Check::gap(
            "gate.kernel",
            format!(
                "this system does not let calls be watched ({why}), so `tenure guard` and `tenure-bash` can run nothing"
            ),
            format!(
                "{ALLOW_SECCOMP_FIX} (docker: `--security-opt seccomp=unconfined`, or a profile that has the call `seccomp`)"
            ),
        ),
    };
    let scope = kernel_limits::ptrace_scope();
    let ptrace = if scope <= MAX_PTRACE_SCOPE || rustix::process::geteuid().is_root() {
        Check::ok("gate.ptrace", format!("ptrace_scope is {scope}"))
    } else {
        Check::gap(
            "gate.ptrace",
            format!(
                "ptrace_scope is {scope}: the guard may not look into what it watches, and refuses all changes"
            ),
            "sudo sysctl kernel.yama.ptrace_scope=1",
        )
    };
    [kernel, ptrace]
}

/// A guarded command is refused what another one has, and given what nobody has.
pub fn check_canary(canaries: &Canaries, mode: EnforcementMode) -> Check {
    let fix = "tenure guard -- sh -c 'echo it is guarded'";
    match run_canary(canaries, mode) {
        Ok(detail) => Check::ok(NAME, detail),
        Err(why) => Check::gap(NAME, why, fix),
    }
}

fn run_canary(canaries: &Canaries, mode: EnforcementMode) -> Result<&'static str, String> {
    let mut stand_in = FakeAgent::start(CodingAgent::Claude).map_err(|error| error.to_string())?;
    let held = canaries.next();
    let holder = CanaryHolder::acquire(canaries, &held)?;
    let result = guarded(&mut stand_in, WRITE_SCRIPT, &held)?;
    // Whoever is watched already is told by the guard above, and not where we listen.
    let has_own_stderr = !tenure_guard::is_guarded();
    verify_denied(&result, &held, Some(&*holder.session).filter(|_| has_own_stderr), mode)?;
    holder.end_session()?;
    let free = canaries.next();
    let output = guarded(&mut stand_in, WRITE_AND_REMOVE_SCRIPT, &free)?;
    if output.code != Some(0) {
        return Err(format!(
            "a file that nobody has cannot be written under the guard: {}",
            describe_response(&output)
        ));
    }
    Ok(match (has_own_stderr, mode) {
        (false, _) => "we are inside a guard, and it refuses what another one has",
        (true, EnforcementMode::Deny) => {
            "what another one has is refused, and says by whom; what is free is written"
        }
        (true, EnforcementMode::Warn) => "it warns of what another one has, as the server's mode is",
    })
}

fn guarded(stand_in: &mut FakeAgent, script: &str, path: &Path) -> Result<CommandOutput, String> {
    let path = path.to_str().ok_or("the path of the working tree is not UTF-8")?;
    stand_in.run("/proc/self/exe", &["guard", "--", "sh", "-c", script, path], "")
}

/// Whether a write was refused as it should be: with EBUSY, nothing written, and the holder named. Where the server only
/// warns, naming the holder is all.
pub fn verify_denied(
    output: &CommandOutput,
    path: &Path,
    holder: Option<&str>,
    mode: EnforcementMode,
) -> Result<(), String> {
    let is_written = path.exists();
    if is_written {
        // It is ours, and was not meant to be.
        let _ = std::fs::remove_file(path);
    }
    let names = holder.is_none_or(|holder| output.errors.contains(holder));
    match (output.code, is_written, names) {
        (Some(0), _, true) | (_, true, true) if mode == EnforcementMode::Warn => Ok(()),
        (Some(0), ..) | (_, true, _) => {
            Err("a command wrote a file that another session has: nothing is refused".to_owned())
        }
        _ if !output.errors.to_ascii_lowercase().contains("busy") => Err(format!(
            "the write fails, but not because another one has the file: {}",
            describe_response(output)
        )),
        (_, _, false) => Err(format!(
            "the write fails, and nobody is told who has the file: {}",
            describe_response(output)
        )),
        _ => Ok(()),
    }
}

/// No more folders are counted: whoever has that many has been told enough.
const MAX_COUNTED_FOLDERS: u64 = 2_000_000;

/// The server takes no more than this part of all watches for one tree: others want to watch too.
const WATCH_LIMIT_SHARE: u64 = 8;

/// What the server says about how it watches the tree that we are in. One that it is still walking through is no gap.
pub fn check_watch_coverage(files: &FilesOverview, root: &Path) -> Vec<Check> {
    let ours = files.audit.iter().filter(|tree| tree.root == root.to_string_lossy());
    let gaps = ours.filter(|tree| tree.unwatched > 0 || tree.missed > 0);
    gaps.map(|tree| {
        let what = format!(
            "in {}, {} folders are not watched and {} times something was missed: changes there may not be seen",
            tree.root, tree.unwatched, tree.missed
        );
        Check::gap("audit.tree", what, "tenure files --audit".to_owned())
    })
    .collect()
}

/// Whether as many folders can be watched as the tree has.
pub fn check_watch_limit(root: &Path) -> Check {
    let name = "audit.watches";
    let Some(limit) = kernel_limits::max_inotify_watches().map(|max| max / WATCH_LIMIT_SHARE) else {
        return Check::unknown(name, "the system does not say how many folders can be watched");
    };
    let count = folders(root);
    if count < limit {
        return Check::ok(name, format!("{count} folders, and {limit} can be watched"));
    }
    let what = format!(
        "the tree has {count} folders, and {limit} can be watched: changes in the others are not seen"
    );
    Check::gap(
        name,
        what,
        format!("sudo sysctl fs.inotify.max_user_watches={}", count.saturating_mul(2 * WATCH_LIMIT_SHARE)),
    )
}

/// How many folders a tree has that are neither git's own nor ignored.
fn folders(root: &Path) -> u64 {
    let mut count = 1;
    let mut level = vec![PathBuf::new()];
    while !level.is_empty() && count < MAX_COUNTED_FOLDERS {
        let mut below: Vec<PathBuf> = level.iter().flat_map(|folder| inside(root, folder)).collect();
        // So many at once as fit on a command line.
        let ignored: HashSet<PathBuf> =
            below.chunks(500).flat_map(|part| git::ignored_paths(root, part).unwrap_or_default()).collect();
        below.retain(|folder| !ignored.contains(folder));
        count += u64::try_from(below.len()).unwrap_or(MAX_COUNTED_FOLDERS);
        level = below;
    }
    count
}

/// The folders in a folder, below the root. Links are none.
fn inside(root: &Path, folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let folders = entries.filter(is_folder).filter(|entry| entry.file_name() != ".git");
    folders.map(|entry| folder.join(entry.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use tenure_api::AuditedWorktree;

    use super::*;

    #[test]
    fn denial_requires_an_unwritten_file_and_a_named_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("canary");
        let output = |code, errors: &str| CommandOutput {
            code: Some(code),
            output: String::new(),
            errors: errors.to_owned(),
        };
        let judge = |output: &CommandOutput, mode| verify_denied(output, &path, Some("s1"), mode);
        assert_eq!(
            judge(&output(2, "tenure: s1 has it\nsh: Device or resource busy"), EnforcementMode::Deny),
            Ok(())
        );
        assert!(
            judge(&output(2, "sh: Device or resource busy"), EnforcementMode::Deny)
                .unwrap_err()
                .contains("nobody is told")
        );
        assert!(
            judge(&output(69, "tenure: nothing was run"), EnforcementMode::Deny)
                .unwrap_err()
                .contains("nothing was run")
        );
        assert!(judge(&output(0, ""), EnforcementMode::Deny).unwrap_err().contains("nothing is refused"));
        std::fs::write(&path, "x").unwrap();
        assert!(
            judge(&output(2, "s1 busy"), EnforcementMode::Deny).is_err() && !path.exists(),
            "what was written is taken away"
        );
        assert_eq!(judge(&output(0, "s1 edits it too"), EnforcementMode::Warn), Ok(()));
        assert!(judge(&output(0, ""), EnforcementMode::Warn).is_err(), "a warning has to be heard");
    }

    #[test]
    fn only_the_current_work_tree_is_checked() {
        let tree = |root: &str, missed| AuditedWorktree {
            root: root.to_owned(),
            folders: 1,
            unwatched: 0,
            why: None,
            missed,
        };
        let audit = vec![tree("/a", 1), tree("/b", 0)];
        let files = FilesOverview { files: Vec::new(), sessions: Vec::new(), audit, standing: None };
        assert_eq!(check_watch_coverage(&files, Path::new("/b")), []);
        let found = check_watch_coverage(&files, Path::new("/a"));
        assert!(matches!(found.as_slice(), [check] if check.is_gap()), "{found:?}");
    }

    #[test]
    fn folder_count_excludes_the_git_directory_and_symlinks() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["a/b/c", "d", ".git/objects/aa"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink(root, root.join("d/link")).unwrap();
        assert_eq!(folders(root), 5, "itself, a, b, c, d");
    }
}
