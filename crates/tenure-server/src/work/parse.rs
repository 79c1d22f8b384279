//! The parts of requests about work.

use std::sync::Arc;

use tenure_api::{BudgetLimits, SpendPurpose, WorkScope, WorkSpendRequest};
use tenure_core::authority::{Budget, LeaseScope, Purpose};

use crate::http::response::HttpError;

/// The longest work id, in bytes: with `work:` before it, it is as long as the longest resource of the plain API.
const MAX_WORK_ID_BYTES: usize = 123;

pub(super) fn work_id(id: &str) -> Result<Arc<str>, HttpError> {
    if id.len() > MAX_WORK_ID_BYTES {
        let reason = format!("has {} bytes; at most {MAX_WORK_ID_BYTES} are allowed", id.len());
        return Err(HttpError::invalid("work_id", &reason));
    }
    Ok(id.into())
}

pub(super) fn scope(scope: &WorkScope) -> Result<LeaseScope, HttpError> {
    let texts = |names| <[String]>::iter(names).map(String::as_str);
    Ok(LeaseScope::limited(texts(&scope.work_ids), texts(&scope.tools), texts(&scope.namespaces))?)
}

/// Limits of a budget: an omitted one is the largest possible.
pub(super) fn budget_limits(limits: &BudgetLimits) -> Result<Budget, HttpError> {
    let limit = |limit: Option<u64>| limit.unwrap_or(Budget::MAX_AMOUNT);
    checked(Budget {
        episodes: limit(limits.episodes),
        tool_calls: limit(limits.tool_calls),
        tokens: limit(limits.tokens),
        duration_ms: limit(limits.duration_ms),
    })
}

pub(super) fn budget(amounts: &tenure_api::Budget) -> Result<Budget, HttpError> {
    let tenure_api::Budget { episodes, tool_calls, tokens, duration_ms } = *amounts;
    checked(Budget { episodes, tool_calls, tokens, duration_ms })
}

pub(super) fn spent_budget(request: &WorkSpendRequest) -> Result<Budget, HttpError> {
    let WorkSpendRequest { episodes, tool_calls, tokens, duration_ms, .. } = *request;
    checked(Budget { episodes, tool_calls, tokens, duration_ms })
}

fn checked(budget: Budget) -> Result<Budget, HttpError> {
    budget.check()?;
    Ok(budget)
}

pub(super) fn purpose(request: Option<SpendPurpose>) -> Result<Purpose, HttpError> {
    let SpendPurpose { work_id, tool, namespace } = request.unwrap_or_default();
    let name = |name: Option<String>| name.map(Arc::from);
    let purpose = Purpose { work_id: name(work_id), tool: name(tool), namespace: name(namespace) };
    purpose.check()?;
    Ok(purpose)
}

pub(crate) fn budget_view(budget: Budget) -> tenure_api::Budget {
    let Budget { episodes, tool_calls, tokens, duration_ms } = budget;
    tenure_api::Budget { episodes, tool_calls, tokens, duration_ms }
}
