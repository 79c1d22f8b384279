//! Git commands that change many files at once are decided before they run: refused in the middle, they would leave half a
//! checkout.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_gate::calls::Program;
use tenure_gate::git::{GitError, Overwritten, overwritten};
use tenure_gate::paths::tree_above;

use super::acquiring::{acquire_all, held_below};
use super::asking::{Refused, settle};
use super::judging::{Want, Wants};
use super::owners::Owner;
use super::{Watched, family};

/// So many of the files are named.
const NAMED: usize = 3;

/// Whether git may run: everything that it would change or lose is got first, or nothing happens.
pub async fn judge(
    watched: &Arc<Watched>,
    owner: Owner,
    (thread, process): (u32, u32),
    program: Program,
) -> Result<(), Refused> {
    let asked = tokio::task::spawn_blocking(move || {
        let folder = std::fs::read_link(format!("/proc/{thread}/cwd")).unwrap_or_else(|_| PathBuf::from("/"));
        family::with_own_process(|| overwritten(&program.arguments, &folder, &program.environment))
    });
    let overwritten = match asked.await {
        Ok(Ok(Some(overwritten))) => overwritten,
        // What git does not understand now, it does not understand when it runs; and each file is still asked for.
        Ok(
            Ok(None)
            | Err(GitError::Failed { .. } | GitError::Missing | GitError::NotARepository | GitError::Bare),
        ) => {
            return Ok(());
        }
        Ok(Err(error)) => {
            let why = format!("git was not run: nobody can say which files it would change ({error})");
            return Err(Refused::busy(why));
        }
        Err(_) => {
            return Err(Refused::busy("git was not run: there is a mistake in Tenure itself. Try once more; if it says the same, tell the person.".to_owned()));
        }
    };
    let whole = |refused: Refused| refused.of(&overwritten);
    let in_the_way = in_the_way(watched, &overwritten).await.map_err(whole)?;
    acquire_all(watched, owner, process, in_the_way).await.map_err(whole)?;
    settle(watched, owner, process, wants(&overwritten)).await.map_err(whole)
}

/// What somebody has where git would change files that are not leased: those that it ignores, and those of submodules, which other
/// processes of git change one after the other.
async fn in_the_way(watched: &Watched, overwritten: &Overwritten) -> Result<Vec<Want>, Refused> {
    let Overwritten { root, ignored, submodules, .. } = overwritten;
    if ignored.is_empty() && !submodules {
        return Ok(Vec::new());
    }
    let ignored: Vec<PathBuf> = ignored.iter().map(|path| root.join(path)).collect();
    let is_inside = |path: &Path| {
        let tree = path.parent().and_then(|folder| tree_above(folder).ok().flatten());
        path.starts_with(root) && tree.is_some_and(|tree| tree.root != *root)
    };
    let is_there = |path: &PathBuf| {
        ignored.iter().any(|ignored| path.starts_with(ignored)) || (*submodules && is_inside(path))
    };
    Ok(held_below(watched, root).await?.into_iter().filter(is_there).map(Want::untouched).collect())
}

fn wants(overwritten: &Overwritten) -> Wants {
    let paths = overwritten.paths.iter().map(|path| overwritten.root.join(path));
    // A folder is a repository of its own, which this one leaves alone, or removes by other processes of git.
    let files = paths.filter(|path| !path.is_dir() || path.is_symlink());
    // Git compares what is there with its index by itself.
    Wants { files: files.map(Want::untouched).collect(), ..Wants::default() }
}

impl Refused {
    /// The same for a whole command.
    fn of(self, overwritten: &Overwritten) -> Self {
        let (all, first) = (overwritten.paths.len(), overwritten.paths.iter().take(NAMED));
        let names: Vec<_> = first
            .map(|path| format!("`{}`", path.display().to_string().replace(char::is_control, " ")))
            .collect();
        let named = match all {
            0 => "files".to_owned(),
            all if all > NAMED => format!("{} and {} more", names.join(", "), all - NAMED),
            _ => names.join(", "),
        };
        let why = self.why.map(|why| {
            format!(
                "`{}` was not run: it would change {named} all at once, and not everything there can be had. {why}",
                overwritten.verb
            )
        });
        Self { why, ..self }
    }
}
