//! Files API: which session of a coding agent may change which file of a working tree, on this machine.
//!
//! ```text
//! request ──> caller           the calling process, and its agent's session
//!             resolve          from paths to files, under all of their names
//!             acquire          liveness of the holders, then the kernel's decision
//!             verdict          that decision as a response
//!             guards           guards and their agents, and for how long a guard may cache a grant
//!             hook_events      other reports of hooks: a read, a write, the end of a turn or a session
//!             commit           releases committed files
//!             liveness         ends sessions whose process has exited
//!             idle_release     releases files of idle sessions
//!             idle_shutdown    stops an idle server
//!             audit            detects changes without a lease
//!             list, view       files and sessions, as JSON
//!             blocker_reports  sessions that stopped because a file was held
//!             blame            which session wrote the lines that are not committed
//!             admin            what only a user may do: give, release by force, stop the server
//! ```
//!
//! `FileEventObserver` reports the end of a lease to guards and audit before any client learns of it. Nothing here decides
//! which session gets a file: see `kernel/file` in `tenure-core`. Facts about the machine come from `tenure-host`.

mod acquire;
mod admin;
pub(crate) mod audit;
mod blame;
mod blocker_reports;
mod caller;
mod commit;
mod guards;
mod hook_events;
pub(crate) mod idle_release;
pub(crate) mod idle_shutdown;
mod list;
pub(crate) mod liveness;
mod resolve;
mod verdict;
mod view;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tenure_core::kernel::{
    Command, CommandOutcome, Event, Fence, FileCommand, FileOutcome, FileSession, KernelState, Limits,
    Removed, Resource, Tick, TickDuration,
};
use tenure_host::blame::AttributionStore;
use tenure_registrar::runtime::{AppliedEvent, Observer};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::audit::{ReportedViolations, WorkTreeAuditor};
pub(crate) use self::caller::LocalProcess;
pub(crate) use self::guards::GrantGenerations;
use self::guards::GuardRegistry;
use self::idle_release::{IdleRelease, LastActivity, LastHolders, ProcessLocks};
pub(crate) use self::idle_shutdown::IdleShutdown;
use self::liveness::WatchedProcesses;
use self::resolve::WorkTreeRegistry;
use self::verdict::KnownContents;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::{HttpError, answer_from_reply, unexpected};
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
    audit: WorkTreeAuditor,
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
            audit: WorkTreeAuditor::new(settings.audit),
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

/// What was chosen. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// After how long the one retry for a file is due.
    pub retry_ms: u64,
    /// For how long a session has files after its turn ended and nothing was heard of it.
    pub idle_ms: u64,
    /// Whether agents are only told that somebody else has a file, and may change it all the same.
    pub warn_only: bool,
    /// Whether commands of agents run only where each of their changes is asked for.
    pub guarded_shells: bool,
    /// Whether working trees in which agents are at work are watched for changes that no lease explains.
    pub audit: bool,
    /// After how long without leases, sessions and requests the server stops by itself; nothing is never.
    pub stop_when_idle_ms: Option<u64>,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            retry_ms: 180_000,
            idle_ms: 30_000,
            warn_only: false,
            guarded_shells: false,
            audit: true,
            stop_when_idle_ms: None,
        }
    }
}

impl FileSettings {
    /// What the kernel has to know of it.
    pub(crate) fn limits(&self, base: Limits) -> Limits {
        Limits {
            file_retry_delay: TickDuration::from_millis(self.retry_ms.max(1)),
            file_idle_timeout: TickDuration::from_millis(self.idle_ms.max(1)),
            ..base
        }
    }
}

/// Receives file events on the thread that publishes them, before any client learns of them. It must be quick.
trait FileEventListener: Send + Sync {
    /// A lease on a file began.
    fn lease_began(&self) {}

    /// A lease of a session is over.
    fn lease_ended(&self, resource: &Resource, session: &FileSession, at: Tick);

    /// A session is over. Its leases ended before.
    fn session_ended(&self, _session: &FileSession) {}
}

struct FileEventObserver {
    listeners: [Arc<dyn FileEventListener>; 3],
}

impl FilesApi {
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        let (generations, holders) = (self.grant_generations.clone(), self.last_holders.clone());
        Arc::new(FileEventObserver { listeners: [generations, holders, self.audit.recently_ended.clone()] })
    }
}

impl FileEventObserver {
    fn ends(&self, lease: Fence, at: Tick, state: &KernelState) {
        let Some(lease) = state.ended_lease(lease) else { return };
        // A session ends after its leases.
        if let Some(session) = state.file_session(&lease.holder) {
            self.listeners.iter().for_each(|listener| listener.lease_ended(&lease.resource, session, at));
        }
    }
}

impl Observer for FileEventObserver {
    fn event_applied(&self, applied: AppliedEvent<'_>) {
        match applied.event {
            Event::Issued(issued) if issued.resource.as_str().starts_with("FILE:") => {
                self.listeners.iter().for_each(|listener| listener.lease_began());
            }
            Event::Released { lease, at, .. }
            | Event::Expired { lease, at }
            | Event::Revoked { lease, at, .. } => self.ends(*lease, *at, applied.state),
            Event::File(_) => {
                if let Some(Removed::FileSession(session)) = applied.removed {
                    self.listeners.iter().for_each(|listener| listener.session_ended(session));
                }
            }
            _ => {}
        }
    }
}
