//! A task per claim: sends its heartbeats, all leases in one request, and gives them back.

use std::sync::Arc;

use tenure_api::{AgentLease, AgentLeases, Heartbeat};
use tenure_core::kernel::{Fence, Span};
use tokio::sync::{mpsc, oneshot, watch};

use super::attempt::Engaged;
use super::identity::Agent;
use super::pulse::{Pulse, Standing};
use crate::client::Client;
use crate::clock::{boot_microseconds, sleep_until_some};
use crate::error::Error;
use crate::keeper::{Attempt, Call, Effect, Input, Outcome};
use crate::key::random;

/// What the program wants of the task.
pub(super) enum Order {
    /// Give everything back.
    Release(oneshot::Sender<Result<(), Error>>),
    /// Send no heartbeat any more, and leave everything as it is.
    HandOver(oneshot::Sender<()>),
}

/// What a claim has of its task.
pub(super) struct Kept {
    pub(super) leases: Arc<Vec<AgentLease>>,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) orders: mpsc::UnboundedSender<Order>,
}

struct Keeping {
    client: Client,
    ids: Arc<AgentLeases>,
    fence: Fence,
    pulse: Pulse,
    standing: watch::Sender<Standing>,
    heard: mpsc::UnboundedSender<(Attempt, What)>,
    /// Says once whether the leases are the agent's.
    answer: Option<oneshot::Sender<bool>>,
    is_stopped: bool,
    is_refused: bool,
    last_error: Option<Error>,
    engaged: Engaged,
}

/// What was heard.
enum What {
    Beat(Heartbeat),
    Released,
    Failed(Error),
}

/// Keeps the leases that were granted in answer to what was sent at `sent`. `None` if they were over before that was heard.
pub(super) async fn start(agent: &Agent, leases: Vec<AgentLease>, sent: u64) -> Option<Kept> {
    let fence = Fence(leases.first()?.fence);
    // What the server gives may be less than was asked for.
    let ttl = Span::from_millis(leases.iter().map(|lease| lease.ttl).min()?);
    let valid_for = Span::from_millis(leases.iter().map(|lease| lease.remaining_ms).min()?);
    let skew = Span(u64::try_from(agent.skew.as_micros()).unwrap_or(u64::MAX));
    let mut pulse = Pulse::new(ttl, skew);
    let effects = pulse.begin(fence, valid_for, sent, boot_microseconds(), random());
    let (standing, watched) = watch::channel(pulse.standing().clone());
    let (heard, hears) = mpsc::unbounded_channel();
    let (orders, ordered) = mpsc::unbounded_channel();
    let (answer, answered) = oneshot::channel();
    let ids = Arc::new(agent.leases(leases.iter().map(|lease| lease.id.clone()).collect()));
    let client = agent.client.clone();
    let keeping = Keeping {
        client,
        ids,
        fence,
        pulse,
        standing,
        heard,
        answer: Some(answer),
        is_stopped: false,
        is_refused: false,
        last_error: None,
        engaged: agent.attempt.engage(),
    };
    tokio::spawn(keeping.run(effects, hears, ordered));
    let is_held = answered.await.unwrap_or(false);
    is_held.then(|| Kept { leases: Arc::new(leases), standing: watched, orders })
}

impl Keeping {
    async fn run(
        mut self,
        effects: Vec<Effect>,
        mut hears: mpsc::UnboundedReceiver<(Attempt, What)>,
        mut orders: mpsc::UnboundedReceiver<Order>,
    ) {
        let _going_on = self.client.background().begin();
        let mut released = None;
        effects.into_iter().for_each(|effect| self.perform(effect));
        while !self.is_stopped || !self.pulse.is_done() {
            tokio::select! {
                Some((attempt, what)) = hears.recv() => self.hear(attempt, what),
                order = orders.recv(), if !self.is_stopped => match order {
                    Some(Order::HandOver(done)) => {
                        let _ = done.send(());
                        return;
                    }
                    // They were over before they could be believed in, and are declared anew.
                    None if self.is_refused => return,
                    Some(Order::Release(done)) => {
                        released = Some(done);
                        self.stop();
                    }
                    None => self.stop(),
                },
                () = sleep_until_some(self.pulse.wake_at()) => self.step(Input::Woken),
            }
        }
        if self.pulse.standing().lost.is_some() {
            // Of several leases some may live on.
            self.last_error = self.client.release_all(&self.ids).await.err();
        }
        // The attempt is over before anybody is told.
        drop(self.engaged);
        if let Some(released) = released {
            let _ = released.send(self.last_error.take().map_or(Ok(()), Err));
        }
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.step(Input::Stop);
    }

    fn step(&mut self, input: Input) {
        let effects = self.pulse.step(input, boot_microseconds(), random());
        self.after(effects);
    }

    fn after(&mut self, effects: Vec<Effect>) {
        self.standing.send_if_modified(|standing| {
            let is_news = standing != self.pulse.standing();
            standing.clone_from(self.pulse.standing());
            is_news
        });
        effects.into_iter().for_each(|effect| self.perform(effect));
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { attempt, call: Call::Renew(_) } => {
                self.send(attempt, |client, ids| async move {
                    client.heartbeat(&ids).await.map_or_else(What::Failed, What::Beat)
                });
            }
            Effect::Send { attempt, call: Call::Release(_) } if self.is_stopped => {
                self.send(attempt, |client, ids| async move {
                    client.release_all(&ids).await.map_or_else(What::Failed, |_| What::Released)
                });
            }
            // What is lost is given back when the program is done with it, or declared anew. A release that arrives after that
            // would end what was had again.
            Effect::Send { attempt, .. } => {
                let _ = self.heard.send((attempt, What::Released));
            }
            Effect::Held(_) => self.answer_with(true),
            Effect::Refused => {
                self.is_refused = true;
                self.answer_with(false);
            }
            Effect::Lost => {}
        }
    }

    fn send<F: Future<Output = What> + Send + 'static>(
        &self,
        attempt: Attempt,
        ask: impl FnOnce(Client, Arc<AgentLeases>) -> F,
    ) {
        let (heard, asked) = (self.heard.clone(), ask(self.client.clone(), self.ids.clone()));
        tokio::spawn(async move {
            let _ = heard.send((attempt, asked.await));
        });
    }

    fn hear(&mut self, attempt: Attempt, what: What) {
        let outcome = match what {
            What::Beat(beat) => self.beaten(&beat),
            What::Released => {
                self.last_error = None;
                Outcome::Over
            }
            What::Failed(error) => {
                let passes = error.passes();
                if !passes && !self.is_stopped {
                    self.pulse
                        .ended(error.code().map_or_else(|| "REFUSED".into(), |code| code.as_str().into()));
                }
                self.last_error = Some(error);
                if passes { Outcome::Failed } else { Outcome::Refused }
            }
        };
        let effects = self.pulse.heard(attempt, outcome, boot_microseconds(), random());
        self.after(effects);
    }

    /// All of them live, or the claim is over.
    fn beaten(&mut self, beat: &Heartbeat) -> Outcome {
        if let Some(rejected) = beat.rejected.first() {
            self.pulse.ended(rejected.code.clone());
            return Outcome::Over;
        }
        match beat.renewed.iter().map(|beat| beat.remaining_ms).min() {
            Some(remaining) if beat.renewed.len() == self.ids.lease_ids.len() => {
                self.last_error = None;
                Outcome::Valid { fence: self.fence, valid_for: Span::from_millis(remaining) }
            }
            _ => Outcome::Failed,
        }
    }

    fn answer_with(&mut self, is_held: bool) {
        if let Some(answer) = self.answer.take() {
            let _ = answer.send(is_held);
        }
    }
}
