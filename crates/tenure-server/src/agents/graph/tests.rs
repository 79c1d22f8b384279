//! No circle, whatever agents and others do.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, AgentCommand, Command, Contention, Declare, Limits, Nonce, Phase, Principal, Report, Span, Want,
    decide,
};

use super::*;

const NAMES: [&str; 6] = ["FILE:a/", "FILE:a/x", "FILE:a/*", "FILE:b", "FILE:c", "db:1"];

#[derive(Debug, Clone)]
enum Step {
    /// Somebody says as an agent what it wants.
    Declare {
        who: u8,
        wants: Vec<(usize, Mode)>,
    },
    /// Somebody stands in line for all of this, or for any one of it.
    Line {
        who: u8,
        names: Vec<usize>,
        any: bool,
    },
    Abort {
        who: u8,
    },
    Release {
        who: u8,
    },
    Pass {
        seconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop::sample::select(&Mode::ALL[2..]);
    let wants = prop::collection::btree_map(0..5_usize, mode, 1..4);
    let names = prop::collection::btree_set(0..6_usize, 1..4);
    prop_oneof![
        6 => (0..5_u8, wants).prop_map(|(who, wants)| Step::Declare { who, wants: wants.into_iter().collect() }),
        4 => (0..5_u8, names, any::<bool>())
            .prop_map(|(who, names, any)| Step::Line { who, names: names.into_iter().collect(), any }),
        1 => (0..5_u8).prop_map(|who| Step::Abort { who }),
        2 => (0..5_u8).prop_map(|who| Step::Release { who }),
        1 => (1..40_u64).prop_map(|seconds| Step::Pass { seconds }),
    ]
}

fn holder(who: u8) -> Holder {
    Holder::parse(&format!("agent-{who}")).unwrap()
}

fn principal() -> Principal {
    Principal::parse("token").unwrap()
}

fn want(name: usize, mode: Mode) -> Want {
    Want::new(Resource::parse(NAMES[name]).unwrap(), mode, Span::from_secs(60), Nonce([1; 16]))
}

fn command(state: &State, step: &Step) -> Option<Command> {
    let agents = |command| Some(Command::Agent(Box::new(command)));
    match step {
        Step::Declare { who, wants } => agents(AgentCommand::Declare(Declare {
            agent: holder(*who),
            principal: principal(),
            session: "s".into(),
            // Whoever it is, it has one age for good: names decide nothing here.
            priority: u64::from(*who),
            wants: wants.iter().map(|(name, mode)| want(*name, *mode)).collect(),
            patience: Span::from_secs(50),
        })),
        Step::Line { who, names, any } => {
            let mut wants: Vec<_> = names.iter().map(|name| want(*name, Mode::Exclusive)).collect();
            if *any {
                let others: Vec<_> = wants.drain(1..).map(|want| want.resource).collect();
                wants = wants.into_iter().map(|want| want.or(others.clone())).collect();
            }
            let (principal, holder) = (principal(), holder(*who));
            let contention = Contention::Queue { patience: Span::from_secs(50) };
            Some(Command::Acquire(Acquire { principal, holder, wants, contention, key: None }))
        }
        Step::Abort { who } => agents(AgentCommand::Report(Report {
            agent: holder(*who),
            principal: principal(),
            session: "s".into(),
            phase: Phase::Aborted,
            remembers: None,
        })),
        Step::Release { who } => {
            let first = state.leases_of_holder(&holder(*who)).next()?.fence;
            let (agent, principal) = (holder(*who), principal());
            agents(AgentCommand::Release { agent, principal, leases: vec![first] })
        }
        Step::Pass { .. } => Some(Command::Expire { most: 100 }),
    }
}

/// Somebody who waits for itself, over others, in what is left without edges of which any one of several is enough.
fn circle(edges: &[Edge<'_>]) -> Option<Holder> {
    let mut next: BTreeMap<&Holder, BTreeSet<&Holder>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| !edge.one_of_several) {
        next.entry(edge.from).or_default().insert(edge.to);
    }
    let starts: Vec<_> = next.keys().copied().collect();
    starts
        .into_iter()
        .find(|start| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![*start]);
            while let Some(holder) = open.pop() {
                for other in next.get(holder).into_iter().flatten() {
                    if other == start {
                        return true;
                    }
                    if seen.insert(*other) {
                        open.push(other);
                    }
                }
            }
            false
        })
        .cloned()
}

/// As asking everybody of everything, without an index.
fn plainly(state: &State, now: Tick) -> BTreeSet<(&Holder, &Holder, bool)> {
    let wanting = wanting(state, now);
    let mut pairs = BTreeSet::new();
    for want in &wanting {
        let meets =
            |name: &Resource| tenure_core::rules::overlap::overlap(name.as_str(), want.resource.as_str());
        for lease in state.leases_from(tenure_core::kernel::Fence(0)) {
            if now < lease.terms.expires_at && meets(lease.resource) && !lease.terms.mode.goes_with(want.mode)
            {
                pairs.insert((want.holder, lease.holder, true));
            }
        }
        for other in wanting.iter().filter(|other| other.wait < want.wait) {
            if meets(other.resource) && !other.mode.goes_with(want.mode) {
                pairs.insert((want.holder, other.holder, false));
            }
        }
    }
    pairs.into_iter().filter(|(from, to, _)| from != to).collect()
}

proptest! {
    // O-17
    #[test]
    fn the_wait_graph_has_no_cycle_and_equals_a_brute_force_search(steps in prop::collection::vec(step(), 1..60)) {
        let mut state = State::new(tenure_core::kernel::LedgerTag(7), Limits::default(), Default::default());
        let mut now = Tick(0);
        for step in &steps {
            if let Step::Pass { seconds } = step {
                now = now.saturating_add(Span::from_secs(*seconds));
            }
            let Some(command) = command(&state, step) else { continue };
            for event in decide(&state, &command, now).events {
                state.apply(&event).unwrap();
            }
            let graph = Graph::new(&state, now);
            let edges: Vec<_> = graph.edges().collect();
            prop_assert_eq!(circle(&edges), None, "{:?}", edges);
            let pairs: BTreeSet<_> = edges.iter().map(|edge| (edge.from, edge.to, edge.is_held)).collect();
            prop_assert_eq!(pairs, plainly(&state, now));
        }
    }
}
