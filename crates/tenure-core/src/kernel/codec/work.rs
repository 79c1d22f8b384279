//! What happened to work, and what a lease was given, to what is stored and back.

use std::sync::Arc;

use super::decode::{decode_key, invalid};
use super::encode::key_message;
use crate::authority::{Authority, Budget, LeaseScope, Purpose};
use crate::kernel::event::Event;
use crate::kernel::value::{Fence, LedgerTag, Tick};
use crate::kernel::work::WorkEvent;
use crate::rules::names::InvalidInput;
use crate::stored::{self, work_event};

pub(super) fn message_of(event: &WorkEvent, tag: LedgerTag) -> stored::WorkEvent {
    let event = match event {
        WorkEvent::Spent { lease, at, amount, purpose, key } => work_event::Event::Spent(stored::WorkSpent {
            lease_id: tag.lease_id(*lease),
            tick: at.0,
            amount: Some(budget_message(*amount)),
            work_id: text(&purpose.work_id),
            tool: text(&purpose.tool),
            namespace: text(&purpose.namespace),
            idempotency: key.map(key_message),
        }),
    };
    stored::WorkEvent { event: Some(event) }
}

pub(super) fn event_of(message: stored::WorkEvent, tag: LedgerTag) -> Result<Event, InvalidInput> {
    let event = match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        work_event::Event::Spent(spent) => {
            let lease = tag.fence_of(&spent.lease_id);
            let purpose = Purpose {
                work_id: named(&spent.work_id),
                tool: named(&spent.tool),
                namespace: named(&spent.namespace),
            };
            purpose.check()?;
            WorkEvent::Spent {
                lease: lease.ok_or_else(|| invalid("lease_id", "is not one of this ledger"))?,
                at: Tick(spent.tick),
                amount: budget_of(spent.amount)?,
                purpose,
                key: spent.idempotency.map(decode_key).transpose()?,
            }
        }
    };
    Ok(Event::Work(Box::new(event)))
}

pub(super) fn authority_message(authority: &Authority) -> stored::Authority {
    let names = authority.scope.names();
    let unlimited = names.is_none();
    let [work_ids, tools, namespaces] =
        names.unwrap_or_default().map(|set| set.into_iter().map(str::to_owned).collect());
    stored::Authority {
        parent: authority.parent.map_or(0, |fence| fence.0),
        scope: Some(stored::Scope { unlimited, work_ids, tools, namespaces }),
        budget: Some(budget_message(authority.budget)),
    }
}

pub(super) fn authority_of(message: stored::Authority) -> Result<Arc<Authority>, InvalidInput> {
    let stored::Scope { unlimited, work_ids, tools, namespaces } =
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
    Ok(Arc::new(Authority { parent, scope, budget: budget_of(message.budget)? }))
}

fn budget_message(budget: Budget) -> stored::Budget {
    let Budget { episodes, tool_calls, tokens, duration_ms } = budget;
    stored::Budget { episodes, tool_calls, tokens, duration_ms }
}

fn budget_of(message: Option<stored::Budget>) -> Result<Budget, InvalidInput> {
    let message = message.ok_or_else(|| invalid("budget", "is missing"))?;
    let stored::Budget { episodes, tool_calls, tokens, duration_ms } = message;
    Ok(Budget { episodes, tool_calls, tokens, duration_ms })
}

/// What is not named is an empty text, which no name is.
fn text(name: &Option<Arc<str>>) -> String {
    name.as_deref().unwrap_or_default().to_owned()
}

fn named(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}
