//! How agents are stored: in records, and in checkpoints.

use crate::kernel::agent::{AgentEvent, AgentPhase, AgentRank, AgentRecord, AgentWait, AgentWaitEnd};
use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, fields, message_codec, require_known};
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::state::KernelState;
use crate::kernel::state::checkpoint::RestoreError;
use crate::kernel::state::checkpoint::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::state::checkpoint::decode::CheckpointDecoder;
use crate::kernel::state::checkpoint::fields::{CheckpointCodec, checkpoint_codec, checkpoint_struct};
use crate::proto;
use crate::rules::InvalidInput;
use crate::rules::overlap::is_hierarchical;
use crate::value::{Fence, Holder, LeaseMode, Resource, Tick, Ticket};

fields! {
    AgentEvent in agent_event {
        Began as AgentBegan {
            principal: principal, session: session_id, at: tick;
            rank: flat AgentRank { priority: priority, agent: agent_id }
        }
        Left as AgentLeft { ticket: ticket, at: tick, end: end }
        Died as AgentDied { agent: agent_id, at: tick, retry_at: retry_tick }
        Reported as AgentReported {
            agent: agent_id, principal: principal, session: session_id, at: tick, phase: phase, epoch: epoch
        }
        Touched as AgentTouched { agent: agent_id, at: tick, leases: fences }
        Strayed as AgentStrayed { agent: agent_id, at: tick, outside: outside }
        UsedUp as AgentUsedUp { agent: agent_id, at: tick, used: used_ticks }
    } whole { Waits }
}

fields! {
    AgentWait as AgentWaits {
        ticket: ticket, requests: wants, at: tick, until: until_tick;
        rank: flat AgentRank { priority: priority, agent: agent_id }
    }
}

message_codec! {
    AgentWaitEnd as String: |end| end.as_str().into(), |text| require_known("end", AgentWaitEnd::parse(&text));
    AgentPhase as String: |phase| phase.as_str().into(), |text| require_known("phase", AgentPhase::parse(&text));
    (Resource, LeaseMode) as proto::Touch:
        |touch| proto::Touch { resource: touch.0.to_message(), mode: touch.1.to_message() },
        |touch| Ok((MessageCodec::from_message(touch.resource)?, MessageCodec::from_message(touch.mode)?));
}

checkpoint_struct! {
    AgentRecord {
        priority, principal, session, phase, abort_count, retry_at, extended_leases, changed_at, epoch, restarting_at, outside_resources,
        holding_since, earlier_hold_time, hold_time_used_up,
    }
    "a session is none" unless |agent, _| !agent.session.is_empty();
    "leases are not in their order" unless |agent, _| agent.extended_leases.is_sorted_by(|one, other| one < other);
}

checkpoint_codec! {
    // One more than the phase, or 0.
    Option<AgentPhase>: |put, phase| put.byte(phase.map_or(0, |phase| phase as u8 + 1)), |take| read_phase(take);
}

fn read_phase(take: &mut CheckpointReader<'_>) -> Result<Option<AgentPhase>, RestoreError> {
    let place = usize::from(take.byte()?).checked_sub(1);
    let phase = place.map(|place| AgentPhase::ALL.get(place).copied());
    take.ensure(phase != Some(None), "an agent does something unknown")?;
    Ok(phase.flatten())
}

impl CheckpointWriter<'_> {
    /// All agents by their names, then those who wait, the oldest first.
    pub(in crate::kernel) fn encode_agents(&mut self, state: &KernelState) {
        self.list(state.agents(), |put, (id, agent)| {
            id.write(put);
            agent.write(put);
        });
        self.list(state.waiting_agents(), |put, pending| {
            pending.ticket.write(put);
            pending.rank.agent.write(put);
            pending.at.write(put);
            put.varint(pending.until.since(pending.at).0);
            pending.requests.write(put);
        });
        self.list(state.touches(), |put, touch| touch.write(put));
    }
}

impl CheckpointDecoder<'_> {
    pub(in crate::kernel) fn decode_agents(&mut self) -> Result<(), RestoreError> {
        let agents = self
            .reader
            .ascending_list(|(id, _): &(Holder, AgentRecord)| id.clone(), "agents are not in their order")?;
        for (id, agent) in agents {
            self.state.agents.insert(id, agent);
        }
        let mut last: Option<(AgentRank, Ticket)> = None;
        for _ in 0..self.reader.count(8)? {
            let (ticket, agent) = <(Ticket, Holder)>::read(&mut self.reader)?;
            self.reader.ensure(ticket <= self.state.last_ticket, "a ticket was never drawn")?;
            let rank = self.state.rank_of(&agent);
            let rank = rank.ok_or_else(|| self.reader.damaged("somebody waits who is nobody"))?;
            let at = self.reader.past_tick()?;
            let until = Tick(self.reader.delta(at.0)?);
            let requests = Vec::<LeaseRequest>::read(&mut self.reader)?;
            let fits = requests.iter().all(|request| is_hierarchical(request.resource.as_str()));
            self.reader.ensure(fits, "an agent waits for what it does not wait for")?;
            self.reader.ensure(!requests.is_empty(), "an agent waits for nothing")?;
            let place = Some((rank.clone(), ticket));
            self.reader.ensure(last < place, "those who wait are not in their order")?;
            last = place;
            self.state.agents.wait_index.insert(AgentWait { ticket, rank, requests, at, until });
        }
        let fits = self.state.invariant_agents_wait_only_for_younger().is_ok();
        self.reader.ensure(fits, "somebody waits for an older one")?;
        let touches = self
            .reader
            .ascending_list(|(fence, _): &(Fence, Tick)| *fence, "leases are not in their order")?;
        for (fence, at) in touches {
            self.state.agents.touch(fence, at);
        }
        let fits = self.state.invariant_agent_holdings_are_indexed().is_ok();
        self.reader.ensure(fits, "an agent holds what it does not")
    }
}
