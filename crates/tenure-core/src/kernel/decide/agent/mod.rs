//! One file per request of an agent: what it leads to.

mod declare;
mod heartbeat;
mod release;
mod report;
mod touch;

use crate::kernel::agent::AgentCommand;
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::name::{Holder, Principal};

pub(super) fn decide(draft: &mut Draft<'_>, command: &AgentCommand) -> Result<Answer, Refusal> {
    let answer = match command {
        AgentCommand::Declare(declare) => declare::declare(draft, declare),
        AgentCommand::Heartbeat { agent, principal, leases } => {
            heartbeat::heartbeat(draft, agent, principal, leases)
        }
        AgentCommand::Release { agent, principal, leases } => {
            release::release(draft, agent, principal, leases)
        }
        AgentCommand::Report(report) => report::report(draft, report),
        AgentCommand::Touch { agent, principal, touched } => touch::touch(draft, agent, principal, touched),
    };
    answer.map(|answer| Answer::Agent(Box::new(answer)))
}

fn check_own(draft: &Draft<'_>, agent: &Holder, principal: &Principal) -> Result<(), Refusal> {
    if !draft.state.may_be(agent, principal, draft.now) {
        return Err(Refusal::HolderTaken { holder: agent.clone() });
    }
    super::check_may_hold(draft, agent, principal)
}
