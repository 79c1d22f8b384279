//! Agents as bytes and back.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::{CheckpointReader, CheckpointWriter};
use super::decode::CheckpointDecoder;
use super::fields::{
    CheckpointCodec, checkpoint_codec, checkpoint_enum, checkpoint_option, checkpoint_struct,
};
use crate::authority::{Authority, Budget, LeaseScope};
use crate::kernel::agent::{AgentPhase, AgentRank, AgentWait};
use crate::kernel::file::{
    BlockedReport, FileOwner, FileSession, RetryTicket, RetryTicketEnd, UncommittedFile,
};
use crate::kernel::intent::{
    Intent, IntentKey, IntentSession, IntentSessionEnd, IntentSessionState, IntentTarget,
};
use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::newtypes::{Fence, Holder, Resource, Tick, Ticket};
use crate::kernel::state::work_leases::{KeyedSpend, WorkLease};
use crate::kernel::state::{AgentRecord, KernelState};
use crate::rules::is_expired;
use crate::rules::overlap::is_hierarchical;

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
    pub(super) fn encode_agents(&mut self, state: &KernelState) {
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
    pub(super) fn decode_agents(&mut self) -> Result<(), RestoreError> {
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

checkpoint_struct! {
    FileSession { id, parent, agent, session, process, task, began_at, seen_at, turn_ended_at }
    "a session was heard of before it began, or will be" unless
        |it, now| it.turn_ended_at.is_none_or(|at| at <= now) && it.began_at <= it.seen_at;
}

checkpoint_struct! {
    RetryTicket { ticket, session, request, at, retry_at after at, cycle, blocked }
    preset end: None;
    "a session was blocked before its retry was due" unless
        |it, _| it.blocked.as_ref().is_none_or(|blocked| is_expired(blocked.at.0, it.retry_at.0));
}

checkpoint_struct! {
    BlockedReport { at, owner, held_since, seen_at, cycle }
    "a report tells of the future" unless |it, _| it.held_since <= it.at && it.seen_at <= it.at;
}

checkpoint_struct! { FileOwner { holder, agent, session, process, task } }

checkpoint_struct! { UncommittedFile { owner, at } }

checkpoint_enum! { RetryTicketEnd, "a ticket ended in an unknown way"; }

checkpoint_option! { BlockedReport; }

impl CheckpointWriter<'_> {
    /// Sessions by their names, open tickets and the reports of others by their numbers, and what was left, the oldest first.
    pub(super) fn encode_files(&mut self, state: &KernelState) {
        self.list(state.file_sessions(), |put, session| session.write(put));
        self.list(state.retry_tickets(), |put, ticket| ticket.write(put));
        let reports = state.blocked_reports().filter_map(|report| Some((report, report.end?)));
        self.list(reports, |put, (report, end)| {
            report.write(put);
            end.write(put);
        });
        self.list(state.files.uncommitted_oldest_first(), |put, (resource, uncommitted)| {
            resource.write(put);
            uncommitted.write(put);
        });
    }
}

impl CheckpointDecoder<'_> {
    pub(super) fn decode_files(&mut self) -> Result<(), RestoreError> {
        let by_id = |session: &FileSession| session.id.clone();
        for session in self.reader.ascending_list(by_id, "sessions are not in their order")? {
            self.state.files.insert_session(session);
        }
        let by_number = |ticket: &RetryTicket| ticket.ticket;
        for ticket in self.reader.ascending_list(by_number, "tickets are not in their order")? {
            self.insert_ticket(ticket)?;
        }
        let by_number = |(ticket, _): &(RetryTicket, _)| ticket.ticket;
        for (mut ticket, end) in self.reader.ascending_list(by_number, "reports are not in their order")? {
            self.reader.ensure(ticket.blocked.is_some(), "a report tells of nobody who was blocked")?;
            ticket.end = Some(end);
            self.insert_ticket(ticket)?;
        }
        for (resource, uncommitted) in Vec::<(Resource, UncommittedFile)>::read(&mut self.reader)? {
            self.reader.ensure(self.state.uncommitted_file(&resource).is_none(), "a file was left twice")?;
            self.state.files.record_uncommitted(resource, uncommitted);
        }
        let fits = self.state.invariant_files_are_held_by_active_sessions().is_ok();
        self.reader.ensure(fits, "a file is held by nobody")
    }

    /// No ticket has the number 0.
    fn insert_ticket(&mut self, ticket: RetryTicket) -> Result<(), RestoreError> {
        let was_drawn = (Ticket(1)..=self.state.last_ticket).contains(&ticket.ticket);
        self.reader.ensure(was_drawn, "a ticket was never drawn")?;
        self.state.files.insert_ticket(ticket);
        Ok(())
    }
}

// The end and its detail follow where a session has ended.
checkpoint_struct! {
    IntentSession {
        id, intent, key, principal, state, revision, accepted_at, start_by after accepted_at, changed_at, worker, slot,
        process,
    }
    preset end: None;
    preset detail: "".into();
    "a session never began" unless |session, _| session.revision > 0;
}

checkpoint_enum! {
    IntentSessionState, "a session is nowhere";
    IntentSessionEnd, "a session ended in an unknown way";
}

checkpoint_codec! { IntentKey: |put, key| put.bytes(&key.0), |take| take.array().map(IntentKey); }

checkpoint_option! { (Holder, Fence); }

impl CheckpointCodec for Intent {
    fn write(&self, put: &mut CheckpointWriter<'_>) {
        match &self.target {
            IntentTarget::Service(service) => {
                put.byte(0);
                put.text(service);
            }
            IntentTarget::Recording { id, start_ms } => {
                put.byte(1);
                put.text(id);
                put.varint(*start_ms);
            }
        }
        [&self.profile, &self.params, &self.correlation].into_iter().for_each(|text| put.text(text));
    }

    fn read(take: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        let target = match take.byte()? {
            0 => IntentTarget::Service(take.text()?.into()),
            1 => IntentTarget::Recording { id: take.text()?.into(), start_ms: take.varint()? },
            _ => return Err(take.damaged("a session shows neither a channel nor a recording")),
        };
        let [profile, params, correlation] = [take.text()?, take.text()?, take.text()?].map(Into::into);
        let intent = Intent { target, profile, params, correlation };
        take.ensure(intent.check().is_ok(), "a session wants what cannot be wanted")?;
        Ok(intent)
    }
}

impl CheckpointWriter<'_> {
    /// All sessions: how many changes there were, those that go on by their names, those that are over by their ends.
    pub(super) fn encode_intent_sessions(&mut self, state: &KernelState) {
        self.varint(state.intent_sessions.revision());
        let going = state.intent_sessions.iter().filter(|session| session.state != IntentSessionState::Ended);
        self.list(going, |put, session| session.write(put));
        self.list(state.intent_sessions.ended(), |put, session| {
            session.write(put);
            session.end.expect("a session that is over has an end").write(put);
            session.detail.write(put);
        });
    }
}

impl CheckpointDecoder<'_> {
    pub(super) fn decode_intent_sessions(&mut self) -> Result<(), RestoreError> {
        let revision = self.reader.varint()?;
        let by_id = |session: &IntentSession| session.id.clone();
        for session in self.reader.ascending_list(by_id, "sessions are not in their order")? {
            let is_active = session.state != IntentSessionState::Ended;
            self.reader.ensure(is_active, "a session that is over goes on")?;
            self.insert_session(session, revision)?;
        }
        let mut before = (Tick(0), 0);
        for (mut session, (end, detail)) in
            Vec::<(IntentSession, (IntentSessionEnd, Arc<str>))>::read(&mut self.reader)?
        {
            (session.end, session.detail) = (Some(end), detail);
            let after = (session.changed_at, session.revision);
            let in_order =
                session.state == IntentSessionState::Ended && after.0 >= before.0 && after.1 > before.1;
            self.reader.ensure(in_order, "ended sessions are not in their order")?;
            before = after;
            self.insert_session(session, revision)?;
        }
        self.state.intent_sessions.set_revision(revision);
        Ok(())
    }

    fn insert_session(&mut self, session: IntentSession, revision: u64) -> Result<(), RestoreError> {
        let (state, take) = (&mut self.state, &self.reader);
        let is_new = state.intent_session(&session.id).is_none();
        let newest = state.intent_sessions.changed_since(session.revision - 1).next();
        let is_free = newest.is_none_or(|other| other.revision != session.revision);
        take.ensure(is_new && is_free, "a session stands twice")?;
        take.ensure(session.revision <= revision, "a session changed after the last change")?;
        let is_active = session.state != IntentSessionState::Ended;
        let taken =
            is_active && state.intent_session_by_key(session.key, session.intent.target.kind()).is_some();
        take.ensure(!taken, "two sessions have one key")?;
        take.ensure(is_reachable(&session, state.last_fence), "a session cannot have come there like this")?;
        take.ensure(state.holds_required_leases(&session), "a session does not hold what it is said to")?;
        state.intent_sessions.insert(session);
        Ok(())
    }
}

/// Whether what is said of a session goes together.
fn is_reachable(session: &IntentSession, last_fence: Fence) -> bool {
    let was_taken = session.worker.is_some();
    let has_right_slot = session.slot.is_some() == (was_taken && session.intent.target.requires_tuner());
    let knows_guard = session.worker.as_ref().is_none_or(|(_, guard)| *guard <= last_fence);
    let came_in_order = session.changed_at >= session.accepted_at;
    let is_plain = session.process.is_empty();
    has_right_slot
        && knows_guard
        && came_in_order
        && match session.state {
            IntentSessionState::New => !was_taken && is_plain && session.changed_at == session.accepted_at,
            IntentSessionState::Starting => was_taken && is_plain,
            IntentSessionState::Running | IntentSessionState::Stopping => was_taken,
            IntentSessionState::Ended => was_taken || is_plain,
        }
}

/// The fewest bytes that the authority of a lease has: one for each of three budgets' amounts, its number, its parent, and a
/// scope.
const MIN_BYTES: usize = 3 * 4 + 3;

checkpoint_struct! { KeyedSpend { lease, remaining } }

impl CheckpointCodec for Budget {
    fn write(&self, put: &mut CheckpointWriter<'_>) {
        self.amounts().into_iter().for_each(|amount| put.varint(amount));
    }

    fn read(take: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        let mut amounts = [0; 4];
        for amount in &mut amounts {
            *amount = take.varint()?;
        }
        let budget = Budget::from_amounts(amounts);
        take.ensure(budget.check().is_ok(), "a budget is too large")?;
        Ok(budget)
    }
}

impl CheckpointCodec for WorkLease {
    fn write(&self, put: &mut CheckpointWriter<'_>) {
        put.varint(self.authority.parent.map_or(0, |parent| parent.0));
        let scope = self.authority.scope.canonical_bytes();
        put.count(scope.len());
        put.bytes(&scope);
        [self.authority.budget, self.spent, self.delegated].iter().for_each(|budget| budget.write(put));
    }

    fn read(take: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        let parent = take.varint()?;
        let parent = (parent > 0).then_some(Fence(parent));
        let length = take.count(1)?;
        let scope = LeaseScope::from_canonical_bytes(take.slice(length)?);
        let scope = scope.map_err(|_| take.damaged("a scope is none"))?;
        let (budget, (spent, delegated)) = CheckpointCodec::read(take)?;
        let authority = Arc::new(Authority { parent, scope, budget });
        let work = WorkLease::from_usage(authority, spent, delegated);
        work.ok_or_else(|| take.damaged("more was used up than there was"))
    }
}

impl CheckpointWriter<'_> {
    /// Of leases that live, by their numbers, then of those that are over.
    pub(super) fn encode_work_leases(&mut self, state: &KernelState) {
        self.write_work_leases(state.work_leases.iter().map(|(fence, work)| (*fence, work)).collect());
        let ended =
            state.ended_leases.iter().filter_map(|ended| Some((ended.fence, ended.work_lease.as_deref()?)));
        self.write_work_leases(ended.collect());
    }

    fn write_work_leases(&mut self, works: Vec<(Fence, &WorkLease)>) {
        self.count(works.len());
        let mut before = 0;
        for (fence, work) in works {
            self.delta(&mut before, fence.0);
            work.write(self);
        }
    }
}

impl CheckpointDecoder<'_> {
    pub(super) fn decode_work_leases(&mut self) -> Result<(), RestoreError> {
        let mut fence = Fence(0);
        for _ in 0..self.reader.count(MIN_BYTES)? {
            fence = Fence(self.reader.delta(fence.0)?);
            let work = WorkLease::read(&mut self.reader)?;
            let is_active = self.state.by_fence.get(fence).is_some();
            self.reader.ensure(is_active, "there is authority of a lease that does not live")?;
            // Numbers grow, so the parent was read before.
            let has_parent = work.authority.parent.is_none_or(|parent| self.state.can_derive(parent));
            self.reader.ensure(has_parent, "a lease lives without its parent, or with too many")?;
            self.state.insert_work_lease(fence, work, false);
        }
        let mut fence = Fence(0);
        for _ in 0..self.reader.count(MIN_BYTES)? {
            fence = Fence(self.reader.delta(fence.0)?);
            let work = WorkLease::read(&mut self.reader)?;
            let ended = self.state.ended_leases.get_mut(fence);
            let ended = ended.ok_or_else(|| self.reader.damaged("there is authority of no lease"))?;
            ended.work_lease = Some(Box::new(work));
        }
        let fits = self.state.invariant_children_are_within_parents().is_ok();
        self.reader.ensure(fits, "a lease is more than a part of its parent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that moves would give old checkpoints another meaning.
    #[test]
    fn session_state_and_end_codes_are_stable() {
        assert_eq!(IntentSessionState::ALL.map(|state| state as u8), [0, 1, 2, 3, 4]);
        assert_eq!(IntentSessionEnd::ALL.map(|end| end as u8), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
