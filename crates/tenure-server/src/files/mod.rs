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
//!             file_event_observer  tells standing and audit of the end of a lease before any client learns of it
//!             list  blocker_reports  people  blame     what a person sees, and may do
//! ```
//!
//! Nothing here decides who has a file: see `kernel/file` in the core. What it knows of the machine is in `tenure-gate`.

mod acquire;
mod admin;
pub(crate) mod audit;
mod blame;
mod blocker_reports;
mod caller;
mod commit;
mod file_event_observer;
mod grant_generations;
mod guard_caller;
mod guards;
mod hook_events;
pub(crate) mod idle_release;
pub(crate) mod idle_shutdown;
mod known_contents;
mod last_activity;
mod list;
mod liveness;
mod local_process;
mod process_exit;
mod resolve;
mod settings;
mod verdict;
mod view;
mod violations;
pub(crate) mod watched_processes;
mod work_trees;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tenure_core::kernel::{Command, CommandOutcome, FileCommand, FileOutcome, Resource, Tick};
use tenure_gate::blame::AttributionStore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::audit::WorkTreeAudit;
pub(crate) use self::grant_generations::GrantGenerations;
use self::guards::GuardRegistry;
use self::idle_release::IdleRelease;
pub(crate) use self::idle_shutdown::IdleShutdown;
use self::known_contents::KnownContents;
use self::last_activity::{LastActivity, LastHolders, ProcessLocks};
pub(crate) use self::local_process::LocalProcess;
pub use self::settings::FileSettings;
use self::violations::ReportedViolations;
use self::watched_processes::WatchedProcesses;
use self::work_trees::WorkTreeRegistry;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::reply_error::{answer_from_reply, unexpected};
use crate::http::response::HttpError;
use crate::tokens::TokenScope;

/// The files face.
pub(crate) struct FilesApi {
    settings: FileSettings,
    trees: WorkTreeRegistry,
    last_activity: LastActivity,
    guards: GuardRegistry,
    process_locks: ProcessLocks,
    last_holders: Arc<LastHolders>,
    /// How long guards may rely on what they were told.
    pub(crate) grant_generations: Arc<GrantGenerations>,
    known_contents: KnownContents,
    /// Where it is kept who wrote which line. The folder is made when it is first needed.
    blame_folder: PathBuf,
    blame: OnceLock<Option<AttributionStore>>,
    violations: ReportedViolations,
    audit: WorkTreeAudit,
    watched_processes: WatchedProcesses,
    idle_release: IdleRelease,
    /// Who asked when, and whether somebody wants the server to stop.
    pub(crate) idle_shutdown: IdleShutdown,
}

impl FilesApi {
    /// What it remembers beside the ledger is in `data`.
    pub(crate) fn open(settings: FileSettings, data: &Path) -> Self {
        let folder = data.join("files");
        Self {
            audit: WorkTreeAudit::new(settings.audit),
            settings,
            trees: WorkTreeRegistry::open(&folder),
            last_activity: LastActivity::default(),
            guards: GuardRegistry::open(&folder),
            process_locks: ProcessLocks::default(),
            last_holders: Arc::default(),
            grant_generations: Arc::new(GrantGenerations::open(&folder.join("standing"))),
            known_contents: KnownContents::default(),
            blame_folder: folder.join("blame"),
            blame: OnceLock::new(),
            violations: ReportedViolations::default(),
            watched_processes: WatchedProcesses::default(),
            idle_release: IdleRelease::default(),
            idle_shutdown: IdleShutdown::default(),
        }
    }

    /// Who wrote which line. Nothing where its folder cannot be used: then nobody knows.
    fn blame(&self) -> Option<&AttributionStore> {
        self.blame.get_or_init(|| AttributionStore::open(&self.blame_folder).ok()).as_ref()
    }

    /// Where a file is; nothing if its tree is not known, or the name is one more name of a file that has another.
    fn path_of(app: &App, resource: &Resource) -> Option<PathBuf> {
        app.files.trees.locate(resource)?.absolute()
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
        .routes(routes!(hook_events::report_event))
        .routes(routes!(commit::commit))
        .routes(routes!(commit::check_staged_files))
        .routes(routes!(list::list))
        .routes(routes!(list::show))
        .routes(routes!(blame::blame))
        .routes(routes!(blocker_reports::list))
        .routes(routes!(blocker_reports::show))
        .routes(routes!(blocker_reports::resume))
        .routes(routes!(admin::give))
        .routes(routes!(admin::force_release))
        .routes(routes!(admin::stop))
}

/// The kernel's answer, and when the request came in.
async fn submit(app: &App, caller: &Caller, command: FileCommand) -> Result<(FileOutcome, Tick), HttpError> {
    app.files.idle_shutdown.record_request();
    let response = app.registrar.submit(Command::File(Box::new(command))).await;
    let (answer, stamp) = answer_from_reply(response.reply, || app.registrar.now())?;
    caller.require(TokenScope::LeasesWrite)?;
    let CommandOutcome::File(answer) = answer else { return Err(unexpected()) };
    Ok((*answer, stamp))
}

/// Does what waits for the disk or looks at processes, where nobody else waits for it.
async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HttpError> + Send + 'static,
) -> Result<T, HttpError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| unexpected())?
}
