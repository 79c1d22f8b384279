//! Agents in random worlds: no two hold what does not go together, nobody waits for an older one, and the oldest gets on.

use std::sync::Arc;

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, AgentAnswer, AgentCommand, Anchor, Answer, Command, Contention, Declare, Event, Fence, Holder,
    LedgerTag, Limits, Mode, Nonce, Phase, Principal, Pulse, Rank, Refusal, Report, Resource, Span, Stamp,
    State, Tick, Want, decide, decode, encode,
};

use crate::kernel_model::{meet, together};
use crate::kernel_strategies::config;

const NAMES: [&str; 6] = ["FILE:a/", "FILE:a/x", "FILE:a/y", "FILE:b", "SYMBOL:s", "FILE:a/*"];
const TTL: Span = Span::from_secs(60);

pub fn holder(number: u8) -> Holder {
    Holder::parse(&format!("agent-{number}")).expect("a name")
}

fn principal(number: u8) -> Principal {
    Principal::parse(&format!("token:{}", number % 2)).expect("a name")
}

fn want(name: u8, mode: Mode) -> Want {
    let resource = Resource::parse(NAMES[usize::from(name) % NAMES.len()]).expect("a resource");
    Want::new(resource, mode, TTL, Nonce([1; 16]))
}

/// A state, and another that is told the same through the codec.
struct World {
    state: State,
    replayed: State,
    now: u64,
}

impl World {
    fn new() -> Self {
        let tag = LedgerTag(7);
        let state = || State::new(tag, Limits::default(), Default::default());
        Self { state: state(), replayed: state(), now: 0 }
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
        let live: Vec<_> = self.state.leases_from(Fence(0)).filter(|lease| now < lease.expires_at).collect();
        for (index, one) in live.iter().enumerate() {
            for other in &live[..index] {
                let apart = meet(one.resource, other.resource) && !together(one.mode, other.mode);
                assert!(!apart || one.holder == other.holder, "{} and {}", one.resource, other.resource);
            }
        }
        let rank = |holder: &Holder| {
            let priority = self.state.agent(holder).and_then(|agent| agent.priority);
            priority.map(|priority| Rank { priority, agent: holder.clone() })
        };
        for pending in self.state.pending().filter(|pending| now < pending.until) {
            let mut ahead = live.iter().filter(|lease| *lease.holder != pending.rank.agent).filter(|lease| {
                pending
                    .wants
                    .iter()
                    .any(|want| meet(&want.resource, lease.resource) && !together(want.mode, lease.mode))
            });
            let first = ahead.next();
            // Unless a lease is over that nobody has announced: then the next who looks lets it in.
            let all_announced = self.state.leases_from(Fence(0)).all(|lease| now < lease.expires_at);
            assert!(first.is_some() || !all_announced, "{:?} waits for nobody", pending.rank);
            assert!(
                first.into_iter().chain(ahead).all(|lease| rank(lease.holder) > Some(pending.rank.clone()))
            );
        }
    }

    fn save_and_restore(&mut self) {
        let mut bytes = Vec::new();
        self.state.save(&mut |piece| bytes.extend_from_slice(piece));
        let restored = State::restore(&bytes, LedgerTag(7), Limits::default(), Default::default());
        let restored = restored.expect("what was saved can be restored");
        assert_eq!(restored.snapshot(), self.state.snapshot());
        self.replayed = restored;
    }
}

#[derive(Debug, Clone)]
enum Step {
    Declare { agent: u8, priority: u64, wants: Vec<(u8, Mode)>, patience: u64 },
    Heartbeat { agent: u8, back: u64 },
    Release { agent: u8, all: bool },
    Report { agent: u8, phase: Phase },
    Plain { name: u8, waits: bool },
    Expire,
    Save,
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(&Mode::ALL[2..])
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let wants =
        prop::collection::btree_map(0..6_u8, mode(), 1..4).prop_map(|wants| wants.into_iter().collect());
    let declare = (0..5_u8, 0..6_u64, wants, 1..90_u64)
        .prop_map(|(agent, priority, wants, patience)| Step::Declare { agent, priority, wants, patience });
    let step = prop_oneof![
        10 => declare,
        2 => (0..5_u8, 0..4_u64).prop_map(|(agent, back)| Step::Heartbeat { agent, back }),
        3 => (0..5_u8, any::<bool>()).prop_map(|(agent, all)| Step::Release { agent, all }),
        2 => (0..5_u8, prop::sample::select(&Phase::ALL[..])).prop_map(|(agent, phase)| Step::Report { agent, phase }),
        2 => (0..6_u8, any::<bool>()).prop_map(|(name, waits)| Step::Plain { name, waits }),
        2 => Just(Step::Expire),
        1 => Just(Step::Save),
    ];
    (prop_oneof![4 => Just(0_u64), 3 => 1..20_u64, 1 => 20..80_u64], step)
}

fn leases_of(state: &State, agent: &Holder) -> Vec<Fence> {
    state.leases_from(Fence(0)).filter(|lease| lease.holder == agent).map(|lease| lease.fence).collect()
}

fn play(steps: &[(u64, Step)]) {
    let mut world = World::new();
    let session: Arc<str> = "s".into();
    for (pause, step) in steps {
        world.now += pause * 1_000_000;
        let agent_command = |command| Command::Agent(Box::new(command));
        match step {
            Step::Declare { agent, priority, wants, patience } => {
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
                let answer = world.take(&agent_command(AgentCommand::Declare(declare.clone())));
                judge(&world, &declare, &answer);
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
                        lease.is_some_and(|lease| *lease.holder == agent && now < lease.expires_at)
                    })
                    .collect();
                let command = AgentCommand::Heartbeat { agent, principal, leases };
                if let Answer::Agent(answer) = world.take(&agent_command(command)) {
                    let AgentAnswer::Beaten(beaten) = *answer else { panic!("{answer:?}") };
                    let told = beaten.iter().map(|(_, pulse)| matches!(pulse, Pulse::Until(_)));
                    assert_eq!(told.collect::<Vec<_>>(), alive, "strict to the tick");
                }
            }
            Step::Release { agent, all } => {
                let (agent, principal) = (holder(*agent), principal(*agent));
                let mut leases = leases_of(&world.state, &agent);
                leases.truncate(if *all { usize::MAX } else { 1 });
                world.take(&agent_command(AgentCommand::Release { agent, principal, leases }));
            }
            Step::Report { agent, phase } => {
                let (agent, principal, phase) = (holder(*agent), principal(*agent), *phase);
                let session = session.clone();
                world.take(&agent_command(AgentCommand::Report(Report {
                    agent,
                    principal,
                    session,
                    phase,
                    remembers: None,
                })));
            }
            Step::Plain { name, waits } => {
                let patience = Span::from_secs(if *waits { 40 } else { 0 });
                let acquire = Acquire {
                    principal: Principal::parse("token:plain").expect("a name"),
                    holder: Holder::parse("person").expect("a name"),
                    wants: vec![want(*name, Mode::Exclusive)],
                    contention: Contention::Queue { patience },
                    key: None,
                };
                world.take(&Command::Acquire(acquire));
            }
            Step::Expire => {
                world.take(&Command::Expire { most: 100 });
            }
            Step::Save => world.save_and_restore(),
        }
    }
}

/// The verdict, looked at from the outside.
fn judge(world: &World, declare: &Declare, answer: &Answer) {
    let Answer::Agent(answer) = answer else {
        assert!(
            matches!(answer, Answer::Refused(Refusal::PriorityFixed { .. } | Refusal::HolderTaken { .. })),
            "{answer:?}"
        );
        return;
    };
    match &**answer {
        AgentAnswer::Granted { leases } => {
            assert_eq!(leases.len(), declare.wants.len());
            for (want, fence) in declare.wants.iter().zip(leases) {
                let lease = world.state.lease(*fence).expect("it lives");
                assert!(
                    *lease.resource == want.resource
                        && lease.mode.covers(want.mode)
                        && *lease.holder == declare.agent
                );
            }
        }
        AgentAnswer::Wait { ticket, blocked_by, .. } => {
            assert!(!blocked_by.is_empty());
            assert!(world.state.pending().any(|pending| pending.ticket == *ticket));
        }
        AgentAnswer::Die { blocked_by, retry_at, .. } => {
            assert!(!blocked_by.is_empty() && *retry_at > world.state.now());
            assert!(
                !world
                    .state
                    .pending()
                    .any(|pending| { pending.rank.agent == declare.agent && pending.wants == declare.wants })
            );
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    // O-17, S3-5
    #[test]
    fn whatever_agents_do_nobody_waits_for_an_older_one(steps in prop::collection::vec(step(), 1..40)) {
        play(&steps);
    }
}

#[test]
fn events_of_agents_have_types_of_their_own() {
    assert!(Event::TYPE_NAMES.contains(&"agent.died") && Event::TYPE_NAMES.len() == 24);
}
