//! Git commands that change many files at once are decided before they run: refused in the middle, they would leave half a
//! checkout.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_host::git::{GitError, GitImpact, predict_impact};
use tenure_host::paths::tree_above;

use super::acquire::{acquire_all, files_held_below};
use super::answer::{CallDenial, acquire_for_call};
use super::attribution::CallOwner;
use super::syscall_policy::{FileChange, FileChanges};
use super::{SupervisorState, process_tree};
use crate::syscall_effects::ExecutedProgram;

/// So many of the files are named.
const MAX_LISTED_FILES: usize = 3;

/// Whether git may run: everything that it would change or lose is got first, or nothing happens.
pub async fn acquire_for_git(
    watched: &Arc<SupervisorState>,
    owner: CallOwner,
    (thread, process): (u32, u32),
    program: ExecutedProgram,
) -> Result<(), CallDenial> {
    let prediction = tokio::task::spawn_blocking(move || {
        let folder = std::fs::read_link(format!("/proc/{thread}/cwd")).unwrap_or_else(|_| PathBuf::from("/"));
        process_tree::without_concurrent_reaping(|| {
            predict_impact(&program.arguments, &folder, &program.environment)
        })
    });
    let predicted = match prediction.await {
        Ok(Ok(Some(impact))) => impact,
        // What git does not understand now, it does not understand when it runs; and each file is still asked for.
        Ok(
            Ok(None)
            | Err(GitError::Failed { .. } | GitError::Missing | GitError::NotARepository | GitError::Bare),
        ) => {
            return Ok(());
        }
        Ok(Err(error)) => {
            let why = format!("git was not run: nobody can say which files it would change ({error})");
            return Err(CallDenial::busy(why));
        }
        Err(_) => {
            return Err(CallDenial::busy("git was not run: there is a mistake in Tenure itself. Try once more; if it says the same, tell the person.".to_owned()));
        }
    };
    let whole = |refused: CallDenial| refused.of(&predicted);
    let in_the_way = in_the_way(watched, &predicted).await.map_err(whole)?;
    acquire_all(watched, owner, process, in_the_way).await.map_err(whole)?;
    acquire_for_call(watched, owner, process, path_changes(&predicted)).await.map_err(whole)
}

/// What somebody has where git would change files that are not leased: those that it ignores, and those of submodules, which other
/// processes of git change one after the other.
async fn in_the_way(watched: &SupervisorState, impact: &GitImpact) -> Result<Vec<FileChange>, CallDenial> {
    let GitImpact { root, ignored, submodules, .. } = impact;
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
    Ok(files_held_below(watched, root)
        .await?
        .into_iter()
        .filter(is_there)
        .map(FileChange::without_content_change)
        .collect())
}

fn path_changes(impact: &GitImpact) -> FileChanges {
    let paths = impact.paths.iter().map(|path| impact.root.join(path));
    // A folder is a repository of its own, which this one leaves alone, or removes by other processes of git.
    let files = paths.filter(|path| !path.is_dir() || path.is_symlink());
    // Git compares what is there with its index by itself.
    FileChanges { files: files.map(FileChange::without_content_change).collect(), ..FileChanges::default() }
}

impl CallDenial {
    /// The same for a whole command.
    fn of(self, impact: &GitImpact) -> Self {
        let (all, first) = (impact.paths.len(), impact.paths.iter().take(MAX_LISTED_FILES));
        let names: Vec<_> = first
            .map(|path| format!("`{}`", path.display().to_string().replace(char::is_control, " ")))
            .collect();
        let named = match all {
            0 => "files".to_owned(),
            all if all > MAX_LISTED_FILES => {
                format!("{} and {} more", names.join(", "), all - MAX_LISTED_FILES)
            }
            _ => names.join(", "),
        };
        let why = self.message.map(|why| {
            format!(
                "`{}` was not run: it would change {named} all at once, and not everything there can be had. {why}",
                impact.command
            )
        });
        Self { message: why, ..self }
    }
}
