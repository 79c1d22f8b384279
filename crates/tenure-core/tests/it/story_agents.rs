//! What agents ask, in stories.
//!
//! ```text
//!   0  agent old declares 10 FILE:a/MUTATES             -> granted 1
//!   5  agent young declares 20 FILE:a/MUTATES           -> died young, dies behind old
//!   9  agent old beats 1                                -> beats: 1 until 69
//! ```
//!
//! A manifest lasts for 60 s and waits for 60 s unless it says otherwise: `for 10 wait 5`.

use std::sync::Arc;

use tenure_core::kernel::{
    AgentAnswer, AgentCommand, AgentEvent, Command, Declare, End, Fence, Mode, Nonce, Phase, Pulse,
    Remembered, Report, Resource, Want,
};

use crate::story::{holder, named, names, numbers, principal, seconds, time};

/// What an agent asks, after its name.
pub fn command(name: &str, words: &[&str]) -> Command {
    let (agent, principal) = (holder(name), principal(&format!("{name}'s")));
    let fences = |words: &[&str]| -> Vec<Fence> {
        words.iter().map(|word| Fence(word.parse().expect("a lease's number"))).collect()
    };
    let session: Arc<str> = "s".into();
    let command = match words {
        ["declares", priority, wants, options @ ..] => {
            let option =
                |wanted: &str| options.iter().position(|word| *word == wanted).map(|at| options[at + 1]);
            let ttl = seconds(option("for").unwrap_or("60"));
            let want = |text: &str| {
                let (name, mode) = touched(text);
                Want::new(name, mode, ttl, Nonce([1; 16]))
            };
            AgentCommand::Declare(Declare {
                agent,
                principal,
                session,
                priority: priority.parse().expect("an age"),
                wants: wants.split('+').map(want).collect(),
                patience: seconds(option("wait").unwrap_or("60")),
            })
        }
        ["beats", leases @ ..] => AgentCommand::Heartbeat { agent, principal, leases: fences(leases) },
        ["releases", leases @ ..] => AgentCommand::Release { agent, principal, leases: fences(leases) },
        ["reports", phase, memory @ ..] => {
            let remembers = match memory {
                ["age", priority, "epoch", epoch] => Some(Remembered {
                    priority: priority.parse().expect("an age"),
                    epoch: epoch.parse().expect("an epoch"),
                }),
                _ => None,
            };
            let phase = Phase::parse(phase).expect("a phase");
            AgentCommand::Report(Report { agent, principal, session, phase, remembers })
        }
        ["touches", what] => {
            AgentCommand::Touch { agent, principal, touched: what.split('+').map(touched).collect() }
        }
        _ => panic!("no agent asks this: {words:?}"),
    };
    Command::Agent(Box::new(command))
}

fn touched(text: &str) -> (Resource, Mode) {
    let (name, mode) = named(text);
    (Resource::parse(name).expect("a resource"), mode)
}

/// What happened to agents. How an attempt or a wait began goes without saying.
pub fn render_event(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::Left { ticket, end, .. } => format!("left t{} {}", ticket.0, end.as_str()),
        AgentEvent::Died { agent, .. } => format!("died {agent}"),
        AgentEvent::Touched { leases, .. } => format!("used{}", numbers(leases)),
        AgentEvent::Strayed { agent, outside, .. } => format!("strayed {agent}{}", resources(outside)),
        AgentEvent::UsedUp { agent, .. } => format!("used up {agent}"),
        AgentEvent::Began { .. } | AgentEvent::Waits(_) | AgentEvent::Reported { .. } => return None,
    })
}

/// What an agent is told. When one that died may come back is left to a test of its own.
pub fn render_answer(answer: &AgentAnswer) -> String {
    match answer {
        AgentAnswer::Granted { leases } => format!("granted{}", numbers(leases)),
        AgentAnswer::Wait { ticket, position, until, blocked_by } => {
            let (behind, until) = (names(blocked_by), time(*until));
            format!("waits t{} place {position} behind {behind} until {until}", ticket.0)
        }
        AgentAnswer::Die { blocked_by, ended, .. } if ended.is_empty() => {
            format!("dies behind {}", names(blocked_by))
        }
        AgentAnswer::Die { blocked_by, ended, .. } => {
            format!("dies behind {} without{}", names(blocked_by), numbers(ended))
        }
        AgentAnswer::Beaten(beaten) => {
            let beats: Vec<String> = beaten
                .iter()
                .map(|(fence, pulse)| match pulse {
                    Pulse::Until(until) => format!("{} until {}", fence.0, time(*until)),
                    Pulse::Over(End::Expired) => format!("{} expired", fence.0),
                    Pulse::Over(End::Released(_)) => format!("{} released", fence.0),
                    Pulse::Over(End::Revoked(cause)) => format!("{} {cause:?}", fence.0),
                    Pulse::Unknown => format!("{} unknown", fence.0),
                })
                .collect();
            format!("beats: {}", beats.join(", "))
        }
        AgentAnswer::Released(leases) => format!("released{}", numbers(leases)),
        AgentAnswer::Noted => "noted".into(),
        AgentAnswer::Touched { outside } if outside.is_empty() => "within".into(),
        AgentAnswer::Touched { outside } => format!("outside{}", resources(outside)),
    }
}

fn resources(outside: &[(Resource, Mode)]) -> String {
    outside.iter().map(|(resource, _)| format!(" {resource}")).collect()
}

/// Lets somebody else ask the same.
pub fn speak_as(command: &mut AgentCommand, name: &str) {
    let other = crate::story::principal(name);
    match command {
        AgentCommand::Declare(declare) => declare.principal = other,
        AgentCommand::Report(report) => report.principal = other,
        AgentCommand::Heartbeat { principal, .. }
        | AgentCommand::Release { principal, .. }
        | AgentCommand::Touch { principal, .. } => *principal = other,
    }
}
