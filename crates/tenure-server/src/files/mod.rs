//! Files: which session of a coding agent may change which file of a working tree, on this machine.
//!
//! ```text
//! request ──> local       which process asks, as the system says
//!             speaker     for which session, in which agent's process
//!             targets     which files, by all the names that lead to them
//!             acquire     whether those live who have them; then the kernel's verdict
//!             news        what else hooks say: that something was read or written, that a turn or a session is over
//!             commit      what was committed is let go of
//!             watching    resting     what ends by itself: with its process, or when nothing is heard
//!             violations  what was changed all the same
//!             list  reports  people  blame     what a person sees, and may do
//! ```
//!
//! Nothing here decides who has a file: see `kernel/file` in the core. What it knows of the machine is in `tenure-gate`.

mod acquire;
mod blame;
mod commit;
mod contents;
mod deaths;
mod identity;
mod list;
mod liveness;
mod local;
mod news;
mod people;
mod read;
mod reports;
pub(crate) mod resting;
mod settings;
mod speaker;
pub(crate) mod stopping;
mod targets;
mod trees;
mod view;
mod violations;
pub(crate) mod watching;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tenure_core::kernel::{Answer, Command, FileAnswer, FileCommand, Resource, Tick};
use tenure_gate::blame::Store;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::contents::Contents;
pub(crate) use self::local::Local;
use self::resting::Resting;
pub use self::settings::FileSettings;
pub(crate) use self::stopping::Stopping;
use self::trees::Trees;
use self::violations::Violations;
use self::watching::Watching;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::refusal::{answered, unexpected};
use crate::tokens::Scope;

/// The files face.
pub(crate) struct FileFace {
    settings: FileSettings,
    trees: Trees,
    contents: Contents,
    /// Where it is kept who wrote which line. The folder is made when it is first needed.
    blame_folder: PathBuf,
    blame: OnceLock<Option<Store>>,
    violations: Violations,
    watching: Watching,
    resting: Resting,
    /// Who asked when, and whether somebody wants the server to stop.
    pub(crate) stopping: Stopping,
}

impl FileFace {
    /// What it remembers beside the ledger is in `data`.
    pub(crate) fn open(settings: FileSettings, data: &Path) -> Self {
        let folder = data.join("files");
        Self {
            settings,
            trees: Trees::open(&folder),
            contents: Contents::default(),
            blame_folder: folder.join("blame"),
            blame: OnceLock::new(),
            violations: Violations::default(),
            watching: Watching::default(),
            resting: Resting::default(),
            stopping: Stopping::default(),
        }
    }

    /// Who wrote which line. Nothing where its folder cannot be used: then nobody knows.
    fn blame(&self) -> Option<&Store> {
        self.blame.get_or_init(|| Store::open(&self.blame_folder).ok()).as_ref()
    }

    /// Where a file is; nothing if its tree is not known, or the name is one more name of a file that has another.
    fn path_of(app: &App, resource: &Resource) -> Option<PathBuf> {
        app.files.trees.named(resource)?.absolute()
    }
}

/// The routes of files.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(acquire::acquire))
        .routes(routes!(news::news))
        .routes(routes!(commit::commit))
        .routes(routes!(commit::staged))
        .routes(routes!(list::list))
        .routes(routes!(list::one))
        .routes(routes!(blame::blame))
        .routes(routes!(reports::list))
        .routes(routes!(reports::show))
        .routes(routes!(reports::resume))
        .routes(routes!(people::give))
        .routes(routes!(people::force_release))
        .routes(routes!(people::stop))
}

/// The kernel's answer, and when the request came in.
async fn ask(app: &App, caller: &Caller, command: FileCommand) -> Result<(FileAnswer, Tick), Failure> {
    app.files.stopping.heard();
    let response = app.registrar.ask(Command::File(Box::new(command))).await;
    let (answer, stamp) = answered(response.reply, || app.registrar.now())?;
    caller.require(Scope::LeasesWrite)?;
    let Answer::File(answer) = answer else { return Err(unexpected()) };
    Ok((*answer, stamp))
}

/// Does what waits for the disk or looks at processes, where nobody else waits for it.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| unexpected())?
}
