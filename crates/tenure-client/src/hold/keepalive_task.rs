//! A task for each lease: sends what `KeepAlive` requests, and feeds it the responses. It decides nothing that `KeepAlive`
//! could decide.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tenure_api::{AcquireRequest, Code, LeaseGrant};
use tenure_core::kernel::{Fence, TickDuration};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::held_lease::{HeldLease, HeldLeaseSnapshot, HoldError, KeepAliveCommand, LeaseLost};
use super::queue_position::withdraw;
use super::requests::{self, RequestEvent, RequestOutcome};
use super::{LeaseRequest, QueueCallback, WaitLimit, queue_position};
use crate::client::{Client, Secret, TaskGuard, random_u64};
use crate::clock::{boot_microseconds, sleep_until_or_forever};
use crate::error::Error;
use crate::keepalive::{AttemptId, Effect, Input, KeepAlive, KeepAliveRequest};

/// How it begins.
pub(super) enum KeepAliveSource {
    /// It is asked for.
    Request { leases: Vec<AcquireRequest>, is_batch: bool },
    /// It is there already, in answer to what was sent then.
    Granted { granted: Box<LeaseGrant>, sent: u64 },
}

/// Whoever does not want to wait still wants to know: for so long a request is repeated whose answer was lost.
const NO_WAIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The server says by itself when a wait is over; it is given this much longer to say so.
pub(super) const RESPONSE_MARGIN: Duration = Duration::from_secs(5);
/// So many requests for one lease may be under way: the newest, and the one before, which may be answered first.
const MAX_ACQUIRE_REQUESTS: usize = 2;
/// A request for a lease that nobody wants any more is waited for so long, if it may yet be answered.
const FINAL_TIMEOUT: Duration = Duration::from_secs(30);

type ReplySender = oneshot::Sender<Result<HeldLease, HoldError>>;

pub(super) struct KeepAliveTask {
    client: Client,
    pub(super) request: Arc<LeaseRequest>,
    pub(super) wait: WaitLimit,
    pub(super) keep_alive: KeepAlive,
    /// What was granted, by the first fence of each: there is more than one only if something went wrong.
    pub(super) granted: BTreeMap<Fence, Arc<Vec<LeaseGrant>>>,
    pub(super) state: Option<watch::Sender<HeldLeaseSnapshot>>,
    events: mpsc::UnboundedSender<RequestEvent>,
    commands: mpsc::UnboundedReceiver<KeepAliveCommand>,
    /// Goes into the guard.
    command_sender: Option<mpsc::UnboundedSender<KeepAliveCommand>>,
    reply: Option<ReplySender>,
    /// Requests for the lease that may be answered yet.
    pub(super) acquire_requests: VecDeque<(AttemptId, AbortHandle)>,
    /// Tells the place in the queue.
    position_reporter: Option<AbortHandle>,
    /// Whether there was ever a connection.
    pub(super) was_reached: bool,
    /// When nobody wants to wait any more, or for the last word.
    pub(super) deadline: Option<u64>,
    pub(super) last_error: Option<Error>,
    pub(super) end: Option<String>,
    reason: Option<String>,
    pub(super) released: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) is_stopped: bool,
    /// What lives on of several leases of which one is over. It is given back when the program is done, and not before:
    /// it may still be at work.
    pub(super) remaining_leases: Option<Arc<Vec<LeaseGrant>>>,
    /// The answer to a request for the lease was lost not long ago.
    pub(super) is_outcome_unknown: bool,
    /// The withdrawal that got us out of the queue, while something may yet get us into it again.
    pub(super) withdrawn: Option<AttemptId>,
    _task_guard: TaskGuard,
}

/// Starts the task. `answer` gets the guard; when nobody waits for it any more, everything is taken back.
pub(super) fn start(
    client: Client,
    source: KeepAliveSource,
    wait: WaitLimit,
    on_queue: Option<QueueCallback>,
    answer: ReplySender,
) {
    let (events, event_receiver) = mpsc::unbounded_channel();
    let (command_sender, commands) = mpsc::unbounded_channel();
    let now = boot_microseconds();
    let (request, granted) = match source {
        KeepAliveSource::Request { leases, is_batch } => (LeaseRequest::new(leases, is_batch, wait), None),
        KeepAliveSource::Granted { granted, sent } => {
            (LeaseRequest::new(Vec::new(), false, WaitLimit::No), Some((granted, sent)))
        }
    };
    let ttl_ms = request.leases.iter().map(|lease| lease.ttl_ms).min();
    let ttl_ms = ttl_ms.or_else(|| granted.as_ref().map(|(granted, _)| granted.lease.ttl_ms)).unwrap_or(0);
    let telling = on_queue.filter(|_| request.has_wait()).map(|callback| {
        tokio::spawn(queue_position::report_position(client.clone(), request.clone(), callback))
            .abort_handle()
    });
    let timeout = match wait {
        WaitLimit::No => Some(NO_WAIT_TIMEOUT),
        WaitLimit::For(wait) => Some(wait.saturating_add(RESPONSE_MARGIN)),
        WaitLimit::Forever => None,
    };
    let task = KeepAliveTask {
        _task_guard: client.tasks().track(),
        client,
        request,
        wait,
        keep_alive: KeepAlive::new(TickDuration::from_millis(ttl_ms)),
        granted: BTreeMap::new(),
        state: None,
        events,
        commands,
        command_sender: Some(command_sender),
        reply: Some(answer),
        acquire_requests: VecDeque::new(),
        position_reporter: telling,
        was_reached: granted.is_some(),
        deadline: timeout.map(|patience| now.saturating_add(to_microseconds(patience))),
        last_error: None,
        end: None,
        reason: None,
        released: None,
        is_stopped: false,
        remaining_leases: None,
        is_outcome_unknown: false,
        withdrawn: None,
    };
    tokio::spawn(task.run(granted, event_receiver));
}

impl KeepAliveTask {
    async fn run(
        mut self,
        granted: Option<(Box<LeaseGrant>, u64)>,
        mut events: mpsc::UnboundedReceiver<RequestEvent>,
    ) {
        match granted {
            None => self.step(Input::Start),
            Some((granted, sent)) => self.start_with_grant(*granted, sent),
        }
        while !self.is_finished() || self.remaining_leases.is_some() && !self.is_stopped {
            tokio::select! {
                Some(event) = events.recv() => self.handle_event(event),
                order = self.commands.recv(), if !self.is_stopped => self.handle_command(order),
                () = reply_dropped(&mut self.reply) => {
                    self.reply = None;
                    self.stop();
                }
                () = sleep_until_or_forever(self.keep_alive.wake_at()) => self.step(Input::Woken),
                () = sleep_until_or_forever(self.deadline) => self.handle_deadline(),
            }
        }
        if let Some(leases) = self.remaining_leases.take()
            && let RequestOutcome::Failed(error) =
                requests::release(&self.client, leases, self.reason.take()).await
        {
            self.last_error = Some(error);
        }
        if let Some(released) = self.released.take() {
            let _ = released.send(self.last_error.take().map_or(Ok(()), Err));
        }
    }

    /// Nothing is left to be said, and nothing can come any more.
    fn is_finished(&self) -> bool {
        self.keep_alive.is_done() && self.acquire_requests.is_empty() && self.reply.is_none()
    }

    /// As if the keeper had asked itself.
    fn start_with_grant(&mut self, granted: LeaseGrant, sent: u64) {
        for effect in self.keep_alive.step(Input::Start, sent, random_u64()) {
            if let Effect::Send { request_id: attempt, request: KeepAliveRequest::Acquire } = effect {
                let (request, what) = (self.request.clone(), RequestOutcome::Granted(vec![granted]));
                return self.handle_event(RequestEvent { request_id: attempt, request, outcome: what });
            }
        }
    }

    pub(super) fn step(&mut self, input: Input) {
        let effects = self.keep_alive.step(input, boot_microseconds(), random_u64());
        effects.into_iter().for_each(|effect| self.perform(effect));
        self.update_deadline();
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { request_id: attempt, request: call } => self.send(attempt, call),
            Effect::Held(fence) => self.handle_held(fence),
            Effect::Lost => {
                let how = self.end.take();
                let lost = how.map_or(LeaseLost::DeadlinePassed, |how| LeaseLost::Ended { end: how });
                self.state
                    .iter()
                    .for_each(|state| state.send_modify(|state| state.lost = Some(lost.clone())));
            }
            Effect::Refused => {
                let error = self.last_error.take().unwrap_or_else(|| self.no_response_error());
                self.send_reply(Err(hold_error(error)));
                self.set_final_deadline();
            }
        }
    }

    fn send(&mut self, attempt: AttemptId, call: KeepAliveRequest) {
        let (client, request, events) = (self.client.clone(), self.request.clone(), self.events.clone());
        let leases = match call {
            KeepAliveRequest::Renew(fence) | KeepAliveRequest::Release(fence) => {
                self.granted.get(&fence).cloned().unwrap_or_default()
            }
            KeepAliveRequest::Acquire | KeepAliveRequest::Withdraw => Arc::default(),
        };
        let (reason, is_acquire_pending) = (self.reason.clone(), !self.acquire_requests.is_empty());
        let task = tokio::spawn(async move {
            let what = match call {
                KeepAliveRequest::Acquire => acquire(&client, &request, attempt, &events).await,
                KeepAliveRequest::Renew(_) => requests::renew(&client, leases).await,
                KeepAliveRequest::Release(_) => requests::release(&client, leases, reason).await,
                KeepAliveRequest::Withdraw => withdraw(&client, &request, is_acquire_pending).await,
            };
            let _ = events.send(RequestEvent { request_id: attempt, request, outcome: what });
        });
        if call == KeepAliveRequest::Acquire {
            self.acquire_requests.push_back((attempt, task.abort_handle()));
            // With the key another connection takes its place. Who waits for hours has asked thousands of times.
            while self.acquire_requests.len() > MAX_ACQUIRE_REQUESTS {
                self.acquire_requests.pop_front().into_iter().for_each(|(_, request)| request.abort());
            }
        }
    }

    fn handle_held(&mut self, fence: Fence) {
        self.deadline = None;
        self.last_error = None;
        let granted = self.granted.get(&fence).cloned().unwrap_or_default();
        let Some((first, command_sender)) = granted.first().zip(self.command_sender.take()) else { return };
        let (state, watched) = watch::channel(HeldLeaseSnapshot {
            leases: granted.iter().map(|granted| granted.lease.clone()).collect(),
            passports: granted.iter().map(|granted| granted.passport.clone()).collect(),
            deadline: self.keep_alive.deadline().unwrap_or(0),
            waiters: granted.iter().find_map(|granted| granted.lease.recall.clone()),
            lost: None,
        });
        self.state = Some(state);
        let guard =
            HeldLease::new(watched, command_sender, Secret::new(first.token.clone()), self.client.address());
        self.send_reply(Ok(guard));
    }

    /// A guard that nobody takes is dropped, and its orders end: that stops us.
    fn send_reply(&mut self, answer: Result<HeldLease, HoldError>) {
        self.stop_position_reporter();
        if let Some(waiting) = self.reply.take() {
            let _ = waiting.send(answer);
        }
    }

    fn handle_command(&mut self, order: Option<KeepAliveCommand>) {
        if let Some(KeepAliveCommand::Release { reason, done }) = order {
            self.reason = reason;
            self.released = Some(done);
        }
        self.stop();
    }

    fn stop(&mut self) {
        self.stop_position_reporter();
        self.is_stopped = true;
        self.set_final_deadline();
        self.step(Input::Stop);
    }

    /// What is under way may yet be answered with a grant, but nobody waits for that for long.
    fn set_final_deadline(&mut self) {
        self.deadline = Some(boot_microseconds().saturating_add(to_microseconds(FINAL_TIMEOUT)));
    }

    /// Nobody wants to wait any longer.
    fn handle_deadline(&mut self) {
        self.deadline = None;
        if self.reply.is_none() {
            self.abort_acquiring();
            return;
        }
        let error = self.last_error.take().unwrap_or_else(|| self.no_response_error());
        self.send_reply(Err(hold_error(error)));
        self.stop();
    }

    pub(super) fn abort_acquiring(&mut self) {
        self.acquire_requests.drain(..).for_each(|(_, request)| request.abort());
    }

    fn stop_position_reporter(&mut self) {
        self.position_reporter.take().into_iter().for_each(|telling| telling.abort());
    }

    fn no_response_error(&self) -> Error {
        Error::OutcomeUnknown { address: self.client.address(), source: "no answer in time".into() }
    }

    fn update_deadline(&self) {
        let Some(state) = &self.state else { return };
        let until = self.keep_alive.deadline();
        state.send_if_modified(|state| match until {
            Some(until) => std::mem::replace(&mut state.deadline, until) != until,
            None => false,
        });
    }
}

async fn acquire(
    client: &Client,
    request: &Arc<LeaseRequest>,
    attempt: AttemptId,
    events: &mpsc::UnboundedSender<RequestEvent>,
) -> RequestOutcome {
    let on_sent = || {
        let _ = events.send(RequestEvent {
            request_id: attempt,
            request: request.clone(),
            outcome: RequestOutcome::Sent,
        });
    };
    request
        .send(client, &request.to_api_request(), on_sent)
        .await
        .map_or_else(RequestOutcome::Failed, RequestOutcome::Granted)
}

fn hold_error(error: Error) -> HoldError {
    match error {
        Error::Problem(problem) if problem.code == Code::Held => HoldError::Held(problem),
        other => HoldError::Failed(other),
    }
}

/// Resolves when nobody waits for the answer any more.
async fn reply_dropped(answer: &mut Option<ReplySender>) {
    match answer {
        Some(answer) => answer.closed().await,
        None => std::future::pending().await,
    }
}

pub(super) fn to_microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
