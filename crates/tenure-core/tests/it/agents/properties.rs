//! Agents in random worlds: no two hold what does not go together, nobody waits for an older one, and the oldest gets on.

use std::sync::Arc;

use proptest::prelude::*;
use tenure_core::kernel::{
    AgentCommand, AgentOutcome, AgentPhase, AgentRank, AgentReport, ClockAnchor, Command, CommandOutcome,
    DeclareManifest, EncodeContext, Event, Fence, HeartbeatOutcome, Holder, KernelState, LeaseEnd, LedgerTag,
    Limits, Rejection, ReportedAgentState, RevocationCause, Tick, TickDuration, decide, decode, encode,
};

use crate::agents::model::{AgentModel, ManifestOutcome, outcome_of_rejection, touched_outside};
use crate::agents::steps::{AgentStep, agent_step, holder, lease_request, limits, principal, resource};
use crate::kernel::model::{are_compatible, overlaps};
use crate::kernel::strategies::config;

/// A state, and another that is told the same through the codec.
struct AgentWorld {
    state: KernelState,
    replayed: KernelState,
    limits: Limits,
    now: u64,
}

impl AgentWorld {
    fn new(limits: Limits) -> Self {
        let state = || KernelState::new(LedgerTag(7), limits.clone(), Default::default());
        Self { state: state(), replayed: state(), limits, now: 0 }
    }

    fn decide_and_apply(&mut self, command: &Command) -> CommandOutcome {
        let decision = decide(&self.state, command, Tick(self.now));
        for event in &decision.events {
            self.state.apply(event).unwrap_or_else(|error| panic!("{error}: {event:?} of {command:?}"));
            let stamp = EncodeContext { tag: LedgerTag(7), anchor: ClockAnchor::default(), signature: &[] };
            let stored = decode(&encode(event, stamp), LedgerTag(7)).expect("it can be read");
            assert_eq!(stored.as_ref(), Some(event));
            self.replayed.apply(event).expect("a replay is the same");
        }
        self.state
            .check_invariants()
            .unwrap_or_else(|wrong| panic!("{wrong} after {command:?}\n{:?}", decision.events));
        assert_eq!(self.state.to_comparable(), self.replayed.to_comparable());
        self.check();
        decision.outcome
    }

    /// What must hold whatever happened, said in the plainest way.
    fn check(&self) {
        let now = Tick(self.now).max(self.state.now());
        let live: Vec<_> =
            self.state.leases_from(Fence(0)).filter(|lease| now < lease.terms.expires_at).collect();
        for (index, one) in live.iter().enumerate() {
            for other in &live[..index] {
                let conflict = overlaps(one.resource, other.resource)
                    && !are_compatible(one.terms.mode, other.terms.mode);
                assert!(!conflict || one.holder == other.holder, "{} and {}", one.resource, other.resource);
            }
        }
        let rank = |holder: &Holder| {
            let priority = self.state.agent(holder).and_then(|agent| agent.priority);
            priority.map(|priority| AgentRank { priority, agent: holder.clone() })
        };
        for pending in self.state.waiting_agents().filter(|pending| now < pending.until) {
            let mut ahead = live.iter().filter(|lease| *lease.holder != pending.rank.agent).filter(|lease| {
                pending.requests.iter().any(|request| {
                    overlaps(&request.resource, lease.resource)
                        && !are_compatible(request.mode, lease.terms.mode)
                })
            });
            let first = ahead.next();
            // Unless a lease is over that nobody has announced: then the next who looks lets it in.
            let all_announced = self.state.leases_from(Fence(0)).all(|lease| now < lease.terms.expires_at);
            assert!(first.is_some() || !all_announced, "{:?} waits for nobody", pending.rank);
            assert!(
                first.into_iter().chain(ahead).all(|lease| rank(lease.holder) > Some(pending.rank.clone()))
            );
        }
    }

    fn save_and_restore(&mut self) {
        let mut bytes = Vec::new();
        self.state.save(&mut |piece| bytes.extend_from_slice(piece));
        let restored = KernelState::restore(&bytes, LedgerTag(7), self.limits.clone(), Default::default());
        let restored = restored.expect("what was saved can be restored");
        assert_eq!(restored.to_comparable(), self.state.to_comparable());
        self.replayed = restored;
    }
}

fn leases_of(state: &KernelState, agent: &Holder) -> Vec<Fence> {
    state.leases_from(Fence(0)).filter(|lease| lease.holder == agent).map(|lease| lease.fence).collect()
}

fn play(limits: Limits, steps: &[(u64, AgentStep)]) {
    let mut world = AgentWorld::new(limits);
    let session: Arc<str> = "s".into();
    for (pause, step) in steps {
        world.now += pause * 1_000_000;
        let agent_command = |command| Command::Agent(Box::new(command));
        match step {
            AgentStep::Declare { agent, priority, requests, wait_timeout: patience, swept } => {
                if *swept {
                    world.decide_and_apply(&Command::Expire { max_ended: 100 });
                }
                // Nearly always the age that it has.
                let known = world.state.agent(&holder(*agent)).and_then(|agent| agent.priority);
                let priority = if *priority > 3 { *priority } else { known.unwrap_or(*priority) };
                let declare = DeclareManifest {
                    agent: holder(*agent),
                    principal: principal(*agent),
                    session: session.clone(),
                    priority,
                    requests: requests.iter().map(|(name, mode)| lease_request(*name, *mode)).collect(),
                    wait_timeout: TickDuration::from_secs(*patience),
                };
                let now = Tick(world.now).max(world.state.now());
                let expected = AgentModel::from_state(&world.state, now)
                    .map(|model| model.outcome(&world.state, &declare));
                let answer = world.decide_and_apply(&agent_command(AgentCommand::Declare(declare.clone())));
                let verdict = fail_unless_completed(&world, &declare, &answer);
                assert!(expected.is_none_or(|expected| expected == verdict), "{expected:?}: {answer:?}");
            }
            AgentStep::Heartbeat { agent, back } => {
                let (agent, principal) = (holder(*agent), principal(*agent));
                let mut leases = leases_of(&world.state, &agent);
                leases.push(Fence(world.state.last_fence().0.saturating_sub(*back)));
                let now = Tick(world.now).max(world.state.now());
                let alive: Vec<bool> = leases
                    .iter()
                    .map(|fence| {
                        let lease = world.state.lease(*fence);
                        lease.is_some_and(|lease| *lease.holder == agent && now < lease.terms.expires_at)
                    })
                    .collect();
                let command = AgentCommand::Heartbeat { agent, principal, leases };
                if let CommandOutcome::Agent(answer) = world.decide_and_apply(&agent_command(command)) {
                    let AgentOutcome::Heartbeats(beaten) = *answer else { panic!("{answer:?}") };
                    for ((fence, outcome), was_alive) in beaten.iter().zip(alive) {
                        let is_active = matches!(outcome, HeartbeatOutcome::Active(_));
                        let continues = *outcome
                            == HeartbeatOutcome::Ended(LeaseEnd::Revoked(RevocationCause::Transferred));
                        // It may have become a stronger one, for a wait of the same agent.
                        assert!(
                            is_active == was_alive || was_alive && continues,
                            "{fence:?}: strict to the tick"
                        );
                        assert!(!is_active || world.state.lease(*fence).is_some());
                    }
                }
            }
            AgentStep::Release { agent, all } => {
                let (agent, principal) = (holder(*agent), principal(*agent));
                let mut leases = leases_of(&world.state, &agent);
                leases.truncate(if *all { usize::MAX } else { 1 });
                world.decide_and_apply(&agent_command(AgentCommand::Release { agent, principal, leases }));
            }
            AgentStep::Report { agent, phase, memory } => check_report(&mut world, *agent, *phase, *memory),
            AgentStep::Touch { agent, touched } => {
                let (agent, principal) = (holder(*agent), principal(*agent));
                let touched: Vec<_> = touched.iter().map(|(name, mode)| (resource(*name), *mode)).collect();
                let now = Tick(world.now).max(world.state.now());
                let beyond = touched_outside(&world.state, now, &agent, &touched);
                let is_known = world.state.agent(&agent).is_some();
                match world.decide_and_apply(&agent_command(AgentCommand::Touch {
                    agent,
                    principal,
                    touched,
                })) {
                    CommandOutcome::Agent(answer) => {
                        let AgentOutcome::Touched { outside } = *answer else { panic!("{answer:?}") };
                        let reported: Vec<_> = outside.into_iter().map(|(resource, _)| resource).collect();
                        assert_eq!(reported, beyond);
                    }
                    answer => {
                        assert!(
                            answer == CommandOutcome::Rejected(Rejection::NoSuchAgent) && !is_known,
                            "{answer:?}"
                        )
                    }
                }
            }
            AgentStep::Plain(plain) => {
                if let Some(command) = plain.command(&world.state) {
                    world.decide_and_apply(&command);
                }
            }
            AgentStep::Expire => {
                world.decide_and_apply(&Command::Expire { max_ended: 100 });
            }
            AgentStep::Save => world.save_and_restore(),
        }
    }
}

/// What it says it is doing, and what it remembers: mostly the age that it has.
fn check_report(world: &mut AgentWorld, agent: u8, phase: AgentPhase, memory: Option<(u64, u64)>) {
    let (agent, principal) = (holder(agent), principal(agent));
    let known = world.state.agent(&agent).cloned();
    let age = known.as_ref().and_then(|known| known.priority);
    let remembers = memory.map(|(priority, epoch)| {
        let priority = if priority > 3 { priority } else { age.unwrap_or(priority) };
        ReportedAgentState { priority, epoch }
    });
    let now = Tick(world.now).max(world.state.now());
    let is_too_late = known
        .as_ref()
        .and_then(|known| known.restarting_at)
        .is_some_and(|at| now.since(at) >= TickDuration::from_secs(300));
    let epoch = known.map_or(0, |known| known.epoch);
    // What it waits for in the plain line is none of this, and may be its turn right then.
    let stands_in_line = world.state.queue_tickets().any(|waiting| *waiting.holder == agent);
    let report =
        AgentReport { agent: agent.clone(), principal, session: "s".into(), phase, memory: remembers };
    let answer = world.decide_and_apply(&Command::Agent(Box::new(AgentCommand::Report(report))));
    let expected = match remembers {
        Some(memory) if memory.epoch < epoch || is_too_late => {
            CommandOutcome::Rejected(Rejection::MemoryStale { epoch })
        }
        Some(memory) if age.is_some_and(|age| age != memory.priority) => {
            CommandOutcome::Rejected(Rejection::PriorityFixed { current: age.unwrap_or(0) })
        }
        _ => CommandOutcome::Agent(Box::new(AgentOutcome::Acknowledged)),
    };
    assert_eq!(answer, expected);
    if answer != expected || !matches!(phase, AgentPhase::Completed | AgentPhase::Aborted) {
        return;
    }
    if !matches!(answer, CommandOutcome::Rejected(_)) {
        let is_waiting = world.state.waiting_agents().any(|pending| pending.rank.agent == agent);
        let holds = !stands_in_line && !leases_of(&world.state, &agent).is_empty();
        assert!(!is_waiting && !holds, "it has let go of everything");
    }
}

/// The verdict, and that it is true.
fn fail_unless_completed(
    world: &AgentWorld,
    declare: &DeclareManifest,
    answer: &CommandOutcome,
) -> ManifestOutcome {
    let answer = match answer {
        CommandOutcome::Agent(answer) => answer,
        CommandOutcome::Rejected(rejection) => return outcome_of_rejection(rejection),
        other => panic!("{other:?}"),
    };
    match &**answer {
        AgentOutcome::Granted { leases } => {
            assert_eq!(leases.len(), declare.requests.len());
            for (request, fence) in declare.requests.iter().zip(leases) {
                let lease = world.state.lease(*fence).expect("it lives");
                let is_requested =
                    *lease.resource == request.resource && lease.terms.mode.covers(request.mode);
                assert!(is_requested && *lease.holder == declare.agent);
            }
            ManifestOutcome::Granted
        }
        AgentOutcome::Wait { ticket, blocked_by, .. } => {
            assert!(!blocked_by.is_empty());
            assert!(world.state.waiting_agents().any(|pending| pending.ticket == *ticket));
            ManifestOutcome::Wait
        }
        AgentOutcome::Die { blocked_by, retry_at, .. } => {
            assert!(!blocked_by.is_empty() && *retry_at > world.state.now());
            let mut own = world.state.waiting_agents().filter(|pending| pending.rank.agent == declare.agent);
            assert!(!own.any(|pending| pending.requests == declare.requests));
            ManifestOutcome::Die
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    // O-17, S3-5, S3-9, S3-14, S3-25, S3-33, S3-34
    #[test]
    fn agents_never_wait_for_older_agents(
        limits in limits(),
        steps in prop::collection::vec(agent_step(), 1..40),
    ) {
        play(limits, &steps);
    }
}

#[test]
fn agent_event_types_are_registered() {
    let own = tenure_core::kernel::AgentEvent::TYPE_NAMES;
    assert!(own.iter().all(|name| Event::TYPE_NAMES.contains(name)) && Event::TYPE_NAMES.len() == 32);
}
