//! Git commands that change many files at once are decided before they run: refused in the middle, they would leave half a
//! checkout.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_gate::calls::Program;
use tenure_gate::git::{GitError, Overwritten, overwritten};

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
    settle(watched, owner, process, wants(&overwritten)).await.map_err(|refused| refused.of(&overwritten))
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
        let more = if all > NAMED { format!(" and {} more", all - NAMED) } else { String::new() };
        let why = self.why.map(|why| {
            format!(
                "`{}` was not run: it would change {}{more} all at once, and somebody else is editing there. {why}",
                overwritten.verb,
                names.join(", "),
            )
        });
        Self { why, ..self }
    }
}
