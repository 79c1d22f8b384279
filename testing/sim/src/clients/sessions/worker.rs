//! One worker process: it holds the leader lock, takes sessions, shows them, and ends them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_client::local_deadline;
use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, Fence, Holder, IntentCommand, IntentOutcome,
    IntentSessionEnd, IntentSessionState, KeepAliveOutcome, LeaseCredential, LeaseMode, LeaseRequest, Nonce,
    Rejection, TakeIntentSession, Tick, TickDuration, leader_lock_resource, orchestrator_principal,
};
use tenure_core::lease::ReleaseReason;

use crate::clock::SimulatedClock;
use crate::invariants::{IntentSessionModel, IntentSessionsModel};
use crate::rng::Rng;

/// A process and the pipelines that it started.
#[derive(Debug)]
pub(in crate::clients) struct SimulatedWorker {
    name: Holder,
    pub(super) machine: u64,
    pub(super) clock: SimulatedClock,
    pub(super) ttl: TickDuration,
    tuners: u32,
    /// Its fence, and until when it believes in it, by its own clock.
    leader_lock: Option<(Fence, u64)>,
    pipelines: BTreeMap<Holder, Pipeline>,
    /// What it has ended, or lost: none of these starts again, whatever arrives late.
    done: BTreeSet<Holder>,
    pub(super) paused_until: u64,
    /// It ended or crashed. Its pipelines may not know yet.
    pub(super) is_gone: bool,
}

/// What shows a session. A watchdog of its own ends it in time, whatever becomes of the worker.
#[derive(Debug)]
struct Pipeline {
    resources: Vec<String>,
    until: u64,
    is_running: bool,
}

#[derive(Debug, Clone)]
pub(in crate::clients) enum WorkerRequestKind {
    Viewer,
    LeaderLock,
    Take { session: Holder, target: String },
    Run(Holder),
    Keep(Vec<Holder>),
    End,
    Leave,
}

#[derive(Debug, Clone)]
pub(in crate::clients) struct WorkerAnswer {
    pub(super) answer: CommandOutcome,
    pub(super) stamp: Tick,
    /// How long the guard lives from the stamp on, if this is about it.
    pub(super) valid_for: TickDuration,
}

/// What a worker finds when it looks around.
pub(super) struct WorkerObservation<'a> {
    pub(super) sessions: &'a IntentSessionsModel,
    /// Sessions of those before it, whose pipelines it has seen gone.
    pub(super) stale_sessions: Vec<Holder>,
    /// Who has the guard, if that one is proven dead.
    pub(super) dead_leader: Option<Holder>,
}

pub(super) fn parse_worker_number(name: &Holder) -> Option<u64> {
    name.as_str().strip_prefix("worker:")?.parse().ok()
}

impl SimulatedWorker {
    pub(super) fn new(
        number: u64,
        machine: u64,
        clock: SimulatedClock,
        ttl: TickDuration,
        tuners: u32,
    ) -> Self {
        let name = Holder::parse(&format!("worker:{number}")).expect("a plain name");
        let (pipelines, done) = (BTreeMap::new(), BTreeSet::new());
        let (leader_lock, paused_until, is_gone) = (None, 0, false);
        Self { name, machine, clock, ttl, tuners, leader_lock, pipelines, done, paused_until, is_gone }
    }

    /// What it shows at true time `now`, and what it believes to have for that.
    pub(super) fn locally_valid_sessions(&self, now: u64) -> impl Iterator<Item = (&Holder, &[String])> {
        let local = self.clock.microseconds(now);
        let shown = self.pipelines.iter().filter(move |(_, pipeline)| local < pipeline.until);
        shown.map(|(session, pipeline)| (session, pipeline.resources.as_slice()))
    }

    /// Ends what is left of a session.
    pub(super) fn remove_pipeline(&mut self, session: &Holder) {
        self.pipelines.remove(session);
    }

    pub(super) fn due_requests(
        &mut self,
        now: u64,
        seen: &WorkerObservation<'_>,
        calm: bool,
        rng: &mut Rng,
    ) -> Vec<(WorkerRequestKind, Command)> {
        let WorkerObservation { sessions, stale_sessions: remains, dead_leader: dead } = seen;
        let local = self.clock.microseconds(now);
        if self.is_gone {
            return Vec::new();
        }
        let Some((fence, until)) = self.leader_lock else {
            let is_needed = !calm || sessions.active().next().is_some();
            let reclaim = dead.iter().map(|dead| (WorkerRequestKind::End, self.reclaim_command(dead)));
            let acquire = std::iter::once((WorkerRequestKind::LeaderLock, self.acquire_command()));
            return reclaim.chain(acquire).filter(|_| is_needed).collect();
        };
        if local >= until {
            // Without the guard it must not go on: this one ends, and the next begins anew.
            self.leave();
            return Vec::new();
        }
        if calm && sessions.active().next().is_none() {
            let claim =
                LeaseCredential::Holder { holder: self.name.clone(), principal: orchestrator_principal() };
            let release = Command::Release { lease: fence, claim, reason: ReleaseReason::Voluntary };
            return vec![(WorkerRequestKind::Leave, release)];
        }
        self.pipelines.retain(|_, pipeline| local < pipeline.until);
        let mut asks: Vec<_> = sessions
            .active()
            .filter_map(|(id, session)| self.session_request(id, session, fence, calm, rng))
            .collect();
        if !remains.is_empty() {
            let wipe = IntentCommand::Wipe { guard: fence, sessions: remains.to_vec() };
            asks.push((WorkerRequestKind::End, Command::Intent(Box::new(wipe))));
        }
        let own: Vec<Holder> = self.pipelines.keys().cloned().collect();
        let keep = IntentCommand::KeepAlive { guard: fence, ttl: self.ttl, sessions: own.clone() };
        asks.push((WorkerRequestKind::Keep(own), Command::Intent(Box::new(keep))));
        asks
    }

    fn session_request(
        &mut self,
        id: &Holder,
        session: &IntentSessionModel,
        guard: Fence,
        calm: bool,
        rng: &mut Rng,
    ) -> Option<(WorkerRequestKind, Command)> {
        let is_own = session.worker.as_ref().is_some_and(|(_, taken)| *taken == guard);
        let (session_id, is_shown) = (id.clone(), self.pipelines.contains_key(id));
        let (ask, command) = match session.state {
            IntentSessionState::New | IntentSessionState::Starting
                if !is_shown && !self.done.contains(id) =>
            {
                if session.state == IntentSessionState::Starting && !is_own {
                    return None;
                }
                let nonces = [Nonce([1; 16]), Nonce([2; 16])];
                let (slots, ttl) = (self.tuners, self.ttl);
                let target = session.resources[0].clone();
                let take =
                    TakeIntentSession { session: session_id.clone(), leader: guard, slots, ttl, nonces };
                (WorkerRequestKind::Take { session: session_id, target }, IntentCommand::Take(take))
            }
            IntentSessionState::Starting | IntentSessionState::Running | IntentSessionState::Stopping
                if is_own =>
            {
                let pipeline = self.pipelines.get_mut(id);
                let must_stop = session.state == IntentSessionState::Stopping || calm || rng.percent(8);
                match pipeline {
                    Some(pipeline) if !must_stop && !pipeline.is_running => {
                        let process = "pid 1".into();
                        (
                            WorkerRequestKind::Run(session_id.clone()),
                            IntentCommand::Run { session: session_id, leader: guard, process },
                        )
                    }
                    Some(_) if !must_stop => return None,
                    // First it is gone, then it is said to be gone.
                    _ => {
                        self.abandon(id);
                        let (end, detail) = (IntentSessionEnd::Completed, "".into());
                        (
                            WorkerRequestKind::End,
                            IntentCommand::Finish { session: session_id, guard, end, detail },
                        )
                    }
                }
            }
            _ => return None,
        };
        Some((ask, Command::Intent(Box::new(command))))
    }

    /// An answer has come. Whatever it gives was given when the request was sent, at the earliest.
    pub(super) fn handle_answer(
        &mut self,
        ask: &WorkerRequestKind,
        sent: u64,
        response: WorkerAnswer,
        now: u64,
    ) {
        if self.is_gone {
            return;
        }
        let local = self.clock.microseconds(now);
        match (ask, response.answer) {
            (WorkerRequestKind::Leave, CommandOutcome::Released { .. }) => self.leave(),
            (WorkerRequestKind::LeaderLock, CommandOutcome::Granted { leases }) => {
                let until = local_deadline(sent, response.valid_for);
                if self.leader_lock.is_none() && local < until {
                    self.leader_lock = Some((leases[0], until));
                }
            }
            (WorkerRequestKind::LeaderLock | WorkerRequestKind::Viewer, _) => {}
            (_, CommandOutcome::Rejected(Rejection::LeaderLost)) => self.leave(),
            (ask, CommandOutcome::Intent(answer)) => match (ask, *answer) {
                (WorkerRequestKind::Take { session, target }, IntentOutcome::Taken { slot, until, .. }) => {
                    let until = local_deadline(sent, until.since(response.stamp));
                    if local < until && !self.done.contains(session) {
                        let tuner = slot.map(|slot| format!("tuner:{slot}"));
                        let resources = std::iter::once(target.clone()).chain(tuner).collect();
                        let new_pipeline = Pipeline { resources, until, is_running: false };
                        let pipeline = self.pipelines.entry(session.clone()).or_insert(new_pipeline);
                        pipeline.until = pipeline.until.max(until);
                    }
                }
                (WorkerRequestKind::Take { session, .. }, IntentOutcome::Current { .. }) => {
                    self.abandon(session)
                }
                (
                    WorkerRequestKind::Run(session),
                    IntentOutcome::Current { state: IntentSessionState::Running, .. },
                ) => {
                    self.pipelines.entry(session.clone()).and_modify(|pipeline| pipeline.is_running = true);
                }
                (WorkerRequestKind::Run(session), IntentOutcome::Current { .. }) => self.abandon(session),
                (WorkerRequestKind::Keep(own), IntentOutcome::KeptAlive { until, sessions }) => {
                    self.handle_keep_answer(sent, response.stamp, until, own, &sessions);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn handle_keep_answer(
        &mut self,
        sent: u64,
        stamp: Tick,
        guard_until: Tick,
        own: &[Holder],
        sessions: &[KeepAliveOutcome],
    ) {
        if let Some((_, until)) = &mut self.leader_lock {
            *until = (*until).max(local_deadline(sent, guard_until.since(stamp)));
        }
        for (session, kept) in own.iter().zip(sessions) {
            match kept {
                KeepAliveOutcome::Active { until, .. } => {
                    let until = local_deadline(sent, until.since(stamp));
                    let pipeline = self.pipelines.get_mut(session);
                    pipeline.into_iter().for_each(|pipeline| pipeline.until = pipeline.until.max(until));
                }
                KeepAliveOutcome::Lost => self.abandon(session),
            }
        }
    }

    fn abandon(&mut self, session: &Holder) {
        self.pipelines.remove(session);
        self.done.insert(session.clone());
    }

    fn leave(&mut self) {
        self.pipelines.clear();
        self.is_gone = true;
    }

    fn reclaim_command(&self, dead: &Holder) -> Command {
        Command::Reclaim { holder: dead.clone(), by: orchestrator_principal(), detail: "dead".into() }
    }

    fn acquire_command(&self) -> Command {
        let requests =
            vec![LeaseRequest::new(leader_lock_resource(), LeaseMode::Exclusive, self.ttl, Nonce([7; 16]))];
        let (principal, holder) = (orchestrator_principal(), self.name.clone());
        let contention = ContentionPolicy::RefreshOwn;
        Command::Acquire(Acquire { principal, holder, requests, contention_policy: contention, key: None })
    }
}
