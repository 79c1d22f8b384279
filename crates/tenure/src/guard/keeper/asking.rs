//! Finds out what could not be said at once, and answers the call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use tenure_gate::process::process_of;

use super::acquiring::{acquire_all, held_below, held_in};
use super::gate::Pending;
use super::judging::{Judgement, Want, Wants};
use super::owners::Owner;
use super::repositories::linked;
use super::scope::Belongs;
use super::{Watched, family, folders};
use crate::daemon::start;
use crate::guard::STARTED;

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

#[derive(Debug)]
pub struct Refused {
    pub error: Errno,
    /// What is said on standard error.
    pub why: Option<String>,
}

impl Refused {
    /// Somebody else has it, or nobody knows.
    pub fn busy(why: String) -> Self {
        Self { error: Errno::BUSY, why: Some(why) }
    }

    /// The same for a change that would end a repository, or begin one around files.
    fn of_a_repository(self, folder: &Path) -> Self {
        let name = folder.display().to_string().replace(char::is_control, " ");
        let why = self.why.map(|why| {
            format!("the repository in {name} stays as it is: without it, what others have there would be nobody's. {why}")
        });
        Self { why, ..self }
    }
}

/// Gets everything that a call needs, or says why not.
pub async fn settle(watched: &Arc<Watched>, owner: Owner, process: u32, wants: Wants) -> Result<(), Refused> {
    let own = watched.clone();
    let turned = wants.turned.clone();
    let around: Vec<PathBuf> =
        turned.iter().chain(wants.moved.iter().flat_map(|(from, to)| [from, to])).cloned().collect();
    let looked = tokio::task::spawn_blocking(move || {
        let Wants { mut files, moved, .. } = wants;
        for (from, to) in &moved {
            files.extend(folders::moved(&own.scope, from, to)?);
        }
        learn(&own, &files);
        let (mut leased, mut ignored): (_, BTreeMap<PathBuf, Vec<Want>>) = (Vec::new(), BTreeMap::new());
        for file in files {
            match own.scope.belongs(&file.path, file.change, false) {
                Belongs::ToNobody => {}
                Belongs::Ignored(tree) => ignored.entry(tree.root.clone()).or_default().push(file),
                Belongs::ToTree | Belongs::Unknown(_) => leased.push(file),
            }
        }
        Ok((leased, ignored))
    });
    let (mut files, ignored) = looked.await.unwrap_or_else(|_| Err(Refused::busy(MISTAKE.to_owned())))?;
    // No lease is taken on what git ignores. But a file that a session holds stays its own when git begins to ignore it.
    for (root, ignored) in ignored {
        files.extend(held_in(watched, &root, ignored).await?);
    }
    // Also in repositories below, in what git ignores there, and in working trees elsewhere that need this repository.
    let elsewhere: Vec<PathBuf> = turned.iter().flat_map(|folder| linked(folder)).collect();
    for folder in around.iter().chain(&elsewhere) {
        files.extend(held_below(watched, folder).await?.into_iter().map(Want::untouched));
    }
    let acquired = acquire_all(watched, owner, process, files).await;
    let Some(folder) = turned.first() else { return acquired };
    acquired.map_err(|refused| refused.of_a_repository(folder))?;
    turned.iter().for_each(|folder| watched.scope.nobody_else_in(owner, folder));
    Ok(())
}

const UNREADABLE: &str = "a call failed because nobody can see what it would change: the program hides its memory, as those do that \
                          keep secrets (gpg-agent, ssh-agent). Start it before, outside of the guard.";
const UNFOLLOWED: &str = "a call failed because a link leads where only the program itself can follow, through /dev/stdout, /dev/fd or \
                          /proc/self, or through several links to nothing. Name the file or /dev/stdout itself.";
/// What is said where nobody knows better.
pub const MISTAKE: &str = "nothing was changed: there is a mistake in Tenure itself. Try once more; if it says the same, tell the \
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
