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
    AgentCommand, AgentEvent, AgentOutcome, AgentPhase, AgentReport, Command, DeclareManifest, Fence,
    HeartbeatOutcome, LeaseEnd, LeaseMode, LeaseRequest, Nonce, ReportedAgentState, Resource,
};

use crate::scenario::{
    format_fences, format_holders, format_tick, holder, parse_resource_and_mode, parse_seconds, principal,
};

/// What an agent asks, after its name.
pub fn parse_agent_command(name: &str, words: &[&str]) -> Command {
    let (agent, principal) = (holder(name), principal(&format!("{name}'s")));
    let fences = |words: &[&str]| -> Vec<Fence> {
        words.iter().map(|word| Fence(word.parse().expect("a lease's number"))).collect()
    };
    let session: Arc<str> = "s".into();
    let command = match words {
        ["declares", priority, requests, options @ ..] => {
            let option =
                |keyword: &str| options.iter().position(|word| *word == keyword).map(|at| options[at + 1]);
            let ttl = parse_seconds(option("for").unwrap_or("60"));
            let request = |text: &str| {
                let (name, mode) = parse_touch(text);
                LeaseRequest::new(name, mode, ttl, Nonce([1; 16]))
            };
            AgentCommand::Declare(DeclareManifest {
                agent,
                principal,
                session,
                priority: priority.parse().expect("an age"),
                requests: requests.split('+').map(request).collect(),
                wait_timeout: parse_seconds(option("wait").unwrap_or("60")),
            })
        }
        ["beats", leases @ ..] => AgentCommand::Heartbeat { agent, principal, leases: fences(leases) },
        ["releases", leases @ ..] => AgentCommand::Release { agent, principal, leases: fences(leases) },
        ["reports", phase, memory @ ..] => {
            let remembers = match memory {
                ["age", priority, "epoch", epoch] => Some(ReportedAgentState {
                    priority: priority.parse().expect("an age"),
                    epoch: epoch.parse().expect("an epoch"),
                }),
                _ => None,
            };
            let phase = AgentPhase::parse(phase).expect("a phase");
            AgentCommand::Report(AgentReport { agent, principal, session, phase, memory: remembers })
        }
        ["touches", what] => {
            AgentCommand::Touch { agent, principal, touched: what.split('+').map(parse_touch).collect() }
        }
        _ => panic!("no agent asks this: {words:?}"),
    };
    Command::Agent(Box::new(command))
}

fn parse_touch(text: &str) -> (Resource, LeaseMode) {
    let (name, mode) = parse_resource_and_mode(text);
    (Resource::parse(name).expect("a resource"), mode)
}

/// What happened to agents. How an attempt or a wait began goes without saying.
pub fn render_event(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::Left { ticket, end, .. } => format!("left t{} {}", ticket.0, end.as_str()),
        AgentEvent::Died { agent, .. } => format!("died {agent}"),
        AgentEvent::Touched { leases, .. } => format!("used{}", format_fences(leases)),
        AgentEvent::Strayed { agent, outside, .. } => format!("strayed {agent}{}", format_resources(outside)),
        AgentEvent::UsedUp { agent, .. } => format!("used up {agent}"),
        AgentEvent::Began { .. } | AgentEvent::Waits(_) | AgentEvent::Reported { .. } => return None,
    })
}

/// What an agent is told. When one that died may come back is left to a test of its own.
pub fn render_answer(answer: &AgentOutcome) -> String {
    match answer {
        AgentOutcome::Granted { leases } => format!("granted{}", format_fences(leases)),
        AgentOutcome::Wait { ticket, position, until, blocked_by } => {
            let (behind, until) = (format_holders(blocked_by), format_tick(*until));
            format!("waits t{} place {position} behind {behind} until {until}", ticket.0)
        }
        AgentOutcome::Die { blocked_by, ended, .. } if ended.is_empty() => {
            format!("dies behind {}", format_holders(blocked_by))
        }
        AgentOutcome::Die { blocked_by, ended, .. } => {
            format!("dies behind {} without{}", format_holders(blocked_by), format_fences(ended))
        }
        AgentOutcome::Heartbeats(beaten) => {
            let beats: Vec<String> = beaten
                .iter()
                .map(|(fence, outcome)| match outcome {
                    HeartbeatOutcome::Active(until) => format!("{} until {}", fence.0, format_tick(*until)),
                    HeartbeatOutcome::Ended(LeaseEnd::Expired) => format!("{} expired", fence.0),
                    HeartbeatOutcome::Ended(LeaseEnd::Released(_)) => format!("{} released", fence.0),
                    HeartbeatOutcome::Ended(LeaseEnd::Revoked(cause)) => format!("{} {cause:?}", fence.0),
                    HeartbeatOutcome::Unknown => format!("{} unknown", fence.0),
                })
                .collect();
            format!("beats: {}", beats.join(", "))
        }
        AgentOutcome::Released(leases) => format!("released{}", format_fences(leases)),
        AgentOutcome::Acknowledged => "noted".into(),
        AgentOutcome::Touched { outside } if outside.is_empty() => "within".into(),
        AgentOutcome::Touched { outside } => format!("outside{}", format_resources(outside)),
    }
}

fn format_resources(outside: &[(Resource, LeaseMode)]) -> String {
    outside.iter().map(|(resource, _)| format!(" {resource}")).collect()
}

/// Lets somebody else ask the same.
pub fn set_principal(command: &mut AgentCommand, name: &str) {
    let other = crate::scenario::principal(name);
    match command {
        AgentCommand::Declare(declare) => declare.principal = other,
        AgentCommand::Report(report) => report.principal = other,
        AgentCommand::Heartbeat { principal, .. }
        | AgentCommand::Release { principal, .. }
        | AgentCommand::Touch { principal, .. } => *principal = other,
    }
}
