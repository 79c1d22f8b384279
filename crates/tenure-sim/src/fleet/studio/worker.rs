//! One worker process: it holds the guard, takes sessions, shows them, and ends them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_client::believed_until;
use tenure_core::kernel::{
    Acquire, Answer, Claim, Command, Contention, Fence, Holder, IntentAnswer, IntentCommand, Kept, Mode,
    Nonce, Refusal, SessionEnd, SessionState, Span, Take, Tick, Want, guard, orchestrator,
};
use tenure_core::lease::ReleaseReason;

use crate::clock::Clock;
use crate::laws::{ModelSession, Sessions};
use crate::rng::Rng;

/// A process and the pipelines that it started.
#[derive(Debug)]
pub(in crate::fleet) struct Worker {
    name: Holder,
    pub(super) machine: u64,
    pub(super) clock: Clock,
    pub(super) ttl: Span,
    tuners: u32,
    /// Its fence, and until when it believes in it, by its own clock.
    guard: Option<(Fence, u64)>,
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
    needs: Vec<String>,
    until: u64,
    runs: bool,
}

#[derive(Debug, Clone)]
pub(in crate::fleet) enum Ask {
    Viewer,
    Guard,
    Take { session: Holder, target: String },
    Run(Holder),
    Keep(Vec<Holder>),
    End,
    Leave,
}

#[derive(Debug, Clone)]
pub(in crate::fleet) struct Told {
    pub(super) answer: Answer,
    pub(super) stamp: Tick,
    /// How long the guard lives from the stamp on, if this is about it.
    pub(super) lives_for: Span,
}

/// What a worker finds when it looks around.
pub(super) struct Seen<'a> {
    pub(super) sessions: &'a Sessions,
    /// Sessions of those before it, whose pipelines it has seen gone.
    pub(super) remains: Vec<Holder>,
    /// Who has the guard, if that one is proven dead.
    pub(super) dead: Option<Holder>,
}

pub(super) fn number_of(name: &Holder) -> Option<u64> {
    name.as_str().strip_prefix("worker:")?.parse().ok()
}

impl Worker {
    pub(super) fn new(number: u64, machine: u64, clock: Clock, ttl: Span, tuners: u32) -> Self {
        let name = Holder::parse(&format!("worker:{number}")).expect("a plain name");
        let (pipelines, done) = (BTreeMap::new(), BTreeSet::new());
        let (guard, paused_until, is_gone) = (None, 0, false);
        Self { name, machine, clock, ttl, tuners, guard, pipelines, done, paused_until, is_gone }
    }

    /// What it shows at true time `now`, and what it believes to have for that.
    pub(super) fn believes(&self, now: u64) -> impl Iterator<Item = (&Holder, &[String])> {
        let local = self.clock.microseconds(now);
        let shown = self.pipelines.iter().filter(move |(_, pipeline)| local < pipeline.until);
        shown.map(|(session, pipeline)| (session, pipeline.needs.as_slice()))
    }

    /// Ends what is left of a session.
    pub(super) fn kill(&mut self, session: &Holder) {
        self.pipelines.remove(session);
    }

    pub(super) fn act(
        &mut self,
        now: u64,
        seen: &Seen<'_>,
        calm: bool,
        rng: &mut Rng,
    ) -> Vec<(Ask, Command)> {
        let Seen { sessions, remains, dead } = seen;
        let local = self.clock.microseconds(now);
        if self.is_gone {
            return Vec::new();
        }
        let Some((fence, until)) = self.guard else {
            let is_needed = !calm || sessions.live().next().is_some();
            let reclaim = dead.iter().map(|dead| (Ask::End, self.reclaim(dead)));
            let acquire = std::iter::once((Ask::Guard, self.acquire()));
            return reclaim.chain(acquire).filter(|_| is_needed).collect();
        };
        if local >= until {
            // Without the guard it must not go on: this one ends, and the next begins anew.
            self.leave();
            return Vec::new();
        }
        if calm && sessions.live().next().is_none() {
            let claim = Claim::Holder { holder: self.name.clone(), principal: orchestrator() };
            let release = Command::Release { lease: fence, claim, reason: ReleaseReason::Voluntary };
            return vec![(Ask::Leave, release)];
        }
        self.pipelines.retain(|_, pipeline| local < pipeline.until);
        let mut asks: Vec<_> =
            sessions.live().filter_map(|(id, session)| self.see_to(id, session, fence, calm, rng)).collect();
        if !remains.is_empty() {
            let wipe = IntentCommand::Wipe { guard: fence, sessions: remains.to_vec() };
            asks.push((Ask::End, Command::Intent(Box::new(wipe))));
        }
        let own: Vec<Holder> = self.pipelines.keys().cloned().collect();
        let keep = IntentCommand::Keep { guard: fence, ttl: self.ttl, sessions: own.clone() };
        asks.push((Ask::Keep(own), Command::Intent(Box::new(keep))));
        asks
    }

    fn see_to(
        &mut self,
        id: &Holder,
        session: &ModelSession,
        guard: Fence,
        calm: bool,
        rng: &mut Rng,
    ) -> Option<(Ask, Command)> {
        let is_own = session.worker.as_ref().is_some_and(|(_, taken)| *taken == guard);
        let (session_id, is_shown) = (id.clone(), self.pipelines.contains_key(id));
        let (ask, command) = match session.state {
            SessionState::New | SessionState::Starting if !is_shown && !self.done.contains(id) => {
                if session.state == SessionState::Starting && !is_own {
                    return None;
                }
                let nonces = [Nonce([1; 16]), Nonce([2; 16])];
                let (slots, ttl) = (self.tuners, self.ttl);
                let target = session.needs[0].clone();
                let take = Take { session: session_id.clone(), guard, slots, ttl, nonces };
                (Ask::Take { session: session_id, target }, IntentCommand::Take(take))
            }
            SessionState::Starting | SessionState::Running | SessionState::Stopping if is_own => {
                let pipeline = self.pipelines.get_mut(id);
                let is_over = session.state == SessionState::Stopping || calm || rng.percent(8);
                match pipeline {
                    Some(pipeline) if !is_over && !pipeline.runs => {
                        let process = "pid 1".into();
                        (
                            Ask::Run(session_id.clone()),
                            IntentCommand::Run { session: session_id, guard, process },
                        )
                    }
                    Some(_) if !is_over => return None,
                    // First it is gone, then it is said to be gone.
                    _ => {
                        self.give_up(id);
                        let (end, detail) = (SessionEnd::Completed, "".into());
                        (Ask::End, IntentCommand::Finish { session: session_id, guard, end, detail })
                    }
                }
            }
            _ => return None,
        };
        Some((ask, Command::Intent(Box::new(command))))
    }

    /// An answer has come. Whatever it gives was given when the request was sent, at the earliest.
    pub(super) fn hear(&mut self, ask: &Ask, sent: u64, told: Told, now: u64) {
        if self.is_gone {
            return;
        }
        let local = self.clock.microseconds(now);
        match (ask, told.answer) {
            (Ask::Leave, Answer::Released { .. }) => self.leave(),
            (Ask::Guard, Answer::Granted { leases }) => {
                let until = believed_until(sent, told.lives_for);
                if self.guard.is_none() && local < until {
                    self.guard = Some((leases[0], until));
                }
            }
            (Ask::Guard | Ask::Viewer, _) => {}
            (_, Answer::Refused(Refusal::GuardLost)) => self.leave(),
            (ask, Answer::Intent(answer)) => match (ask, *answer) {
                (Ask::Take { session, target }, IntentAnswer::Taken { slot, until, .. }) => {
                    let until = believed_until(sent, until.since(told.stamp));
                    if local < until && !self.done.contains(session) {
                        let tuner = slot.map(|slot| format!("tuner:{slot}"));
                        let needs = std::iter::once(target.clone()).chain(tuner).collect();
                        let fresh = Pipeline { needs, until, runs: false };
                        let pipeline = self.pipelines.entry(session.clone()).or_insert(fresh);
                        pipeline.until = pipeline.until.max(until);
                    }
                }
                (Ask::Take { session, .. }, IntentAnswer::Now { .. }) => self.give_up(session),
                (Ask::Run(session), IntentAnswer::Now { state: SessionState::Running, .. }) => {
                    self.pipelines.entry(session.clone()).and_modify(|pipeline| pipeline.runs = true);
                }
                (Ask::Run(session), IntentAnswer::Now { .. }) => self.give_up(session),
                (Ask::Keep(own), IntentAnswer::Kept { until, sessions }) => {
                    self.kept(sent, told.stamp, until, own, &sessions);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn kept(&mut self, sent: u64, stamp: Tick, guard_until: Tick, own: &[Holder], sessions: &[Kept]) {
        if let Some((_, until)) = &mut self.guard {
            *until = (*until).max(believed_until(sent, guard_until.since(stamp)));
        }
        for (session, kept) in own.iter().zip(sessions) {
            match kept {
                Kept::Until { until, .. } => {
                    let until = believed_until(sent, until.since(stamp));
                    let pipeline = self.pipelines.get_mut(session);
                    pipeline.into_iter().for_each(|pipeline| pipeline.until = pipeline.until.max(until));
                }
                Kept::Lost => self.give_up(session),
            }
        }
    }

    fn give_up(&mut self, session: &Holder) {
        self.pipelines.remove(session);
        self.done.insert(session.clone());
    }

    fn leave(&mut self) {
        self.pipelines.clear();
        self.is_gone = true;
    }

    fn reclaim(&self, dead: &Holder) -> Command {
        Command::Reclaim { holder: dead.clone(), by: orchestrator(), detail: "dead".into() }
    }

    fn acquire(&self) -> Command {
        let wants = vec![Want::new(guard(), Mode::Exclusive, self.ttl, Nonce([7; 16]))];
        let (principal, holder) = (orchestrator(), self.name.clone());
        let contention = Contention::RefreshOwn;
        Command::Acquire(Acquire { principal, holder, wants, contention, key: None })
    }
}
