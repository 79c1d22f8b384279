//! What happens in random worlds of agents, and how it is asked.

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, AgentPhase, ChangeMode, Command, ContentionPolicy, Fence, Holder, KernelState, LeaseCredential,
    LeaseMode, LeaseRequest, Limits, Nonce, Principal, Resource, RevocationCause, TickDuration,
};

pub const NAMES: [&str; 6] = ["FILE:a/", "FILE:a/x", "FILE:a/y", "FILE:b", "SYMBOL:s", "FILE:a/*"];
const TTL: TickDuration = TickDuration::from_secs(60);
const AGENTS: u8 = 5;

#[derive(Debug, Clone)]
pub enum AgentStep {
    Declare { agent: u8, priority: u64, requests: Vec<(u8, LeaseMode)>, wait_timeout: u64, swept: bool },
    Heartbeat { agent: u8, back: u64 },
    Release { agent: u8, all: bool },
    Report { agent: u8, phase: AgentPhase, memory: Option<(u64, u64)> },
    Touch { agent: u8, touched: Vec<(u8, LeaseMode)> },
    Plain(PlainStep),
    Expire,
    Save,
}

/// What others do, who know nothing of agents.
#[derive(Debug, Clone)]
pub enum PlainStep {
    /// Now and then under the name of an agent, by its principal or by somebody else.
    Acquire {
        name: u8,
        mode: LeaseMode,
        can_wait: bool,
        posing: Option<(u8, bool)>,
    },
    Transfer {
        pick: usize,
        to: u8,
    },
    Change {
        pick: usize,
        mode: LeaseMode,
        up: bool,
    },
    Revoke {
        pick: usize,
    },
    Reclaim {
        agent: u8,
    },
}

pub fn holder(number: u8) -> Holder {
    Holder::parse(&format!("agent-{number}")).expect("a name")
}

pub fn principal(number: u8) -> Principal {
    Principal::parse(&format!("token:{}", number % 2)).expect("a name")
}

pub fn resource(name: u8) -> Resource {
    Resource::parse(NAMES[usize::from(name) % NAMES.len()]).expect("a resource")
}

pub fn lease_request(name: u8, mode: LeaseMode) -> LeaseRequest {
    LeaseRequest::new(resource(name), mode, TTL, Nonce([1; 16]))
}

/// No bounds on what agents keep, or bounds that are soon reached.
pub fn limits() -> impl Strategy<Value = Limits> {
    any::<bool>().prop_map(|tight| Limits {
        max_agent_hold_time: tight.then_some(TickDuration::from_secs(100)),
        max_agent_idle_time: tight.then_some(TickDuration::from_secs(40)),
        ..Limits::default()
    })
}

fn mode() -> impl Strategy<Value = LeaseMode> {
    prop::sample::select(&LeaseMode::ALL[2..])
}

pub fn plain_step() -> impl Strategy<Value = PlainStep> {
    let some_mode = || prop::sample::select(&LeaseMode::ALL[..]);
    prop_oneof![
        4 => (0..6_u8, some_mode(), any::<bool>(), prop::option::weighted(0.3, (0..AGENTS, any::<bool>())))
            .prop_map(|(name, mode, can_wait, posing)| PlainStep::Acquire { name, mode, can_wait, posing }),
        2 => (0..8_usize, 0..=AGENTS).prop_map(|(pick, to)| PlainStep::Transfer { pick, to }),
        2 => (0..8_usize, some_mode(), any::<bool>())
            .prop_map(|(pick, mode, up)| PlainStep::Change { pick, mode, up }),
        1 => (0..8_usize).prop_map(|pick| PlainStep::Revoke { pick }),
        1 => (0..AGENTS).prop_map(|agent| PlainStep::Reclaim { agent }),
    ]
}

pub fn agent_step() -> impl Strategy<Value = (u64, AgentStep)> {
    let wants =
        || prop::collection::btree_map(0..6_u8, mode(), 1..4).prop_map(|wants| wants.into_iter().collect());
    let declare = (0..AGENTS, 0..6_u64, wants(), 1..90_u64, any::<bool>()).prop_map(
        |(agent, priority, wants, patience, swept)| AgentStep::Declare {
            agent,
            priority,
            requests: wants,
            wait_timeout: patience,
            swept,
        },
    );
    let memory = prop::option::of((0..6_u64, 0..3_u64));
    let report = (0..AGENTS, prop::sample::select(&AgentPhase::ALL[..]), memory);
    let step = prop_oneof![
        10 => declare,
        2 => (0..AGENTS, 0..4_u64).prop_map(|(agent, back)| AgentStep::Heartbeat { agent, back }),
        3 => (0..AGENTS, any::<bool>()).prop_map(|(agent, all)| AgentStep::Release { agent, all }),
        2 => report.prop_map(|(agent, phase, memory)| AgentStep::Report { agent, phase, memory }),
        2 => (0..AGENTS, wants()).prop_map(|(agent, touched)| AgentStep::Touch { agent, touched }),
        3 => plain_step().prop_map(AgentStep::Plain),
        2 => Just(AgentStep::Expire),
        1 => Just(AgentStep::Save),
    ];
    (prop_oneof![4 => Just(0_u64), 3 => 1..20_u64, 1 => 20..80_u64], step)
}

impl PlainStep {
    /// What is asked, if there is anything to ask it of.
    pub fn command(&self, state: &KernelState) -> Option<Command> {
        let lease = |pick: usize| {
            let leases: Vec<Fence> = state.leases_from(Fence(0)).map(|lease| lease.fence).collect();
            (!leases.is_empty()).then(|| leases[pick % leases.len()])
        };
        let admin = || Principal::parse("token:admin").expect("a name");
        let person = || {
            let holder = Holder::parse("person").expect("a name");
            (holder, Principal::parse("token:plain").expect("a name"))
        };
        let (nonce, claim) = (Nonce([2; 16]), LeaseCredential::Token);
        Some(match *self {
            PlainStep::Acquire { name, mode, can_wait, posing } => {
                let (holder, principal) = match posing {
                    None => person(),
                    Some((agent, true)) => (holder(agent), principal(agent)),
                    // It is refused, always.
                    Some((agent, false)) if state.agent(&holder(agent)).is_some() => {
                        (holder(agent), person().1)
                    }
                    Some(_) => person(),
                };
                let contention = if can_wait {
                    ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(40) }
                } else {
                    ContentionPolicy::Deny
                };
                Command::Acquire(Acquire {
                    principal,
                    holder,
                    requests: vec![lease_request(name, mode)],
                    contention_policy: contention,
                    key: None,
                })
            }
            PlainStep::Transfer { pick, to } => {
                let (to, principal) = if to < AGENTS { (holder(to), principal(to)) } else { person() };
                Command::Transfer { lease: lease(pick)?, claim, to, principal, nonce }
            }
            PlainStep::Change { pick, mode, up } => {
                let change = ChangeMode { lease: lease(pick)?, credential: claim, mode, nonce };
                if up { Command::Upgrade(change) } else { Command::Downgrade(change) }
            }
            PlainStep::Revoke { pick } => {
                let (cause, detail) = (RevocationCause::Revoked, "because".into());
                Command::Revoke { lease: lease(pick)?, cause, by: admin(), detail }
            }
            PlainStep::Reclaim { agent } => {
                Command::Reclaim { holder: holder(agent), by: admin(), detail: "its process is gone".into() }
            }
        })
    }
}
