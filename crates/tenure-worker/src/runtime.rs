//! Executes the actions of the state machine, and tells it their outcomes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_api::{IntentSessionChanges, LeaderLockReleaseRequest};
use tenure_host::stderr::{print_error, print_stderr};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::leader::LeaderLock;
use super::pipeline::{Pipeline, PipelineCommand};
use super::requests::{ServerHandle, WorkerRequests};
use super::retry::{ShutdownReceiver, wait_for_stop};
use super::settings::Settings;
use super::state_machine::{WorkerAction, WorkerInput, WorkerStateMachine};
use super::{WorkerExit, pipeline};
use crate::process_supervisor::{Timer, now};

/// When pipelines that were told to end with the worker are killed, and when the worker goes all the same.
const KILL_AFTER: Duration = Duration::from_secs(7);
const EXIT_AFTER: Duration = Duration::from_secs(9);
/// How long killed pipelines may take to be gone after their leases, once the guard is lost.
const KILLED_PIPELINE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to hear that we go.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// A worker with its guard, and everything that it has begun.
pub struct WorkerRuntime {
    requests: WorkerRequests,
    settings: Arc<Settings>,
    plan: WorkerStateMachine,
    inputs: UnboundedReceiver<WorkerInput>,
    input_sender: UnboundedSender<WorkerInput>,
    /// How to reach the pipelines that are not gone.
    pipelines: HashMap<String, UnboundedSender<PipelineCommand>>,
    /// What is being asked. It ends with us.
    running_requests: JoinSet<()>,
}

impl WorkerRuntime {
    /// A worker without sessions.
    pub fn new(server: ServerHandle, settings: Arc<Settings>, guard: LeaderLock) -> Self {
        let (input_sender, inputs) = mpsc::unbounded_channel();
        let plan =
            WorkerStateMachine::new(guard.valid_until, settings.renew_every_ms.saturating_mul(1_000), now());
        let requests = WorkerRequests::new(server, settings.clone(), guard.fence, input_sender.clone());
        let (pipelines, running_requests) = (HashMap::new(), JoinSet::new());
        Self { requests, settings, plan, inputs, input_sender, pipelines, running_requests }
    }

    /// Works until it is told to stop, or the guard is lost. `first` is how sessions were when it began.
    pub async fn run(
        mut self,
        first: IntentSessionChanges,
        stop: &ShutdownReceiver,
    ) -> Result<(), WorkerExit> {
        let timer = Timer::new().map_err(WorkerExit::System)?;
        let _ = self.input_sender.send(WorkerInput::Changed(first.sessions));
        self.running_requests.spawn(self.requests.clone().watch_sessions(first.revision));
        // When to kill, and when to go.
        let mut shutdown: Option<[Instant; 2]> = None;
        loop {
            let [kill_at, go_at] = shutdown.map_or([None, None], |[kill, go]| [Some(kill), Some(go)]);
            let acts = tokio::select! {
                input = self.inputs.recv() => {
                    let input = input.expect("this crew can tell itself something");
                    self.remove_ended(&input);
                    self.plan.handle(input)
                }
                () = timer.wait_until(Some(self.plan.wake_at())) => self.plan.wake(now()),
                () = wait_for_stop(stop), if shutdown.is_none() => {
                    let started_at = Instant::now();
                    shutdown = Some([started_at + KILL_AFTER, started_at + EXIT_AFTER]);
                    self.plan.handle(WorkerInput::Stop)
                }
                () = until(kill_at) => {
                    self.order_all(|| PipelineCommand::Kill);
                    shutdown = shutdown.map(|[_, go]| [go, go]);
                    Vec::new()
                }
                () = until(go_at) => break,
            };
            for act in acts {
                if let WorkerAction::Abandon(why) = act {
                    return Err(self.abandon(why).await);
                }
                self.act(act);
            }
            while self.running_requests.try_join_next().is_some() {}
            if self.plan.is_done() {
                break;
            }
        }
        self.running_requests.abort_all();
        let leaving = LeaderLockReleaseRequest { guard: self.requests.leader_fence() };
        // If the server does not hear it, the guard runs out.
        let _ = timeout(LEAVE_TIMEOUT, self.requests.server().release_leader_lock(&leaving)).await;
        Ok(())
    }

    /// Who is gone cannot be told anything any more.
    fn remove_ended(&mut self, input: &WorkerInput) {
        if let WorkerInput::Gone(session, _)
        | WorkerInput::NotStarted(session, _)
        | WorkerInput::TooLate(session) = input
        {
            self.pipelines.remove(session);
        }
    }

    fn act(&mut self, act: WorkerAction) {
        match act {
            WorkerAction::Start(session, taken, until) => {
                self.start(Pipeline { session: *session, taken, valid_until: until })
            }
            WorkerAction::Extend(session, until) => self.order(&session, PipelineCommand::Extend(until)),
            WorkerAction::End(session) => self.order(&session, PipelineCommand::End),
            WorkerAction::Abandon(_) => {}
            request => {
                self.running_requests.spawn(self.requests.clone().execute(request));
            }
        }
    }

    fn start(&mut self, pipeline: Pipeline) {
        let (orders, received) = mpsc::unbounded_channel();
        self.pipelines.insert(pipeline.session.session_id.clone(), orders);
        let (settings, input_sender) = (self.settings.clone(), self.input_sender.clone());
        let live = self.pipelines.keys().cloned().collect();
        if let Err(error) = pipeline::prune(&settings.logs, settings.logs_kept, &live) {
            print_error("old logs of sessions cannot be removed", &error);
        }
        // Not among what ends with us: it ends when its pipeline has ended.
        tokio::spawn(async move { pipeline.run(&settings, received, &input_sender).await });
    }

    fn order(&self, session: &str, order: PipelineCommand) {
        if let Some(pipeline) = self.pipelines.get(session) {
            // One that does not hear is gone, and says so.
            let _ = pipeline.send(order);
        }
    }

    fn order_all(&self, order: impl Fn() -> PipelineCommand) {
        for session in self.pipelines.keys() {
            self.order(session, order());
        }
    }

    /// The guard is lost: everything ends, and nothing can be asked any more.
    async fn abandon(mut self, why: String) -> WorkerExit {
        self.running_requests.abort_all();
        self.order_all(|| PipelineCommand::End);
        let patience = Duration::from_millis(self.settings.ttl_ms) + KILLED_PIPELINE_TIMEOUT;
        let gone = async {
            while !self.pipelines.is_empty() {
                match self.inputs.recv().await {
                    Some(input) => self.remove_ended(&input),
                    None => break,
                }
            }
        };
        if timeout(patience, gone).await.is_err() {
            let remaining: Vec<&str> = self.pipelines.keys().map(String::as_str).collect();
            print_stderr(&format!(
                "tenure: the pipelines of these sessions do not end: {}. Look for their processes.\n",
                remaining.join(", ")
            ));
        }
        WorkerExit::LeadershipLost(why)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
