//! Finds out what could not be said at once, and answers the call.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rustix::io::Errno;
use tenure_api::{FileAsk, FileEventKind, FileNews, FileSpeaker, FileVerdict, VerdictKind};
use tenure_client::boot_microseconds as now;
use tenure_gate::calls::Change;
use tenure_gate::hooks::Verdict;
use tenure_gate::hooks::wording::{self, NoDaemon, no_daemon};
use tenure_gate::process::process_of;

use super::gate::Pending;
use super::judging::{Judgement, Want, Wants, text};
use super::owners::Owner;
use super::scope::Belongs;
use super::{Watched, changed, family, folders, orphans};
use crate::command::words;
use crate::daemon::{Unanswered, start};
use crate::guard::STARTED;

/// The most files in one question. The server takes twice as many.
const MOST: usize = 500;

/// Answers a call.
pub async fn answer(watched: Arc<Watched>, pending: Pending) {
    let Pending { call, judgement } = pending;
    let Some(process) = process_of(call.thread) else {
        // It is gone; or we cannot look, and then it must not wait for ever.
        return watched.listener.fail(call.id, Errno::BUSY);
    };
    // As many at once as the server takes in one go; the others wait their turn.
    let turn = watched.turns.acquire().await;
    let owner = watched.owners.of(call.thread);
    let answer = match judgement {
        Judgement::Pass => Ok(()),
        Judgement::Fail(error) => Err(Refused { error, why: None }),
        Judgement::Unreadable(error) => Err(Refused { error, why: Some(UNREADABLE.to_owned()) }),
        Judgement::Unfollowed(error) => Err(Refused { error, why: Some(UNFOLLOWED.to_owned()) }),
        Judgement::Ask(wants) => settle(&watched, owner, process, wants).await,
        Judgement::Git(program) => super::git::judge(&watched, owner, (call.thread, process), program).await,
        Judgement::StartServer => {
            let started = match &watched.questions {
                Ok(questions) => start(questions.local()).await.map_err(|error| {
                    format!("no server could be started: {error}. The person can run `{}`.", error.fix())
                }),
                Err(why) => Err(why.clone()),
            };
            // The call fails in any case: what is said is why.
            Err(Refused { error: STARTED, why: started.err() })
        }
    };
    // Whoever does not read what is said holds up nobody else.
    drop(turn);
    match answer {
        Ok(()) => watched.listener.allow(call.id),
        Err(Refused { error, why }) => {
            if let Some(why) = why {
                watched.tell(process, why).await;
            }
            watched.listener.fail(call.id, error);
        }
    }
}

/// Why a call fails.
#[derive(Debug)]
pub struct Refused {
    /// What the caller is told.
    pub error: Errno,
    /// What is said on standard error.
    pub why: Option<String>,
}

impl Refused {
    /// Somebody else has it, or nobody knows.
    pub fn busy(why: String) -> Self {
        Self { error: Errno::BUSY, why: Some(why) }
    }
}

/// Gets everything that a call needs, or says why not.
pub async fn settle(watched: &Arc<Watched>, owner: Owner, process: u32, wants: Wants) -> Result<(), Refused> {
    let own = watched.clone();
    let turned = wants.turned.clone();
    let around: Vec<PathBuf> =
        turned.iter().chain(wants.moved.iter().map(|(from, _)| from)).cloned().collect();
    let looked = tokio::task::spawn_blocking(move || {
        let Wants { mut files, moved, .. } = wants;
        for (from, to) in &moved {
            files.extend(folders::moved(&own.scope, from, to)?);
        }
        learn(&own, &files);
        files.retain(|file| own.scope.belongs(&file.path, file.change, false) != Belongs::ToNobody);
        Ok(files)
    });
    let mut files = looked.await.unwrap_or_else(|_| Err(Refused::busy(MISTAKE.to_owned())))?;
    if !around.is_empty() {
        // Also in repositories below, and in what git ignores there.
        let held = held(watched).await?.into_iter();
        let is_there = |path: &PathBuf| around.iter().any(|top| path.starts_with(top));
        files.extend(held.filter(is_there).map(Want::untouched));
    }
    acquire_all(watched, owner, process, files).await?;
    turned.iter().for_each(|folder| watched.scope.nobody_else_in(folder));
    Ok(())
}

/// Gets all of these, or none.
pub async fn acquire_all(
    watched: &Arc<Watched>,
    owner: Owner,
    process: u32,
    mut files: Vec<Want>,
) -> Result<(), Refused> {
    if files.len() > MOST {
        // What somebody has comes first: if that is refused, nothing was got that would be kept from others.
        let held: HashSet<PathBuf> = held(watched).await?.into_iter().collect();
        files.sort_by_key(|file| !held.contains(&file.path));
    }
    for part in files.chunks(MOST) {
        acquire(watched, owner, process, part).await?;
    }
    Ok(())
}

/// Everything that anybody has.
pub async fn held(watched: &Watched) -> Result<Vec<PathBuf>, Refused> {
    let questions = watched.questions.as_ref().map_err(|why| Refused::busy(why.clone()))?;
    let files = questions.files().await.map_err(unanswered)?.files.into_iter();
    Ok(files.filter_map(|file| Some(PathBuf::from(file.root?).join(file.path))).collect())
}

const UNREADABLE: &str = "a call failed because nobody can see what it would change: the program hides its memory, as those do that \
                          keep secrets (gpg-agent, ssh-agent). Start it before, outside of the guard.";
const UNFOLLOWED: &str = "a call failed because a link leads where only the program itself can follow, through /dev/stdout, /dev/fd or \
                          /proc/self, or through several links to nothing. Name the file or /dev/stdout itself.";
const MISTAKE: &str = "nothing was changed: there is a mistake in Tenure itself. Try once more; if it says the same, tell the \
                       person.";

/// Finds out which of these git ignores, where that is not known.
fn learn(watched: &Watched, files: &[Want]) {
    let mut unknown: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for file in files {
        if let Belongs::Unknown(tree) = &file.belongs {
            unknown.entry(&tree.root).or_default().push(&file.path);
        }
    }
    for (root, paths) in unknown {
        family::with_own_process(|| watched.scope.learn(root, paths.into_iter()));
    }
}

/// Asks the server for these.
async fn acquire(watched: &Arc<Watched>, owner: Owner, process: u32, files: &[Want]) -> Result<(), Refused> {
    let questions = watched.questions.as_ref().map_err(|why| Refused::busy(why.clone()))?;
    let ask = question(watched, process, files)?;
    let verdict = questions.acquire(&ask).await.map_err(unanswered)?;
    watched.is_introduced.store(true, Ordering::Relaxed);
    match verdict.verdict {
        VerdictKind::Granted => granted(watched, owner, process, files, (&ask, &verdict)).await,
        // Its place in line ends with the guard, and nobody comes back by itself.
        VerdictKind::Wait if owner == Owner::First && watched.owners.above().is_none() => {
            Err(Refused::busy(words::run_again(&verdict, &ask)))
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
    let mut granted = watched.granted.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The server knows whom we speak for, before whoever started us is gone: it could not see that afterwards.
pub async fn introduce(watched: &Watched) {
    let is_needed = watched.owners.above().is_some() && !watched.is_introduced.load(Ordering::Relaxed);
    let is_over = watched.listener.readiness().is_ok_and(|readiness| readiness.is_over);
    if let (true, false, Ok(questions)) = (is_needed, is_over, &watched.questions) {
        let news = FileNews {
            speaker: speaker(watched),
            event: FileEventKind::Guarding,
            cwd: None,
            paths: Vec::new(),
            detail: None,
        };
        // If nobody answers, what goes on in the background is refused, or is our own.
        let _ = questions.tell(&news).await;
    }
}

fn speaker(watched: &Watched) -> FileSpeaker {
    let naming = &watched.naming;
    FileSpeaker {
        agent: "guard".to_owned(),
        session: naming.session.clone().unwrap_or_else(|| watched.own_name.clone()),
        subagent: naming.subagent.clone(),
        parent: None,
        task: Some(watched.task.clone()),
    }
}

fn question(watched: &Watched, process: u32, files: &[Want]) -> Result<FileAsk, Refused> {
    let named = |follows: bool| {
        files
            .iter()
            .filter(move |file| file.follows == follows)
            .map(|file| text(&file.path))
            .collect::<Result<Vec<_>, _>>()
    };
    let not_text = |path: std::ffi::OsString| {
        Refused::busy(format!(
            "{} was not changed: its name is not UTF-8, so no lease can be taken for it. Rename it, or do this without \
             `tenure guard`.",
            path.to_string_lossy()
        ))
    };
    Ok(FileAsk {
        speaker: speaker(watched),
        cwd: "/".to_owned(),
        paths: named(true).map_err(not_text)?,
        entries: named(false).map_err(not_text)?,
        whole: false,
        process: Some(process),
        orphan: orphans::is_one(watched, process),
        named: watched.naming.session.is_some(),
    })
}

fn unanswered(unanswered: Unanswered) -> Refused {
    Refused::busy(match unanswered {
        Unanswered::NoServer { why, fix } => no_daemon(&NoDaemon { problem: why, fix }),
        Unanswered::Refused(detail) => format!("Nothing was changed: {detail}."),
    })
}
