//! Files: which session of a coding agent may change which file of a working tree, on this machine.
//!
//! ```text
//! request ──> local       which process asks, as the system says
//!             speaker     for which session, in which agent's process; guarded: the same for a guard
//!             targets     which files, by all the names that lead to them
//!             acquire     whether those live who have them; then the kernel's verdict; standing: how long a guard may rely on it
//!             news        what else hooks say: that something was read or written, that a turn or a session is over
//!             commit      what was committed is let go of
//!             watching    resting     what ends by itself: with its process, or when nothing is heard
//!             violations  what was changed all the same
//!             audit       how that is seen: trees are watched in which agents are at work
//!             observer    who is told of the end of a lease before anybody is answered
//!             list  reports  people  blame     what a person sees, and may do
//! ```
//!
//! Nothing here decides who has a file: see `kernel/file` in the core. What it knows of the machine is in `tenure-gate`.

mod acquire;
pub(crate) mod audit;
mod blame;
mod commit;
mod contents;
mod deaths;
mod guarded;
mod guards;
mod identity;
mod list;
mod liveness;
mod local;
mod news;
mod observer;
mod people;
mod reports;
pub(crate) mod resting;
mod settings;
mod speaker;
mod standing;
pub(crate) mod stopping;
mod targets;
mod trees;
mod turns;
mod verdict;
mod view;
mod violations;
pub(crate) mod watching;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tenure_core::kernel::{Answer, Command, FileAnswer, FileCommand, Resource, Tick};
use tenure_gate::blame::Store;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::audit::Audit;
use self::contents::Contents;
use self::guards::Guards;
pub(crate) use self::local::Local;
pub(crate) use self::observer::{FileListener, FileObserver};
use self::resting::Resting;
pub use self::settings::FileSettings;
pub(crate) use self::standing::Standings;
pub(crate) use self::stopping::Stopping;
use self::trees::Trees;
use self::turns::{LastHeard, Lasts, Turns};
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
    heard: LastHeard,
    guards: Guards,
    turns: Turns,
    lasts: Arc<Lasts>,
    /// How long guards may rely on what they were told.
    pub(crate) standings: Arc<Standings>,
    contents: Contents,
    /// Where it is kept who wrote which line. The folder is made when it is first needed.
    blame_folder: PathBuf,
    blame: OnceLock<Option<Store>>,
    violations: Violations,
    audit: Audit,
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
            audit: Audit::new(settings.audit),
            settings,
            trees: Trees::open(&folder),
            heard: LastHeard::default(),
            guards: Guards::open(&folder),
            turns: Turns::default(),
            lasts: Arc::default(),
            standings: Arc::new(Standings::open(&folder.join("standing"))),
            contents: Contents::default(),
            blame_folder: folder.join("blame"),
            blame: OnceLock::new(),
            violations: Violations::default(),
            watching: Watching::default(),
            resting: Resting::default(),
            stopping: Stopping::default(),
        }
    }

    /// Who is told of what happens to files before anybody is answered.
    pub(crate) fn listeners(&self) -> Vec<Arc<dyn FileListener>> {
        vec![self.standings.clone(), self.lasts.clone(), self.audit.ended.clone()]
    }

    /// Who wrote which line. Nothing where its folder cannot be used: then nobody knows.
    fn blame(&self) -> Option<&Store> {
        self.blame.get_or_init(|| Store::open(&self.blame_folder).ok()).as_ref()
    }

    /// Where a file is; nothing if its tree is not known, or the name is one more name of a file that has another.
    fn path_of(app: &App, resource: &Resource) -> Option<PathBuf> {
        app.files.trees.named(resource)?.absolute()
    }

    /// Device and number of a file, if it is there. It looks at the disk.
    fn identity_of(app: &App, resource: &Resource) -> Option<(u64, u64)> {
        let about = std::fs::metadata(Self::path_of(app, resource)?).ok()?;
        Some((about.dev(), about.ino()))
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
