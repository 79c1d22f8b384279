//! How the authority of leases is stored: in records, and in checkpoints.

use std::sync::Arc;

use crate::authority::{Authority, Budget, LeaseScope, Purpose};
use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, fields, message_codec, required};
use crate::kernel::event::Event;
use crate::kernel::state::KernelState;
use crate::kernel::state::checkpoint::RestoreError;
use crate::kernel::state::checkpoint::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::state::checkpoint::decode::CheckpointDecoder;
use crate::kernel::state::checkpoint::fields::{CheckpointCodec, checkpoint_struct};
use crate::kernel::work::{KeyedSpend, WorkEvent, WorkLease};
use crate::proto::{self, work_event};
use crate::rules::InvalidInput;
use crate::value::{Fence, LedgerTag, Tick};

pub(in crate::kernel) fn to_message(event: &WorkEvent, tag: LedgerTag) -> proto::WorkEvent {
    let event = match event {
        WorkEvent::Spent { lease, at, amount, purpose, key } => work_event::Event::Spent(proto::WorkSpent {
            lease_id: tag.lease_id(*lease),
            tick: at.0,
            amount: amount.to_message(),
            work_id: purpose.work_id.to_message(),
            tool: purpose.tool.to_message(),
            namespace: purpose.namespace.to_message(),
            idempotency: key.to_message(),
        }),
    };
    proto::WorkEvent { event: Some(event) }
}

pub(in crate::kernel) fn from_message(
    message: proto::WorkEvent,
    tag: LedgerTag,
) -> Result<Event, InvalidInput> {
    let event = match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        work_event::Event::Spent(spent) => {
            let lease = tag.fence_of(&spent.lease_id);
            let purpose = Purpose {
                work_id: parse_optional_name(&spent.work_id),
                tool: parse_optional_name(&spent.tool),
                namespace: parse_optional_name(&spent.namespace),
            };
            purpose.check()?;
            WorkEvent::Spent {
                lease: lease.ok_or_else(|| invalid("lease_id", "is not one of this ledger"))?,
                at: Tick(spent.tick),
                amount: MessageCodec::from_message(spent.amount)?,
                purpose,
                key: MessageCodec::from_message(spent.idempotency)?,
            }
        }
    };
    Ok(Event::Work(Box::new(event)))
}

pub(in crate::kernel) fn authority_to_message(authority: &Authority) -> proto::Authority {
    let names = authority.scope.names();
    let unlimited = names.is_none();
    let [work_ids, tools, namespaces] =
        names.unwrap_or_default().map(|set| set.into_iter().map(str::to_owned).collect());
    proto::Authority {
        parent: authority.parent.map_or(0, |fence| fence.0),
        scope: Some(proto::Scope { unlimited, work_ids, tools, namespaces }),
        budget: authority.budget.to_message(),
    }
}

pub(in crate::kernel) fn authority_from_message(
    message: proto::Authority,
) -> Result<Arc<Authority>, InvalidInput> {
    let proto::Scope { unlimited, work_ids, tools, namespaces } =
        message.scope.ok_or_else(|| invalid("scope", "is missing"))?;
    let sets = [&work_ids, &tools, &namespaces];
    // One scope has one form, so that nothing is signed in two ways.
    let is_sorted = sets.into_iter().all(|set| set.is_sorted_by(|one, other| one < other));
    if !is_sorted || (unlimited && sets.into_iter().any(|set| !set.is_empty())) {
        return Err(invalid("scope", "is not in its one form"));
    }
    let [work_ids, tools, namespaces] = sets.map(|set| set.iter().map(String::as_str));
    let scope = match unlimited {
        true => LeaseScope::Unlimited,
        false => LeaseScope::limited(work_ids, tools, namespaces)?,
    };
    let parent = (message.parent != 0).then_some(Fence(message.parent));
    Ok(Arc::new(Authority { parent, scope, budget: MessageCodec::from_message(message.budget)? }))
}

fields! {
    Budget as Budget { episodes: episodes, tool_calls: tool_calls, tokens: tokens, duration_ms: duration_ms }
}

message_codec! {
    Budget as Option<proto::Budget>: |budget| Some(budget.to_message()), |budget| required("budget", budget);
}

/// What is not named is an empty text, which no name is.
fn parse_optional_name(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
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
    pub(in crate::kernel) fn encode_work_leases(&mut self, state: &KernelState) {
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
    pub(in crate::kernel) fn decode_work_leases(&mut self) -> Result<(), RestoreError> {
        let mut fence = Fence(0);
        for _ in 0..self.reader.count(MIN_BYTES)? {
            fence = Fence(self.reader.delta(fence.0)?);
            let work = WorkLease::read(&mut self.reader)?;
            let is_active = self.state.find_lease(fence).is_some();
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
