//! Requests of the worker to the server. Each is retried until there is a response, which the state machine is told.

use std::sync::Arc;
use std::time::Duration;

use tenure_api::{
    Code, IntentSessionChanges, IntentSessionChangesRequest, IntentSessionFinishRequest,
    IntentSessionRenewalRequest, IntentSessionRenewals, IntentSessionRunningReport, IntentSessionStatus,
    IntentSessionTakeRequest, IntentSessionWipeRequest, LeaderLockGrant, LeaderLockReleaseRequest,
    LeaderLockRequest, Problem, WipeResult,
};
use tenure_client::{Client, Error, local_deadline};
use tenure_core::kernel::TickDuration;
use tenure_host::stderr::print_stderr;
use tenure_server::WorkerApi;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{sleep, timeout};

use super::retry::retry;
use super::settings::Settings;
use super::state_machine::{RenewalResult, WorkerAction, WorkerInput};
use crate::process_supervisor::now;

/// How long the server may wait for something to happen before it answers.
const WAIT_MS: u64 = 20_000;
/// Between two attempts at what was refused, though it should not be.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a server has at least to renew leases, before it is asked again.
const MIN_RENEWAL_TIMEOUT_MS: u64 = 500;
/// The most that people are told about the end of a session: characters.
const MAX_DETAIL_CHARS: usize = 300;

/// Whom to ask, and whom to tell.
#[derive(Clone)]
pub struct WorkerRequests {
    server: ServerHandle,
    settings: Arc<Settings>,
    leader_fence: u64,
    input_sender: UnboundedSender<WorkerInput>,
}

impl WorkerRequests {
    pub fn new(
        server: ServerHandle,
        settings: Arc<Settings>,
        leader_fence: u64,
        input_sender: UnboundedSender<WorkerInput>,
    ) -> Self {
        Self { server, settings, leader_fence, input_sender }
    }

    pub fn server(&self) -> &ServerHandle {
        &self.server
    }

    pub fn leader_fence(&self) -> u64 {
        self.leader_fence
    }

    /// Listens to what changes, from then on.
    pub async fn watch_sessions(self, mut since: u64) {
        loop {
            let request =
                IntentSessionChangesRequest { guard: self.leader_fence, since, wait_ms: Some(WAIT_MS) };
            match retry!("listening to sessions", self.server.changed_sessions(&request).await) {
                Ok(changes) => {
                    since = changes.revision;
                    self.send_input(WorkerInput::Changed(changes.sessions));
                }
                Err(WorkerError::LeadershipLost(why)) => {
                    return self.send_input(WorkerInput::LeadershipLost(why));
                }
                Err(error) => {
                    report_rejection("to say which sessions changed", &error);
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Asks what the plan says, and tells it what was answered.
    pub async fn execute(self, act: WorkerAction) {
        let answer = match act {
            WorkerAction::Take(session) => self.take(session).await,
            WorkerAction::Report(session, process) => self.report(session, process).await,
            WorkerAction::Finish(session, reason, detail) => self.finish(session, reason, &detail).await,
            WorkerAction::Keep(sessions) => self.keep(sessions).await,
            WorkerAction::Start(..)
            | WorkerAction::Extend(..)
            | WorkerAction::End(_)
            | WorkerAction::Abandon(_) => return,
        };
        self.send_input(answer);
    }

    async fn take(&self, session: String) -> WorkerInput {
        let request = IntentSessionTakeRequest {
            guard: self.leader_fence,
            session_id: session.clone(),
            tuners: self.settings.tuners,
            ttl_ms: self.settings.ttl_ms,
        };
        let mut sent;
        let answer = retry!("taking a session", {
            sent = now();
            self.server.take_session(&request).await
        });
        match answer {
            Ok(answer) => {
                let valid_for = answer.taken.as_ref().map_or(0, |taken| taken.remaining_ms);
                WorkerInput::Taken(
                    session,
                    answer,
                    local_deadline(sent, TickDuration::from_millis(valid_for)),
                )
            }
            Err(WorkerError::LeadershipLost(why)) => WorkerInput::LeadershipLost(why),
            Err(error) => {
                report_rejection(&format!("the worker the session {session}"), &error);
                WorkerInput::NotTaken(session)
            }
        }
    }

    async fn report(&self, session: String, process: String) -> WorkerInput {
        let request =
            IntentSessionRunningReport { guard: self.leader_fence, session_id: session.clone(), process };
        match retry!("reporting a pipeline", self.server.report_running(&request).await) {
            Ok(answer) => WorkerInput::Reported(session, answer),
            Err(WorkerError::LeadershipLost(why)) => WorkerInput::LeadershipLost(why),
            // A session that the server does not know, or does not let run, is over.
            Err(error) => {
                report_rejection(&format!("that session {session} runs"), &error);
                let (state, reason, outcome, taken) = ("ENDED".to_owned(), None, None, None);
                WorkerInput::Reported(session, IntentSessionStatus { state, reason, outcome, taken })
            }
        }
    }

    async fn finish(&self, session: String, reason: &str, detail: &str) -> WorkerInput {
        let detail: String =
            detail.chars().filter(|letter| !letter.is_control()).take(MAX_DETAIL_CHARS).collect();
        let request = IntentSessionFinishRequest {
            guard: self.leader_fence,
            session_id: session.clone(),
            reason: reason.to_owned(),
            detail: Some(detail).filter(|detail| !detail.is_empty()),
        };
        match retry!("finishing a session", self.server.finish_session(&request).await) {
            Ok(_) => {}
            Err(WorkerError::LeadershipLost(why)) => return WorkerInput::LeadershipLost(why),
            Err(error) => report_rejection(&format!("to finish session {session}"), &error),
        }
        WorkerInput::Finished(session)
    }

    /// Asked until the guard is lost, even where it is refused: nothing else can be done.
    async fn keep(&self, sessions: Vec<String>) -> WorkerInput {
        let Settings { ttl_ms, renew_every_ms, .. } = *self.settings;
        let request = IntentSessionRenewalRequest { guard: self.leader_fence, ttl_ms, sessions };
        let patience = Duration::from_millis(renew_every_ms.max(MIN_RENEWAL_TIMEOUT_MS));
        let mut sent;
        loop {
            let answer = retry!("renewing leases", {
                sent = now();
                let late = |_| Err(WorkerError::Transient("the server took too long".to_owned()));
                timeout(patience, self.server.renew_leases(&request)).await.unwrap_or_else(late)
            });
            let kept = match answer {
                Ok(kept) => kept,
                Err(WorkerError::LeadershipLost(why)) => return WorkerInput::LeadershipLost(why),
                Err(error) => {
                    report_rejection("to renew leases", &error);
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let until = |remaining_ms| local_deadline(sent, TickDuration::from_millis(remaining_ms));
            let sessions = kept.sessions.into_iter().map(|kept| RenewalResult {
                until: kept.held.then(|| until(kept.remaining_ms)),
                session: kept.session_id,
                state: kept.state,
            });
            return WorkerInput::Kept(until(kept.remaining_ms), sessions.collect());
        }
    }

    fn send_input(&self, input: WorkerInput) {
        // Nobody hears it: then nobody works any more.
        let _ = self.input_sender.send(input);
    }
}

/// Says that the server refused something. That a session is not known any more is no news.
fn report_rejection(what: &str, error: &WorkerError) {
    let is_unknown = matches!(error, WorkerError::Rejected(problem) if problem.code == Code::NotFound);
    if !is_unknown {
        print_stderr(&format!("tenure: the server refuses {what}: {}\n", error.message()));
    }
}

/// Who is asked.
#[derive(Clone)]
pub enum ServerHandle {
    /// This very process.
    InProcess(WorkerApi),
    /// A server.
    Remote(Client),
}

/// Why there is no answer. The variants differ by what the worker does next.
#[derive(Debug)]
pub enum WorkerError {
    /// Nobody answers, or not now: ask again.
    Transient(String),
    /// The guard is somebody else's, or nobody's: end everything.
    LeadershipLost(String),
    /// Somebody has it.
    Held(Box<Problem>),
    /// Asking again would lead to the same.
    Rejected(Box<Problem>),
}

/// One method for each request: its name here and in the office, and in the client.
macro_rules! requests {
    ($($(#[$documentation:meta])* $name:ident = $remote:ident($request:ty) -> $answer:ty;)*) => {
        impl ServerHandle {
            $($(#[$documentation])*
            pub async fn $name(&self, request: &$request) -> Result<$answer, WorkerError> {
                match self {
                    Self::InProcess(worker_api) => worker_api.$name(request).await.map_err(of_problem),
                    Self::Remote(client) => client.$remote(request).await.map_err(of_error),
                }
            })*
        }
    };
}

requests! {
    /// Be the one worker, or stay it.
    acquire_leader_lock = worker_acquire_leader_lock(LeaderLockRequest) -> LeaderLockGrant;
    /// Which sessions changed.
    changed_sessions = worker_changed_sessions(IntentSessionChangesRequest) -> IntentSessionChanges;
    /// A session with its leases.
    take_session = worker_take_session(IntentSessionTakeRequest) -> IntentSessionStatus;
    /// Its pipeline runs.
    report_running = worker_report_running(IntentSessionRunningReport) -> IntentSessionStatus;
    /// Its pipeline is gone.
    finish_session = worker_finish_session(IntentSessionFinishRequest) -> IntentSessionStatus;
    /// The worker lives, and so do these sessions.
    renew_leases = worker_renew_leases(IntentSessionRenewalRequest) -> IntentSessionRenewals;
    /// The processes of these sessions were seen gone.
    wipe_sessions = worker_wipe_sessions(IntentSessionWipeRequest) -> WipeResult;
    /// The worker ends.
    release_leader_lock = worker_release_leader_lock(LeaderLockReleaseRequest) -> ();
}

impl WorkerError {
    /// For people.
    pub fn message(&self) -> String {
        match self {
            Self::Transient(text) | Self::LeadershipLost(text) => text.clone(),
            Self::Held(problem) | Self::Rejected(problem) => {
                format!("{} ({})", problem.detail, problem.code.as_str())
            }
        }
    }
}

fn of_error(error: Error) -> WorkerError {
    match error {
        Error::Problem(problem) => of_problem(problem),
        other => WorkerError::Transient(other.to_string()),
    }
}

fn of_problem(problem: Box<Problem>) -> WorkerError {
    match problem.code {
        Code::GuardLost => WorkerError::LeadershipLost(problem.detail),
        Code::Held => WorkerError::Held(problem),
        code if code.is_retryable() => {
            WorkerError::Transient(format!("{} ({})", problem.detail, problem.code.as_str()))
        }
        _ => WorkerError::Rejected(problem),
    }
}
