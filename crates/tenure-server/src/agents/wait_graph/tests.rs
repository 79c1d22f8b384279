//! No circle, whatever agents and others do.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, AgentCommand, AgentPhase, AgentReport, Command, ContentionPolicy, DeclareManifest, LeaseRequest,
    Limits, Nonce, Principal, TickDuration, decide,
};

use super::*;

const NAMES: [&str; 6] = ["FILE:a/", "FILE:a/x", "FILE:a/*", "FILE:b", "FILE:c", "db:1"];

#[derive(Debug, Clone)]
enum Step {
    /// Somebody says as an agent what it wants.
    Declare {
        client: u8,
        requests: Vec<(usize, LeaseMode)>,
    },
    /// Somebody stands in line for all of this, or for any one of it.
    Enqueue {
        client: u8,
        names: Vec<usize>,
        any: bool,
    },
    Abort {
        client: u8,
    },
    Release {
        client: u8,
    },
    AdvanceClock {
        seconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop::sample::select(&LeaseMode::ALL[2..]);
    let wants = prop::collection::btree_map(0..5_usize, mode, 1..4);
    let names = prop::collection::btree_set(0..6_usize, 1..4);
    prop_oneof![
        6 => (0..5_u8, wants).prop_map(|(client, wants)| Step::Declare { client, requests: wants.into_iter().collect() }),
        4 => (0..5_u8, names, any::<bool>())
            .prop_map(|(client, names, any)| Step::Enqueue { client, names: names.into_iter().collect(), any }),
        1 => (0..5_u8).prop_map(|client| Step::Abort { client }),
        2 => (0..5_u8).prop_map(|client| Step::Release { client }),
        1 => (1..40_u64).prop_map(|seconds| Step::AdvanceClock { seconds }),
    ]
}

fn holder(client: u8) -> Holder {
    Holder::parse(&format!("agent-{client}")).unwrap()
}

fn principal() -> Principal {
    Principal::parse("token").unwrap()
}

fn lease_request(name: usize, mode: LeaseMode) -> LeaseRequest {
    LeaseRequest::new(
        Resource::parse(NAMES[name]).unwrap(),
        mode,
        TickDuration::from_secs(60),
        Nonce([1; 16]),
    )
}

fn command(state: &KernelState, step: &Step) -> Option<Command> {
    let agents = |command| Some(Command::Agent(Box::new(command)));
    match step {
        Step::Declare { client, requests } => agents(AgentCommand::Declare(DeclareManifest {
            agent: holder(*client),
            principal: principal(),
            session: "s".into(),
            // Whoever it is, it has one age for good: names decide nothing here.
            priority: u64::from(*client),
            requests: requests.iter().map(|(name, mode)| lease_request(*name, *mode)).collect(),
            wait_timeout: TickDuration::from_secs(50),
        })),
        Step::Enqueue { client, names, any } => {
            let mut requests: Vec<_> =
                names.iter().map(|name| lease_request(*name, LeaseMode::Exclusive)).collect();
            if *any {
                let alternatives: Vec<_> = requests.drain(1..).map(|request| request.resource).collect();
                requests = requests
                    .into_iter()
                    .map(|request| request.with_alternatives(alternatives.clone()))
                    .collect();
            }
            let (principal, holder) = (principal(), holder(*client));
            let contention = ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(50) };
            Some(Command::Acquire(Acquire {
                principal,
                holder,
                requests,
                contention_policy: contention,
                key: None,
            }))
        }
        Step::Abort { client } => agents(AgentCommand::Report(AgentReport {
            agent: holder(*client),
            principal: principal(),
            session: "s".into(),
            phase: AgentPhase::Aborted,
            memory: None,
        })),
        Step::Release { client } => {
            let first = state.leases_of_holder(&holder(*client)).next()?.fence;
            let (agent, principal) = (holder(*client), principal());
            agents(AgentCommand::Release { agent, principal, leases: vec![first] })
        }
        Step::AdvanceClock { .. } => Some(Command::Expire { max_ended: 100 }),
    }
}

/// Somebody who waits for itself, over others, in what is left without edges of which any one of several is enough.
fn find_cycle(edges: &[Edge<'_>]) -> Option<Holder> {
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
fn edges_by_brute_force(state: &KernelState, now: Tick) -> BTreeSet<(&Holder, &Holder, bool)> {
    let requests = waiting_requests(state, now);
    let mut pairs = BTreeSet::new();
    for request in &requests {
        let meets =
            |name: &Resource| tenure_core::rules::overlap::overlaps(name.as_str(), request.resource.as_str());
        for lease in state.leases_from(tenure_core::kernel::Fence(0)) {
            if now < lease.terms.expires_at
                && meets(lease.resource)
                && !lease.terms.mode.is_compatible(request.mode)
            {
                pairs.insert((request.holder, lease.holder, true));
            }
        }
        for other in requests.iter().filter(|other| other.wait < request.wait) {
            if meets(other.resource) && !other.mode.is_compatible(request.mode) {
                pairs.insert((request.holder, other.holder, false));
            }
        }
    }
    pairs.into_iter().filter(|(from, to, _)| from != to).collect()
}

proptest! {
    // O-17
    #[test]
    fn the_wait_graph_has_no_cycle_and_equals_a_brute_force_search(steps in prop::collection::vec(step(), 1..60)) {
        let mut state = KernelState::new(tenure_core::kernel::LedgerTag(7), Limits::default(), Default::default());
        let mut now = Tick(0);
        for step in &steps {
            if let Step::AdvanceClock { seconds } = step {
                now = now.saturating_add(TickDuration::from_secs(*seconds));
            }
            let Some(command) = command(&state, step) else { continue };
            for event in decide(&state, &command, now).events {
                state.apply(&event).unwrap();
            }
            let graph = Graph::new(&state, now);
            let edges: Vec<_> = graph.edges().collect();
            prop_assert_eq!(find_cycle(&edges), None, "{:?}", edges);
            let pairs: BTreeSet<_> = edges.iter().map(|edge| (edge.from, edge.to, edge.is_held)).collect();
            prop_assert_eq!(pairs, edges_by_brute_force(&state, now));
        }
    }
}
