//! Agents in random worlds: no two hold what does not go together, nobody waits for an older one, and the oldest gets on.

use std::sync::Arc;

use proptest::prelude::*;
use tenure_core::kernel::{
    AgentAnswer, AgentCommand, Anchor, Answer, Cause, Command, Declare, End, Event, Fence, Holder, LedgerTag,
    Limits, Phase, Pulse, Rank, Refusal, Remembered, Report, Span, Stamp, State, Tick, decide, decode,
    encode,
};

use crate::kernel_agents_model::{Model, Verdict, outside, refused};
use crate::kernel_agents_steps::{Step, holder, limits, principal, resource, step, want};
use crate::kernel_model::{meet, together};
use crate::kernel_strategies::config;

/// A state, and another that is told the same through the codec.
struct World {
    state: State,
    replayed: State,
    limits: Limits,
    now: u64,
}

impl World {
    fn new(limits: Limits) -> Self {
        let state = || State::new(LedgerTag(7), limits.clone(), Default::default());
        Self { state: state(), replayed: state(), limits, now: 0 }
    }

    fn take(&mut self, command: &Command) -> Answer {
        let decision = decide(&self.state, command, Tick(self.now));
        for event in &decision.events {
            self.state.apply(event).unwrap_or_else(|misfit| panic!("{misfit}: {event:?} of {command:?}"));
            let stamp = Stamp { tag: LedgerTag(7), anchor: Anchor::default(), signature: &[] };
            let stored = decode(&encode(event, stamp), LedgerTag(7)).expect("it can be read");
            assert_eq!(stored.as_ref(), Some(event));
            self.replayed.apply(event).expect("a replay is the same");
        }
        self.state
            .check_invariants()
            .unwrap_or_else(|wrong| panic!("{wrong} after {command:?}\n{:?}", decision.events));
        assert_eq!(self.state.snapshot(), self.replayed.snapshot());
        self.check();
        decision.answer
    }

    /// What must hold whatever happened, said in the plainest way.
    fn check(&self) {
        let now = Tick(self.now).max(self.state.now());
        let live: Vec<_> =
            self.state.leases_from(Fence(0)).filter(|lease| now < lease.terms.expires_at).collect();
        for (index, one) in live.iter().enumerate() {
            for other in &live[..index] {
                let apart = meet(one.resource, other.resource) && !together(one.terms.mode, other.terms.mode);
                assert!(!apart || one.holder == other.holder, "{} and {}", one.resource, other.resource);
            }
        }
        let rank = |holder: &Holder| {
            let priority = self.state.agent(holder).and_then(|agent| agent.priority);
            priority.map(|priority| Rank { priority, agent: holder.clone() })
        };
        for pending in self.state.pending().filter(|pending| now < pending.until) {
            let mut ahead = live.iter().filter(|lease| *lease.holder != pending.rank.agent).filter(|lease| {
                pending.wants.iter().any(|want| {
                    meet(&want.resource, lease.resource) && !together(want.mode, lease.terms.mode)
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
        let restored = State::restore(&bytes, LedgerTag(7), self.limits.clone(), Default::default());
        let restored = restored.expect("what was saved can be restored");
        assert_eq!(restored.snapshot(), self.state.snapshot());
        self.replayed = restored;
    }
}

fn leases_of(state: &State, agent: &Holder) -> Vec<Fence> {
    state.leases_from(Fence(0)).filter(|lease| lease.holder == agent).map(|lease| lease.fence).collect()
}

fn play(limits: Limits, steps: &[(u64, Step)]) {
    let mut world = World::new(limits);
    let session: Arc<str> = "s".into();
    for (pause, step) in steps {
        world.now += pause * 1_000_000;
        let agent_command = |command| Command::Agent(Box::new(command));
        match step {
            Step::Declare { agent, priority, wants, patience, swept } => {
                if *swept {
                    world.take(&Command::Expire { most: 100 });
                }
                // Nearly always the age that it has.
                let known = world.state.agent(&holder(*agent)).and_then(|agent| agent.priority);
                let priority = if *priority > 3 { *priority } else { known.unwrap_or(*priority) };
                let declare = Declare {
                    agent: holder(*agent),
                    principal: principal(*agent),
                    session: session.clone(),
                    priority,
                    wants: wants.iter().map(|(name, mode)| want(*name, *mode)).collect(),
                    patience: Span::from_secs(*patience),
                };
                let now = Tick(world.now).max(world.state.now());
                let expected =
                    Model::of(&world.state, now).map(|model| model.verdict(&world.state, &declare));
                let answer = world.take(&agent_command(AgentCommand::Declare(declare.clone())));
                let verdict = judge(&world, &declare, &answer);
                assert!(expected.is_none_or(|expected| expected == verdict), "{expected:?}: {answer:?}");
            }
            Step::Heartbeat { agent, back } => {
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
                if let Answer::Agent(answer) = world.take(&agent_command(command)) {
                    let AgentAnswer::Beaten(beaten) = *answer else { panic!("{answer:?}") };
                    for ((fence, pulse), was_alive) in beaten.iter().zip(alive) {
                        let lives = matches!(pulse, Pulse::Until(_));
                        let continues = *pulse == Pulse::Over(End::Revoked(Cause::Transferred));
                        // It may have become a stronger one, for a wait of the same agent.
                        assert!(
                            lives == was_alive || was_alive && continues,
                            "{fence:?}: strict to the tick"
                        );
                        assert!(!lives || world.state.lease(*fence).is_some());
                    }
                }
            }
            Step::Release { agent, all } => {
                let (agent, principal) = (holder(*agent), principal(*agent));
                let mut leases = leases_of(&world.state, &agent);
                leases.truncate(if *all { usize::MAX } else { 1 });
                world.take(&agent_command(AgentCommand::Release { agent, principal, leases }));
            }
            Step::Report { agent, phase, memory } => report(&mut world, *agent, *phase, *memory),
            Step::Touch { agent, touched } => {
                let (agent, principal) = (holder(*agent), principal(*agent));
                let touched: Vec<_> = touched.iter().map(|(name, mode)| (resource(*name), *mode)).collect();
                let now = Tick(world.now).max(world.state.now());
                let beyond = outside(&world.state, now, &agent, &touched);
                let is_known = world.state.agent(&agent).is_some();
                match world.take(&agent_command(AgentCommand::Touch { agent, principal, touched })) {
                    Answer::Agent(answer) => {
                        let AgentAnswer::Touched { outside } = *answer else { panic!("{answer:?}") };
                        let told: Vec<_> = outside.into_iter().map(|(resource, _)| resource).collect();
                        assert_eq!(told, beyond);
                    }
                    answer => {
                        assert!(answer == Answer::Refused(Refusal::NoSuchAgent) && !is_known, "{answer:?}")
                    }
                }
            }
            Step::Plain(plain) => {
                if let Some(command) = plain.command(&world.state) {
                    world.take(&command);
                }
            }
            Step::Expire => {
                world.take(&Command::Expire { most: 100 });
            }
            Step::Save => world.save_and_restore(),
        }
    }
}

/// What it says it is doing, and what it remembers: mostly the age that it has.
fn report(world: &mut World, agent: u8, phase: Phase, memory: Option<(u64, u64)>) {
    let (agent, principal) = (holder(agent), principal(agent));
    let known = world.state.agent(&agent).cloned();
    let age = known.as_ref().and_then(|known| known.priority);
    let remembers = memory.map(|(priority, epoch)| {
        let priority = if priority > 3 { priority } else { age.unwrap_or(priority) };
        Remembered { priority, epoch }
    });
    let now = Tick(world.now).max(world.state.now());
    let is_too_late = known
        .as_ref()
        .and_then(|known| known.restarting_at)
        .is_some_and(|at| now.since(at) >= Span::from_secs(300));
    let epoch = known.map_or(0, |known| known.epoch);
    // What it waits for in the plain line is none of this, and may be its turn right then.
    let stands_in_line = world.state.tickets().any(|waiting| *waiting.holder == agent);
    let report = Report { agent: agent.clone(), principal, session: "s".into(), phase, remembers };
    let answer = world.take(&Command::Agent(Box::new(AgentCommand::Report(report))));
    let expected = match remembers {
        Some(memory) if memory.epoch < epoch || is_too_late => {
            Answer::Refused(Refusal::MemoryStale { epoch })
        }
        Some(memory) if age.is_some_and(|age| age != memory.priority) => {
            Answer::Refused(Refusal::PriorityFixed { has: age.unwrap_or(0) })
        }
        _ => Answer::Agent(Box::new(AgentAnswer::Noted)),
    };
    assert_eq!(answer, expected);
    if answer != expected || !matches!(phase, Phase::Completed | Phase::Aborted) {
        return;
    }
    if !matches!(answer, Answer::Refused(_)) {
        let waits = world.state.pending().any(|pending| pending.rank.agent == agent);
        let holds = !stands_in_line && !leases_of(&world.state, &agent).is_empty();
        assert!(!waits && !holds, "it has let go of everything");
    }
}

/// The verdict, and that it is true.
fn judge(world: &World, declare: &Declare, answer: &Answer) -> Verdict {
    let answer = match answer {
        Answer::Agent(answer) => answer,
        Answer::Refused(refusal) => return refused(refusal),
        other => panic!("{other:?}"),
    };
    match &**answer {
        AgentAnswer::Granted { leases } => {
            assert_eq!(leases.len(), declare.wants.len());
            for (want, fence) in declare.wants.iter().zip(leases) {
                let lease = world.state.lease(*fence).expect("it lives");
                let is_wanted = *lease.resource == want.resource && lease.terms.mode.covers(want.mode);
                assert!(is_wanted && *lease.holder == declare.agent);
            }
            Verdict::Granted
        }
        AgentAnswer::Wait { ticket, blocked_by, .. } => {
            assert!(!blocked_by.is_empty());
            assert!(world.state.pending().any(|pending| pending.ticket == *ticket));
            Verdict::Wait
        }
        AgentAnswer::Die { blocked_by, retry_at, .. } => {
            assert!(!blocked_by.is_empty() && *retry_at > world.state.now());
            let mut own = world.state.pending().filter(|pending| pending.rank.agent == declare.agent);
            assert!(!own.any(|pending| pending.wants == declare.wants));
            Verdict::Die
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
        steps in prop::collection::vec(step(), 1..40),
    ) {
        play(limits, &steps);
    }
}

#[test]
fn agent_event_types_are_registered() {
    let own = tenure_core::kernel::AgentEvent::TYPE_NAMES;
    assert!(own.iter().all(|name| Event::TYPE_NAMES.contains(name)) && Event::TYPE_NAMES.len() == 32);
}
