//! What happens in random worlds of agents, and how it is asked.

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, Cause, ChangeMode, Claim, Command, Contention, Fence, Holder, Limits, Mode, Nonce, Phase,
    Principal, Resource, Span, State, Want,
};

pub const NAMES: [&str; 6] = ["FILE:a/", "FILE:a/x", "FILE:a/y", "FILE:b", "SYMBOL:s", "FILE:a/*"];
const TTL: Span = Span::from_secs(60);
const AGENTS: u8 = 5;

#[derive(Debug, Clone)]
pub enum Step {
    Declare { agent: u8, priority: u64, wants: Vec<(u8, Mode)>, patience: u64, swept: bool },
    Heartbeat { agent: u8, back: u64 },
    Release { agent: u8, all: bool },
    Report { agent: u8, phase: Phase, memory: Option<(u64, u64)> },
    Touch { agent: u8, touched: Vec<(u8, Mode)> },
    Plain(Plain),
    Expire,
    Save,
}

/// What others do, who know nothing of agents.
#[derive(Debug, Clone)]
pub enum Plain {
    /// Now and then under the name of an agent, by its principal or by somebody else.
    Acquire {
        name: u8,
        mode: Mode,
        waits: bool,
        posing: Option<(u8, bool)>,
    },
    Transfer {
        pick: usize,
        to: u8,
    },
    Change {
        pick: usize,
        mode: Mode,
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

pub fn want(name: u8, mode: Mode) -> Want {
    Want::new(resource(name), mode, TTL, Nonce([1; 16]))
}

/// No bounds on what agents keep, or bounds that are soon reached.
pub fn limits() -> impl Strategy<Value = Limits> {
    any::<bool>().prop_map(|tight| Limits {
        lease_time: tight.then_some(Span::from_secs(100)),
        idle: tight.then_some(Span::from_secs(40)),
        ..Limits::default()
    })
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(&Mode::ALL[2..])
}

pub fn plain() -> impl Strategy<Value = Plain> {
    let some_mode = || prop::sample::select(&Mode::ALL[..]);
    prop_oneof![
        4 => (0..6_u8, some_mode(), any::<bool>(), prop::option::weighted(0.3, (0..AGENTS, any::<bool>())))
            .prop_map(|(name, mode, waits, posing)| Plain::Acquire { name, mode, waits, posing }),
        2 => (0..8_usize, 0..=AGENTS).prop_map(|(pick, to)| Plain::Transfer { pick, to }),
        2 => (0..8_usize, some_mode(), any::<bool>())
            .prop_map(|(pick, mode, up)| Plain::Change { pick, mode, up }),
        1 => (0..8_usize).prop_map(|pick| Plain::Revoke { pick }),
        1 => (0..AGENTS).prop_map(|agent| Plain::Reclaim { agent }),
    ]
}

pub fn step() -> impl Strategy<Value = (u64, Step)> {
    let wants =
        || prop::collection::btree_map(0..6_u8, mode(), 1..4).prop_map(|wants| wants.into_iter().collect());
    let declare = (0..AGENTS, 0..6_u64, wants(), 1..90_u64, any::<bool>()).prop_map(
        |(agent, priority, wants, patience, swept)| Step::Declare { agent, priority, wants, patience, swept },
    );
    let memory = prop::option::of((0..6_u64, 0..3_u64));
    let report = (0..AGENTS, prop::sample::select(&Phase::ALL[..]), memory);
    let step = prop_oneof![
        10 => declare,
        2 => (0..AGENTS, 0..4_u64).prop_map(|(agent, back)| Step::Heartbeat { agent, back }),
        3 => (0..AGENTS, any::<bool>()).prop_map(|(agent, all)| Step::Release { agent, all }),
        2 => report.prop_map(|(agent, phase, memory)| Step::Report { agent, phase, memory }),
        2 => (0..AGENTS, wants()).prop_map(|(agent, touched)| Step::Touch { agent, touched }),
        3 => plain().prop_map(Step::Plain),
        2 => Just(Step::Expire),
        1 => Just(Step::Save),
    ];
    (prop_oneof![4 => Just(0_u64), 3 => 1..20_u64, 1 => 20..80_u64], step)
}

impl Plain {
    /// What is asked, if there is anything to ask it of.
    pub fn command(&self, state: &State) -> Option<Command> {
        let lease = |pick: usize| {
            let leases: Vec<Fence> = state.leases_from(Fence(0)).map(|lease| lease.fence).collect();
            (!leases.is_empty()).then(|| leases[pick % leases.len()])
        };
        let admin = || Principal::parse("token:admin").expect("a name");
        let person = || {
            let holder = Holder::parse("person").expect("a name");
            (holder, Principal::parse("token:plain").expect("a name"))
        };
        let (nonce, claim) = (Nonce([2; 16]), Claim::Token);
        Some(match *self {
            Plain::Acquire { name, mode, waits, posing } => {
                let (holder, principal) = match posing {
                    None => person(),
                    Some((agent, true)) => (holder(agent), principal(agent)),
                    // It is refused, always.
                    Some((agent, false)) if state.agent(&holder(agent)).is_some() => {
                        (holder(agent), person().1)
                    }
                    Some(_) => person(),
                };
                let contention = if waits {
                    Contention::Queue { patience: Span::from_secs(40) }
                } else {
                    Contention::Refuse
                };
                Command::Acquire(Acquire {
                    principal,
                    holder,
                    wants: vec![want(name, mode)],
                    contention,
                    key: None,
                })
            }
            Plain::Transfer { pick, to } => {
                let (to, principal) = if to < AGENTS { (holder(to), principal(to)) } else { person() };
                Command::Transfer { lease: lease(pick)?, claim, to, principal, nonce }
            }
            Plain::Change { pick, mode, up } => {
                let change = ChangeMode { lease: lease(pick)?, claim, mode, nonce };
                if up { Command::Upgrade(change) } else { Command::Downgrade(change) }
            }
            Plain::Revoke { pick } => {
                let (cause, detail) = (Cause::Revoked, "because".into());
                Command::Revoke { lease: lease(pick)?, cause, by: admin(), detail }
            }
            Plain::Reclaim { agent } => {
                Command::Reclaim { holder: holder(agent), by: admin(), detail: "its process is gone".into() }
            }
        })
    }
}
