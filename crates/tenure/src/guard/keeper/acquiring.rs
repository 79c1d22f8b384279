//! Gets leases from the server, and says what follows from its answers.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_api::{FileAsk, FileVerdict, Standing, VerdictKind};
use tenure_client::boot_microseconds as now;
use tenure_gate::calls::Change;
use tenure_gate::hooks::Verdict;
use tenure_gate::hooks::wording;
use tenure_gate::paths::fold;

use super::asking::{MISTAKE, Refused};
use super::judging::{Want, text};
use super::owners::Owner;
use super::speaking::question;
use super::{Watched, changed};
use crate::command::words;
use crate::daemon::Unanswered;

/// The most files in one question. The server takes twice as many.
const MOST: usize = 500;

/// Gets all of these, or none.
pub async fn acquire_all(
    watched: &Arc<Watched>,
    owner: Owner,
    process: u32,
    mut files: Vec<Want>,
) -> Result<(), Refused> {
    if files.len() > MOST {
        // What somebody has comes first: if that is refused, nothing was got that would be kept from others.
        let held: HashSet<PathBuf> = held_below(watched, Path::new("/")).await?.into_iter().collect();
        files.sort_by_key(|file| !held.contains(&file.path));
    }
    for part in files.chunks(MOST) {
        acquire(watched, owner, process, part).await?;
    }
    Ok(())
}

/// What anybody has in this folder, at any depth.
pub async fn held_below(watched: &Watched, folder: &Path) -> Result<Vec<PathBuf>, Refused> {
    Ok(look_below(watched, folder).await?.0)
}

/// Which of these files of a tree that git ignores a session holds. The answer is kept as long as it can be relied on.
pub async fn held_in(watched: &Watched, root: &Path, ignored: Vec<Want>) -> Result<Vec<Want>, Refused> {
    let (held, standing) = look_below(watched, root).await?;
    if let Some(standing) = standing {
        let mut granted = watched.granted.lock();
        granted.add_held(root.to_path_buf(), &held, &standing);
    }
    let held: HashSet<_> = held.iter().map(|path| fold(path.as_os_str())).collect();
    Ok(ignored.into_iter().filter(|file| held.contains(&fold(file.path.as_os_str()))).collect())
}

async fn look_below(watched: &Watched, folder: &Path) -> Result<(Vec<PathBuf>, Option<Standing>), Refused> {
    // What cannot be said is nobody's: such names are not leased.
    let Ok(folder) = text(folder) else { return Ok((Vec::new(), None)) };
    let questions = watched.questions.as_ref().map_err(|why| Refused::busy(why.clone()))?;
    let below = questions.files_below(&folder).await.map_err(unanswered)?;
    let files = below.files.into_iter();
    let paths = files.filter_map(|file| Some(PathBuf::from(file.root?).join(file.path)));
    // A name that is a folder by now is no file any more.
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| about.is_dir());
    Ok((paths.filter(|path| !is_folder(path)).collect(), below.standing))
}

async fn acquire(watched: &Arc<Watched>, owner: Owner, process: u32, files: &[Want]) -> Result<(), Refused> {
    let questions = watched.questions.as_ref().map_err(|why| Refused::busy(why.clone()))?;
    let ask = question(watched, process, files)?;
    let verdict = questions.acquire(&ask).await.map_err(unanswered)?;
    watched.is_introduced.store(true, Ordering::Relaxed);
    match verdict.verdict {
        VerdictKind::Granted => granted(watched, owner, process, files, (&ask, &verdict)).await,
        // Its place in line ends with the guard, and nobody comes back by itself.
        VerdictKind::Wait if owner == Owner::First && watched.owners.above().is_none() => {
            Err(Refused::busy(wording::run_again(&verdict, &ask)))
        }
        VerdictKind::Wait | VerdictKind::Blocked | VerdictKind::Stale => {
            let Verdict::Deny { reason, .. } = words::settled(&verdict, &ask) else {
                return Err(Refused::busy(MISTAKE.to_owned()));
            };
            Err(Refused::busy(reason))
        }
    }
}

async fn granted(
    watched: &Arc<Watched>,
    owner: Owner,
    process: u32,
    files: &[Want],
    (ask, verdict): (&FileAsk, &FileVerdict),
) -> Result<(), Refused> {
    // Where the gate only warns, that is said. What others left without a commit is told to agents, not to every shell.
    if !verdict.held.is_empty()
        && let Verdict::Allow { note: Some(note) } = words::settled(verdict, ask)
    {
        watched.tell(process, note).await;
    }
    // Looked at only now, when nobody else can change it any more.
    let began = verdict.newly.then(|| changed::began(owner, process, watched.began)).flatten();
    let is_late = |path: &Path| {
        let last = began.and_then(|began| Some((changed::last(path)?, began)));
        last.is_some_and(|(last, began)| changed::may_be_after(last, began))
    };
    // An agent that we did not recognise: what is granted to it is not everybody's here.
    let is_known = watched.owners.agrees(owner, &verdict.holder);
    let mut granted = watched.granted.lock();
    for file in files {
        // What we had already, nobody else has changed.
        if file.objects && !granted.holds(owner, &file.path) && is_late(&file.path) {
            granted.object(owner, file.path.clone());
        }
        if let Some(standing) = verdict.standing.as_ref().filter(|_| is_known) {
            granted.add(owner, file.path.clone(), standing);
        }
    }
    // Who writes what it read before somebody else changed the file would undo that.
    let mut lost = files.iter().filter(|file| file.change == Change::Lost);
    let Some(late) = lost.find(|file| granted.is_objected(owner, &file.path, now())) else { return Ok(()) };
    granted.objected(owner, &late.path, now());
    Err(Refused::busy(wording::changed_since(&late.path.to_string_lossy())))
}

fn unanswered(unanswered: Unanswered) -> Refused {
    Refused::busy(match unanswered {
        Unanswered::NoServer { why, fix } => wording::no_daemon(&why, &fix),
        Unanswered::Refused(detail) => format!("Nothing was changed: {detail}."),
    })
}
