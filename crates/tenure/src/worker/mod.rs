//! The worker: it alone takes sessions with their leases, and carries them out.
//!
//! ```text
//! guard ──> ends what a worker before it left behind ──> wipes those sessions ──> works
//!                                                         runtime.rs: pipelines and requests, around state_machine.rs
//! ```
//!
//! It runs in the process of the server, or in one of its own; `server_handle.rs` is the only difference. Each pipeline
//! runs under a watchdog (`process_supervisor`), so that no pipeline outlives its lease if the worker fails.

mod cleanup;
mod command_template;
mod identity;
mod in_process;
mod leader;
mod orphan_processes;
mod pipeline;
mod pipeline_logs;
mod process_record;
mod process_snapshot;
mod requests;
mod retry;
mod runtime;
mod server_handle;
mod settings;
mod state_machine;
mod state_machine_io;
#[cfg(test)]
mod testing;
mod unsupervised_sessions;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tenure_api::{IntentSessionChanges, IntentSessionChangesRequest, Problem};

pub use self::command_template::{CommandTemplate, CommandTemplateError};
use self::identity::WorkerIdentity;
pub use self::in_process::EmbeddedWorker;
pub use self::retry::ShutdownReceiver;
use self::retry::{retry, wait_for_stop};
use self::runtime::WorkerRuntime;
pub use self::server_handle::ServerHandle;
use self::server_handle::WorkerError;
pub use self::settings::Settings;

/// Why a worker has ended, though nobody told it to.
#[derive(Debug)]
pub enum WorkerExit {
    /// Another one may have the guard.
    LeadershipLost(String),
    /// The server does not let it be the worker.
    Rejected(Box<Problem>),
    /// The system does not give what it needs.
    System(io::Error),
}

impl From<WorkerError> for WorkerExit {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::LeadershipLost(why) | WorkerError::Transient(why) => Self::LeadershipLost(why),
            WorkerError::Held(problem) | WorkerError::Rejected(problem) => Self::Rejected(problem),
        }
    }
}

/// Works until it is told to stop: waits for the guard, cleans up, says that it is ready, and carries out sessions.
/// When it returns, no pipeline is left.
pub async fn run_worker(
    server: ServerHandle,
    settings: Arc<Settings>,
    stop: ShutdownReceiver,
    ready: impl FnOnce(),
) -> Result<(), WorkerExit> {
    let identity = WorkerIdentity::current().map_err(WorkerExit::System)?;
    let begin = async {
        let mut guard = leader::acquire(&server, &identity, settings.ttl_ms).await?;
        let first = active_sessions(&server, guard.fence).await?;
        cleanup::clean_up(&server, &identity, &settings, &mut guard, &first.sessions).await?;
        Ok::<_, WorkerExit>((guard, first))
    };
    let (guard, first) = tokio::select! {
        ready_state = begin => ready_state?,
        () = wait_for_stop(&stop) => return Ok(()),
    };
    ready();
    WorkerRuntime::new(server, settings, guard).run(first, &stop).await
}

/// Every session that goes on, in however many parts the server tells them.
async fn active_sessions(server: &ServerHandle, guard: u64) -> Result<IntentSessionChanges, WorkerExit> {
    let (mut since, mut found) = (0, BTreeMap::new());
    loop {
        let request = IntentSessionChangesRequest { guard, since, wait_ms: None };
        let part = retry!("listening to sessions", server.changed_sessions(&request).await)?;
        // One that changed meanwhile is told again, as it is then.
        found.extend(part.sessions.into_iter().map(|session| (session.session_id.clone(), session)));
        since = part.revision;
        if !part.more {
            break;
        }
    }
    let mut sessions: Vec<_> = found.into_values().filter(|session| session.state != "ENDED").collect();
    sessions.sort_unstable_by_key(|session| session.revision);
    Ok(IntentSessionChanges { revision: since, sessions, more: false })
}
