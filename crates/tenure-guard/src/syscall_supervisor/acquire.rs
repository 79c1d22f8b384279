//! Gets leases from the server, and says what follows from its answers.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_api::{FileVerdict, FileVerdictKind, GrantGeneration};
use tenure_client::boot_microseconds as now;
use tenure_hooks::messages;
use tenure_host::paths::fold_case;

use super::answer::CallDenial;
use super::attribution::CallOwner;
use super::requests::acquire_request;
use super::syscall_policy::{FileChange, utf8_path};
use super::{SupervisorState, change_time};
use crate::RequestError;
use crate::syscall_effects::PathChange;

/// The most files in one question. The server takes twice as many.
const MAX_FILES_PER_REQUEST: usize = 500;

/// Gets all of these, or none.
pub async fn acquire_all(
    watched: &Arc<SupervisorState>,
    owner: CallOwner,
    process: u32,
    mut files: Vec<FileChange>,
) -> Result<(), CallDenial> {
    if files.len() > MAX_FILES_PER_REQUEST {
        // What somebody has comes first: if that is refused, nothing was got that would be kept from others.
        let held: HashSet<PathBuf> = files_held_below(watched, Path::new("/")).await?.into_iter().collect();
        files.sort_by_key(|file| !held.contains(&file.path));
    }
    for part in files.chunks(MAX_FILES_PER_REQUEST) {
        acquire(watched, owner, process, part).await?;
    }
    Ok(())
}

/// What anybody has in this folder, at any depth.
pub async fn files_held_below(watched: &SupervisorState, folder: &Path) -> Result<Vec<PathBuf>, CallDenial> {
    Ok(look_below(watched, folder).await?.0)
}

/// Which of these files of a tree that git ignores a session holds. The answer is kept as long as it can be relied on.
pub async fn ignored_files_held(
    watched: &SupervisorState,
    root: &Path,
    ignored: Vec<FileChange>,
) -> Result<Vec<FileChange>, CallDenial> {
    let (held, standing) = look_below(watched, root).await?;
    if let Some(standing) = standing {
        let mut granted = watched.grants.lock();
        granted.add_held(root.to_path_buf(), &held, &standing);
    }
    let held: HashSet<_> = held.iter().map(|path| fold_case(path.as_os_str())).collect();
    Ok(ignored.into_iter().filter(|file| held.contains(&fold_case(file.path.as_os_str()))).collect())
}

async fn look_below(
    watched: &SupervisorState,
    folder: &Path,
) -> Result<(Vec<PathBuf>, Option<GrantGeneration>), CallDenial> {
    // What cannot be said is nobody's: such names are not leased.
    let Ok(folder) = utf8_path(folder) else { return Ok((Vec::new(), None)) };
    let questions = watched.client.as_ref().map_err(|why| CallDenial::busy(why.clone()))?;
    let below = questions.files_below(&folder).await.map_err(deny_unavailable)?;
    let files = below.files.into_iter();
    let paths = files.filter_map(|file| Some(PathBuf::from(file.root?).join(file.path)));
    // A name that is a folder by now is no file any more.
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| about.is_dir());
    Ok((paths.filter(|path| !is_folder(path)).collect(), below.standing))
}

async fn acquire(
    watched: &Arc<SupervisorState>,
    owner: CallOwner,
    process: u32,
    files: &[FileChange],
) -> Result<(), CallDenial> {
    let questions = watched.client.as_ref().map_err(|why| CallDenial::busy(why.clone()))?;
    let ask = acquire_request(watched, process, files)?;
    let verdict = questions.acquire(&ask).await.map_err(deny_unavailable)?;
    watched.is_registered.store(true, Ordering::Relaxed);
    match verdict.verdict {
        FileVerdictKind::Granted => granted(watched, owner, process, files, &verdict).await,
        // Its place in line ends with the guard, and nobody comes back by itself.
        FileVerdictKind::Wait
            if owner == CallOwner::Root && watched.attribution.ancestor_agent().is_none() =>
        {
            Err(CallDenial::busy(messages::run_again_message(&verdict, &ask)))
        }
        FileVerdictKind::Wait => Err(CallDenial::busy(messages::retry_later_message(&verdict, &ask))),
        FileVerdictKind::Blocked => Err(CallDenial::busy(messages::retry_exhausted_message(&verdict, &ask))),
        FileVerdictKind::Stale => Err(CallDenial::busy(messages::stale_content_message(&verdict, &ask))),
    }
}

async fn granted(
    watched: &Arc<SupervisorState>,
    owner: CallOwner,
    process: u32,
    files: &[FileChange],
    verdict: &FileVerdict,
) -> Result<(), CallDenial> {
    // Where the gate only warns, that is said. What others left without a commit is told to agents, not to every shell.
    if !verdict.held.is_empty()
        && let Some(notice) = messages::allow_message(verdict)
    {
        watched.report(process, notice).await;
    }
    // Looked at only now, when nobody else can change it any more.
    let began = verdict.newly.then(|| change_time::started_at(owner, process, watched.started_at)).flatten();
    let is_late = |path: &Path| {
        let last = began.and_then(|began| Some((change_time::last_changed_at(path)?, began)));
        last.is_some_and(|(last, began)| change_time::may_have_changed_after(last, began))
    };
    // An agent that we did not recognise: what is granted to it is not everybody's here.
    let is_known = watched.attribution.matches_holder(owner, &verdict.holder);
    let mut granted = watched.grants.lock();
    for file in files {
        // What we had already, nobody else has changed.
        if file.denies_stale && !granted.holds(owner, &file.path) && is_late(&file.path) {
            granted.add_stale_content(owner, file.path.clone());
        }
        if let Some(standing) = verdict.standing.as_ref().filter(|_| is_known) {
            granted.add(owner, file.path.clone(), standing);
        }
    }
    // Who writes what it read before somebody else changed the file would undo that.
    let mut lost = files.iter().filter(|file| file.change == PathChange::Lost);
    let Some(late) = lost.find(|file| granted.has_stale_content(owner, &file.path, now())) else {
        return Ok(());
    };
    granted.mark_stale_content_reported(owner, &late.path, now());
    Err(CallDenial::busy(messages::changed_since_start_message(&late.path.to_string_lossy())))
}

fn deny_unavailable(unanswered: RequestError) -> CallDenial {
    CallDenial::busy(match unanswered {
        RequestError::NoServer { why, fix } => messages::server_unavailable_message(&why, &fix),
        RequestError::Rejected(detail) => format!("Nothing was changed: {detail}."),
    })
}
