//! What happened to work, and what a lease was given, to what is stored and back.

use std::sync::Arc;

use crate::authority::{Authority, Budget, LeaseScope, Purpose};
use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, fields, message_codec, required};
use crate::kernel::event::Event;
use crate::kernel::work::WorkEvent;
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
