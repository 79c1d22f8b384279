//! A task for each held manifest: sends its heartbeats, all leases in one request, and releases them.

use std::sync::Arc;

use tenure_api::{AgentLease, AgentLeaseIds, HeartbeatResult};
use tenure_core::kernel::{Fence, TickDuration};
use tokio::sync::{mpsc, oneshot, watch};

use super::heartbeat::{AgentHeartbeat, HoldStatus};
use super::identity::{Agent, PriorityGuard};
use crate::client::{Client, random_u64};
use crate::clock::{boot_microseconds, sleep_until_or_forever};
use crate::error::Error;
use crate::keepalive::{AttemptId, Effect, Input, KeepAliveRequest, ReplyOutcome};

/// What the program wants of the task.
pub(super) enum HeartbeatCommand {
    /// Give everything back.
    Release(oneshot::Sender<Result<(), Error>>),
    /// Send no heartbeat any more, and leave everything as it is.
    Detach(oneshot::Sender<()>),
}

/// What a claim has of its task.
pub(super) struct HeartbeatHandle {
    pub(super) leases: Arc<Vec<AgentLease>>,
    pub(super) status: watch::Receiver<HoldStatus>,
    pub(super) commands: mpsc::UnboundedSender<HeartbeatCommand>,
}

struct HeartbeatTask {
    client: Client,
    ids: Arc<AgentLeaseIds>,
    fence: Fence,
    heartbeat: AgentHeartbeat,
    status: watch::Sender<HoldStatus>,
    outcomes: mpsc::UnboundedSender<(AttemptId, RequestOutcome)>,
    /// Says once whether the leases are the agent's.
    is_held: Option<oneshot::Sender<bool>>,
    is_stopped: bool,
    is_refused: bool,
    last_error: Option<Error>,
    priority_guard: PriorityGuard,
}

/// What was heard.
enum RequestOutcome {
    Renewed(HeartbeatResult),
    Released,
    Failed(Error),
}

/// Keeps the leases that were granted in answer to what was sent at `sent`. `None` if they were over before that was heard.
pub(super) async fn start(agent: &Agent, leases: Vec<AgentLease>, sent: u64) -> Option<HeartbeatHandle> {
    let fence = Fence(leases.first()?.fence);
    // What the server gives may be less than was asked for.
    let ttl = TickDuration::from_millis(leases.iter().map(|lease| lease.ttl).min()?);
    let valid_for = TickDuration::from_millis(leases.iter().map(|lease| lease.remaining_ms).min()?);
    let skew = TickDuration(u64::try_from(agent.skew.as_micros()).unwrap_or(u64::MAX));
    let mut heartbeat = AgentHeartbeat::new(ttl, skew);
    let effects = heartbeat.start(fence, valid_for, sent, boot_microseconds(), random_u64());
    let (standing, watched) = watch::channel(heartbeat.status().clone());
    let (outcomes, outcome_receiver) = mpsc::unbounded_channel();
    let (commands, command_receiver) = mpsc::unbounded_channel();
    let (answer, answered) = oneshot::channel();
    let ids = Arc::new(agent.lease_ids(leases.iter().map(|lease| lease.id.clone()).collect()));
    let client = agent.client.clone();
    let task = HeartbeatTask {
        client,
        ids,
        fence,
        heartbeat,
        status: standing,
        outcomes,
        is_held: Some(answer),
        is_stopped: false,
        is_refused: false,
        last_error: None,
        priority_guard: agent.priority.pin(),
    };
    tokio::spawn(task.run(effects, outcome_receiver, command_receiver));
    let is_held = answered.await.unwrap_or(false);
    is_held.then(|| HeartbeatHandle { leases: Arc::new(leases), status: watched, commands })
}

impl HeartbeatTask {
    async fn run(
        mut self,
        effects: Vec<Effect>,
        mut outcomes: mpsc::UnboundedReceiver<(AttemptId, RequestOutcome)>,
        mut commands: mpsc::UnboundedReceiver<HeartbeatCommand>,
    ) {
        let _task_guard = self.client.tasks().track();
        let mut released = None;
        effects.into_iter().for_each(|effect| self.perform(effect));
        while !self.is_stopped || !self.heartbeat.is_done() {
            tokio::select! {
                Some((attempt, what)) = outcomes.recv() => self.handle_outcome(attempt, what),
                order = commands.recv(), if !self.is_stopped => match order {
                    Some(HeartbeatCommand::Detach(done)) => {
                        let _ = done.send(());
                        return;
                    }
                    // They were over before they could be believed in, and are declared anew.
                    None if self.is_refused => return,
                    Some(HeartbeatCommand::Release(done)) => {
                        released = Some(done);
                        self.stop();
                    }
                    None => self.stop(),
                },
                () = sleep_until_or_forever(self.heartbeat.wake_at()) => self.step(Input::Woken),
            }
        }
        if self.heartbeat.status().lost.is_some() {
            // Of several leases some may live on.
            self.last_error = self.client.release_agent_leases(&self.ids).await.err();
        }
        // The attempt is over before anybody is told.
        drop(self.priority_guard);
        if let Some(released) = released {
            let _ = released.send(self.last_error.take().map_or(Ok(()), Err));
        }
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.step(Input::Stop);
    }

    fn step(&mut self, input: Input) {
        let effects = self.heartbeat.step(input, boot_microseconds(), random_u64());
        self.apply_effects(effects);
    }

    fn apply_effects(&mut self, effects: Vec<Effect>) {
        self.status.send_if_modified(|standing| {
            let is_news = standing != self.heartbeat.status();
            standing.clone_from(self.heartbeat.status());
            is_news
        });
        effects.into_iter().for_each(|effect| self.perform(effect));
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { request_id: attempt, request: KeepAliveRequest::Renew(_) } => {
                self.send(attempt, |client, ids| async move {
                    client.heartbeat(&ids).await.map_or_else(RequestOutcome::Failed, RequestOutcome::Renewed)
                });
            }
            Effect::Send { request_id: attempt, request: KeepAliveRequest::Release(_) }
                if self.is_stopped =>
            {
                self.send(attempt, |client, ids| async move {
                    client
                        .release_agent_leases(&ids)
                        .await
                        .map_or_else(RequestOutcome::Failed, |_| RequestOutcome::Released)
                });
            }
            // What is lost is given back when the program is done with it, or declared anew. A release that arrives after that
            // would end what was had again.
            Effect::Send { request_id: attempt, .. } => {
                let _ = self.outcomes.send((attempt, RequestOutcome::Released));
            }
            Effect::Held(_) => self.report_held(true),
            Effect::Refused => {
                self.is_refused = true;
                self.report_held(false);
            }
            Effect::Lost => {}
        }
    }

    fn send<F: Future<Output = RequestOutcome> + Send + 'static>(
        &self,
        attempt: AttemptId,
        send: impl FnOnce(Client, Arc<AgentLeaseIds>) -> F,
    ) {
        let (outcomes, response) = (self.outcomes.clone(), send(self.client.clone(), self.ids.clone()));
        tokio::spawn(async move {
            let _ = outcomes.send((attempt, response.await));
        });
    }

    fn handle_outcome(&mut self, attempt: AttemptId, what: RequestOutcome) {
        let outcome = match what {
            RequestOutcome::Renewed(beat) => self.handle_heartbeat(&beat),
            RequestOutcome::Released => {
                self.last_error = None;
                ReplyOutcome::Ended
            }
            RequestOutcome::Failed(error) => {
                let passes = error.is_transient();
                if !passes && !self.is_stopped {
                    self.heartbeat.record_end(
                        error.code().map_or_else(|| "REFUSED".into(), |code| code.as_str().into()),
                    );
                }
                self.last_error = Some(error);
                if passes { ReplyOutcome::Failed } else { ReplyOutcome::Refused }
            }
        };
        let effects = self.heartbeat.handle_reply(attempt, outcome, boot_microseconds(), random_u64());
        self.apply_effects(effects);
    }

    /// All of them live, or the claim is over.
    fn handle_heartbeat(&mut self, beat: &HeartbeatResult) -> ReplyOutcome {
        if let Some(rejected) = beat.rejected.first() {
            self.heartbeat.record_end(rejected.code.clone());
            return ReplyOutcome::Ended;
        }
        match beat.renewed.iter().map(|beat| beat.remaining_ms).min() {
            Some(remaining) if beat.renewed.len() == self.ids.lease_ids.len() => {
                self.last_error = None;
                ReplyOutcome::Valid { fence: self.fence, valid_for: TickDuration::from_millis(remaining) }
            }
            _ => ReplyOutcome::Failed,
        }
    }

    fn report_held(&mut self, is_held: bool) {
        if let Some(answer) = self.is_held.take() {
            let _ = answer.send(is_held);
        }
    }
}
