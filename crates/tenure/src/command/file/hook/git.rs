//! What git says through its hooks: what is committed, and what is about to be.
//!
//! Git goes on whatever happens here: nothing is stopped, no server is started, nothing is written.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tenure_api::{CommitReport, CommitResult, StagedFilesRequest};
use tenure_client::Client;
use tenure_host::git::{self, GitError};
use tenure_host::paths::{WorkTree, work_tree_of};
use tenure_host::stderr::print_stderr;
use tokio::time::timeout;

use crate::autostart::{LocalServer, is_listening};
use crate::config::variable;
use crate::duration::format_short;

/// How long git is held up for an answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many paths go into one request: the server takes no more.
const MAX_PATHS_PER_REQUEST: usize = 10_000;
/// How long their names may be together. Each may stand there twice, and be written longer than it is.
const MAX_PATH_BYTES_PER_REQUEST: usize = 512 << 10;
/// The most that is read of what git says: one line for each reference.
const MAX_INPUT_BYTES: u64 = 16 << 20;
/// How many files are named in a warning.
const MAX_LISTED_FILES: usize = 20;

/// Where agents say to the commands that they run which session it is.
const SESSION_VARIABLES: [&str; 6] = [
    "TENURE_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "GEMINI_SESSION_ID",
    "OPENCODE_SESSION_ID",
];

/// Runs the hook that git names. Its exit code is 0 in any case.
pub fn run(arguments: &[OsString]) -> ExitCode {
    // Even our own mistakes are not git's.
    let done = catch_unwind(|| hook(arguments));
    match done {
        Ok(Ok(text)) if text.is_empty() => {}
        Ok(Ok(text)) => print_stderr(&text),
        Ok(Err(error)) => print_stderr(&format!("tenure: this commit is not known to Tenure: {error}\n")),
        Err(_) => {}
    }
    ExitCode::SUCCESS
}

/// What to say on standard error.
fn hook(arguments: &[OsString]) -> Result<String, GitError> {
    let name = arguments.first().and_then(|name| name.to_str()).unwrap_or_default();
    let steps = match name {
        "pre-commit" | "post-commit" => Vec::new(),
        "reference-transaction" if arguments.get(1).is_some_and(|phase| phase == "committed") => {
            git::branch_updates(&standard_input())
        }
        "reference-transaction" => return Ok(String::new()),
        _ => return Ok(format!("tenure: there is no git hook called `{name}` here\n")),
    };
    let Some((tree, client)) = connect() else { return Ok(String::new()) };
    let root = &tree.root;
    let warnings = match name {
        "pre-commit" => staged(root, &client)?,
        "post-commit" => committed(root, git::committed_paths(root, None, "HEAD")?, &client)?,
        _ => {
            let branch = branch_of(&tree);
            let mut paths = Vec::new();
            for step in steps.iter().filter(|step| Some(&*step.reference) == branch.as_deref()) {
                if let Some(new) = &step.new {
                    paths.extend(git::committed_paths(root, step.old.as_deref(), new)?);
                }
            }
            committed(root, paths, &client)?
        }
    };
    // Post-commit says the same once more, when the index is written.
    let says = name != "reference-transaction";
    Ok(warnings.filter(|_| says).map(|result| format_warnings(&result, name)).unwrap_or_default())
}

/// The working tree that git works in, and whoever listens. Nothing to do where either is missing.
fn connect() -> Option<(WorkTree, Client)> {
    let local = LocalServer::find().ok()?;
    // The cheapest question first: most machines have no server.
    if !is_listening(&local.socket) {
        return None;
    }
    let tree = work_tree_of(&std::env::current_dir().ok()?).ok()??;
    Some((tree, local.client().ok()?))
}

fn staged(root: &Path, client: &Client) -> Result<Option<CommitResult>, GitError> {
    let paths = texts(&git::staged_paths(root)?);
    let Some(root) = root.to_str() else { return Ok(None) };
    let mut all = None;
    for part in parts(&paths, String::len) {
        let staged = StagedFilesRequest { root: root.to_owned(), paths: part.to_vec(), session: session() };
        // Who gives no answer to one part is not waited for with the next.
        let Some(result) = block_on_with_timeout(async { client.check_staged_files(&staged).await.ok() })
        else {
            break;
        };
        join(&mut all, result);
    }
    Ok(all)
}

/// Only what is clean now: the rest is still being worked on.
fn committed(root: &Path, paths: Vec<PathBuf>, client: &Client) -> Result<Option<CommitResult>, GitError> {
    let Some(root_text) = root.to_str() else { return Ok(None) };
    let mut all = None;
    for part in parts(&paths, |path| path.as_os_str().len()) {
        let dirty = texts(&git::dirty_paths(root, part)?);
        let commit =
            CommitReport { root: root_text.to_owned(), paths: texts(part), dirty, session: session() };
        let Some(result) = block_on_with_timeout(async { client.report_commit(&commit).await.ok() }) else {
            break;
        };
        join(&mut all, result);
    }
    Ok(all)
}

fn parts<T>(mut paths: &[T], length: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut parts = Vec::new();
    while !paths.is_empty() {
        let mut bytes = 0;
        let fits = paths.iter().take(MAX_PATHS_PER_REQUEST).take_while(|path| {
            bytes += length(path);
            bytes <= MAX_PATH_BYTES_PER_REQUEST
        });
        // One that is longer than all may be together goes alone.
        let (part, rest) = paths.split_at(fits.count().max(1));
        parts.push(part);
        paths = rest;
    }
    parts
}

fn block_on_with_timeout<T>(request: impl Future<Output = Option<T>>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async { timeout(RESPONSE_TIMEOUT, request).await.ok()? })
}

fn join(all: &mut Option<CommitResult>, part: CommitResult) {
    match all {
        Some(all) => {
            all.released.extend(part.released);
            all.foreign.extend(part.foreign);
            all.left_dirty.extend(part.left_dirty);
        }
        None => *all = Some(part),
    }
}

/// What HEAD is: a branch, or itself where it is on none.
fn branch_of(tree: &WorkTree) -> Option<String> {
    let text = std::fs::read_to_string(tree.git_dir.join("HEAD")).ok()?;
    let branch = text.trim_end().strip_prefix("ref: ").map(|name| name.trim().to_owned());
    Some(branch.unwrap_or_else(|| "HEAD".to_owned()))
}

/// Which session the committing process says it is of.
fn session() -> Option<String> {
    let named = SESSION_VARIABLES.iter().filter_map(|name| variable(name)?.into_string().ok());
    let mut fit = named.filter(|text| (1..=128).contains(&text.len()) && !text.contains(char::is_control));
    fit.next()
}

fn standard_input() -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = io::stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut bytes);
    bytes
}

/// Names that are not text were never leased: no agent can say them.
fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().filter_map(|path| path.to_str().map(str::to_owned)).collect()
}

/// What the person, or the model, reads beside git's own words.
fn format_warnings(result: &CommitResult, name: &str) -> String {
    let is_committed = name == "post-commit";
    let foreign = result.foreign.iter().map(|held| {
        let (verb, advice) = match is_committed {
            true => ("was committed", "tell that one"),
            false => ("is staged", "take it out with `git restore --staged`, unless it is yours to commit"),
        };
        format!(
            "tenure: warning: `{}` {verb}, but {} (session {}, pid {}) is editing it; {advice}",
            held.path, held.owner.agent, held.owner.session, held.owner.pid
        )
    });
    let uncommitted = result.left_dirty.iter().filter(|_| !is_committed).map(|file| {
        format!(
            "tenure: warning: `{}` has changes that {} (session {}) left {} ago without a commit; they go into this one",
            file.path,
            file.owner.agent,
            file.owner.session,
            format_short(file.left_ms)
        )
    });
    let lines: Vec<_> = foreign.chain(uncommitted).map(|line| line.replace(char::is_control, " ")).collect();
    let mut text: String = lines.iter().take(MAX_LISTED_FILES).map(|line| format!("{line}\n")).collect();
    if lines.len() > MAX_LISTED_FILES {
        text.push_str(&format!("tenure: warning: and {} more\n", lines.len() - MAX_LISTED_FILES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_into_requests_within_the_servers_limits() {
        let many = vec!["x".to_owned(); 2 * MAX_PATHS_PER_REQUEST + 1];
        let sizes: Vec<_> = parts(&many, String::len).iter().map(|part| part.len()).collect();
        assert_eq!(sizes, [MAX_PATHS_PER_REQUEST, MAX_PATHS_PER_REQUEST, 1]);
        let long = vec!["x".repeat(MAX_PATH_BYTES_PER_REQUEST / 2); 5];
        let sizes: Vec<_> = parts(&long, String::len).iter().map(|part| part.len()).collect();
        assert_eq!(sizes, [2, 2, 1]);
        assert_eq!(parts(&["x".repeat(MAX_PATH_BYTES_PER_REQUEST + 1)], String::len).len(), 1);
        assert!(parts(&[], String::len).is_empty());
    }
}
