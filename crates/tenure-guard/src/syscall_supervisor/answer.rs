//! Answers the calls that need a lease or another request to the server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use tenure_host::process::process_of_thread;

use super::acquire::{acquire_all, files_held_below, ignored_files_held};
use super::attribution::CallOwner;
use super::listener_loop::PendingCall;
use super::path_classifier::LeaseRequirement;
use super::repository_lifecycle::linked_worktrees;
use super::syscall_policy::{FileChange, FileChanges, SyscallVerdict};
use super::{SupervisorState, folder_rename, process_tree};
use crate::{RequestError, SERVER_STARTED_ERRNO};

pub async fn answer(watched: Arc<SupervisorState>, pending: PendingCall) {
    let PendingCall { call, verdict: judgement } = pending;
    let Some(process) = process_of_thread(call.thread) else {
        // It is gone; or we cannot look, and then it must not wait for ever.
        return watched.listener.fail(call.id, Errno::BUSY);
    };
    // As many at once as the server takes in one go; the others wait their turn.
    let turn = watched.call_permits.acquire().await;
    let owner = watched.attribution.owner_of(call.thread);
    let answer = match judgement {
        SyscallVerdict::Allow => Ok(()),
        SyscallVerdict::Fail(error) => Err(CallDenial { error, message: None }),
        SyscallVerdict::Unreadable(error) => Err(CallDenial { error, message: Some(UNREADABLE.to_owned()) }),
        SyscallVerdict::Unfollowed(error) => Err(CallDenial { error, message: Some(UNFOLLOWED.to_owned()) }),
        SyscallVerdict::AcquireFirst(changes) => acquire_for_call(&watched, owner, process, changes).await,
        SyscallVerdict::Git(program) => {
            super::git::acquire_for_git(&watched, owner, (call.thread, process), program).await
        }
        SyscallVerdict::StartServer => {
            let started = match &watched.client {
                Ok(questions) => questions.start_server().await.map_err(|error| match error {
                    RequestError::NoServer { why, fix } => {
                        format!("no server could be started: {why}. The person can run `{fix}`.")
                    }
                    RequestError::Rejected(detail) => detail,
                }),
                Err(why) => Err(why.clone()),
            };
            // The call fails in any case: what is said is why.
            Err(CallDenial { error: SERVER_STARTED_ERRNO, message: started.err() })
        }
    };
    // Whoever does not read what is said holds up nobody else.
    drop(turn);
    match answer {
        Ok(()) => watched.listener.allow(call.id),
        Err(CallDenial { error, message: why }) => {
            if let Some(why) = why {
                watched.report(process, why).await;
            }
            watched.listener.fail(call.id, error);
        }
    }
}

#[derive(Debug)]
pub struct CallDenial {
    pub error: Errno,
    /// What is said on standard error.
    pub message: Option<String>,
}

impl CallDenial {
    /// Somebody else has it, or nobody knows.
    pub fn busy(why: String) -> Self {
        Self { error: Errno::BUSY, message: Some(why) }
    }

    /// The same for a change that would end a repository, or begin one around files.
    fn of_a_repository(self, folder: &Path) -> Self {
        let name = folder.display().to_string().replace(char::is_control, " ");
        let why = self.message.map(|why| {
            format!("the repository in {name} stays as it is: without it, what others have there would be nobody's. {why}")
        });
        Self { message: why, ..self }
    }
}

/// Gets everything that a call needs, or says why not.
pub async fn acquire_for_call(
    watched: &Arc<SupervisorState>,
    owner: CallOwner,
    process: u32,
    wants: FileChanges,
) -> Result<(), CallDenial> {
    let own = watched.clone();
    let turned = wants.changed_repositories.clone();
    let around: Vec<PathBuf> =
        turned.iter().chain(wants.moved.iter().flat_map(|(from, to)| [from, to])).cloned().collect();
    let looked = tokio::task::spawn_blocking(move || {
        let FileChanges { mut files, moved, .. } = wants;
        for (from, to) in &moved {
            files.extend(folder_rename::changes_of_rename(&own.scope, from, to)?);
        }
        load_ignored(&own, &files);
        let (mut leased, mut ignored): (_, BTreeMap<PathBuf, Vec<FileChange>>) =
            (Vec::new(), BTreeMap::new());
        for file in files {
            match own.scope.lease_requirement(&file.path, file.change, false) {
                LeaseRequirement::NotRequired => {}
                LeaseRequirement::Ignored(tree) => ignored.entry(tree.root.clone()).or_default().push(file),
                LeaseRequirement::Required | LeaseRequirement::Unknown(_) => leased.push(file),
            }
        }
        Ok((leased, ignored))
    });
    let (mut files, ignored) =
        looked.await.unwrap_or_else(|_| Err(CallDenial::busy(INTERNAL_ERROR.to_owned())))?;
    // No lease is taken on what git ignores. But a file that a session holds stays its own when git begins to ignore it.
    for (workspace_root, ignored) in ignored {
        files.extend(ignored_files_held(watched, &workspace_root, ignored).await?);
    }
    // Also in repositories below, in what git ignores there, and in working trees elsewhere that need this repository.
    let elsewhere: Vec<PathBuf> = turned.iter().flat_map(|folder| linked_worktrees(folder)).collect();
    for folder in around.iter().chain(&elsewhere) {
        files.extend(
            files_held_below(watched, folder).await?.into_iter().map(FileChange::without_content_change),
        );
    }
    let acquired = acquire_all(watched, owner, process, files).await;
    let Some(folder) = turned.first() else { return acquired };
    acquired.map_err(|refused| refused.of_a_repository(folder))?;
    turned.iter().for_each(|folder| watched.scope.mark_repository_uncontended(owner, folder));
    Ok(())
}

const UNREADABLE: &str = "a call failed because nobody can see what it would change: the program hides its memory, as those do that \
                          keep secrets (gpg-agent, ssh-agent). Start it before, outside of the guard.";
const UNFOLLOWED: &str = "a call failed because a link leads where only the program itself can follow, through /dev/stdout, /dev/fd or \
                          /proc/self, or through several links to nothing. Name the file or /dev/stdout itself.";
/// What is said where nobody knows better.
pub const INTERNAL_ERROR: &str = "nothing was changed: there is a mistake in Tenure itself. Try once more; if it says the same, tell the \
                       person.";

/// Finds out which of these git ignores, where that is not known.
fn load_ignored(watched: &SupervisorState, files: &[FileChange]) {
    let mut unknown: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for file in files {
        if let LeaseRequirement::Unknown(tree) = &file.requirement {
            unknown.entry(&tree.root).or_default().push(&file.path);
        }
    }
    for (root, paths) in unknown {
        process_tree::without_concurrent_reaping(|| watched.scope.load_ignored(root, paths.into_iter()));
    }
}
