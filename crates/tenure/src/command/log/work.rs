//! What an event of work says, and what a lease was given: for people, and for programs.

use serde_json::{Value, json};
use tenure_core::authority::{Authority, Budget};
use tenure_core::kernel::{LedgerTag, WorkEvent};

/// The lease, and what was used up.
pub(super) fn details_of(event: &WorkEvent, tag: LedgerTag) -> String {
    match event {
        WorkEvent::Spent { lease, amount, purpose, .. } => {
            let [episodes, tool_calls, tokens, duration_ms] = amount.amounts();
            let of =
                [(episodes, "episodes"), (tool_calls, "tool calls"), (tokens, "tokens"), (duration_ms, "ms")];
            let amounts = of.into_iter().filter(|(amount, _)| *amount > 0);
            let amounts: Vec<_> = amounts.map(|(amount, name)| format!("{amount} {name}")).collect();
            let names = [&purpose.work_id, &purpose.tool, &purpose.namespace].into_iter().flatten();
            let names: String = names.map(|name| format!("  {name}")).collect();
            format!("{}  {}{names}", tag.lease_id(*lease), amounts.join(", "))
        }
    }
}

/// Every field that the event has.
pub(super) fn fields_of(event: &WorkEvent, tag: LedgerTag) -> Value {
    match event {
        WorkEvent::Spent { lease, amount, purpose, key, .. } => {
            let mut spent = json!({
                "lease": { "id": tag.lease_id(*lease), "fence": lease.0 },
                "spent": amounts(*amount),
            });
            if !purpose.is_empty() {
                spent["for"] = json!({
                    "workId": purpose.work_id.as_deref(),
                    "tool": purpose.tool.as_deref(),
                    "namespace": purpose.namespace.as_deref(),
                });
            }
            if let Some(key) = key {
                spent["idempotency"] = super::fields::of_request_key(key);
            }
            spent
        }
    }
}

/// What a lease was given when it began.
pub fn authority(authority: &Authority, tag: LedgerTag) -> Value {
    let names = authority.scope.names();
    let scope = names.map(|[work_ids, tools, namespaces]| {
        json!({ "workIds": work_ids, "tools": tools, "namespaces": namespaces })
    });
    json!({
        "parent": authority.parent.map(|parent| tag.lease_id(parent)),
        "scope": scope,
        "budget": amounts(authority.budget),
    })
}

fn amounts(budget: Budget) -> Value {
    let Budget { episodes, tool_calls, tokens, duration_ms } = budget;
    json!({ "episodes": episodes, "toolCalls": tool_calls, "tokens": tokens, "durationMs": duration_ms })
}
