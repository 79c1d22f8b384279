//! The parts of requests about work.

use std::sync::Arc;

use serde_json::{Map, Value};
use tenure_core::authority::{Budget, LeaseScope, Purpose};
use tenure_core::kernel::Holder;

use crate::http::fields::Fields;
use crate::http::response::HttpError;
use crate::leases::holder;

/// The longest work id, in bytes: with `work:` before it, it is as long as the longest resource of the plain API.
const MAX_WORK_ID_BYTES: usize = 123;

pub(super) fn work_id(fields: &mut Fields) -> Result<Arc<str>, HttpError> {
    let work_id = fields.text("work_id")?;
    if work_id.len() > MAX_WORK_ID_BYTES {
        let reason = format!("has {} bytes; at most {MAX_WORK_ID_BYTES} are allowed", work_id.len());
        return Err(HttpError::invalid("work_id", &reason));
    }
    Ok(work_id.into())
}

pub(super) fn actor(fields: &mut Fields) -> Result<Holder, HttpError> {
    holder("actor_id", &fields.text("actor_id")?)
}

/// What is allowed, if that is said.
pub(super) fn scope(fields: &mut Fields) -> Result<Option<LeaseScope>, HttpError> {
    let Some(names) = fields.optional_object("scope")? else { return Ok(None) };
    let mut names = Fields::of(names);
    let mut list = |name| Ok::<_, HttpError>(names.optional_list(name)?.unwrap_or_default());
    let (work_ids, tools, namespaces) = (list("workIds")?, list("tools")?, list("namespaces")?);
    names.reject_remaining()?;
    let texts = |set| <[String]>::iter(set).map(String::as_str);
    Ok(Some(LeaseScope::limited(texts(&work_ids), texts(&tools), texts(&namespaces))?))
}

/// Bounds, of which each that is not named is as large as can be.
pub(super) fn bounds(fields: &mut Fields) -> Result<Budget, HttpError> {
    match fields.optional_object("budget")? {
        Some(amounts) => all_of(Fields::of(amounts), Budget::MAX_AMOUNT),
        None => Ok(Budget::MAX),
    }
}

/// Amounts, of which each that is not named is nothing.
pub(super) fn budget(amounts: Map<String, Value>) -> Result<Budget, HttpError> {
    all_of(Fields::of(amounts), 0)
}

fn all_of(mut fields: Fields, default_amount: u64) -> Result<Budget, HttpError> {
    let budget = amounts(&mut fields, default_amount)?;
    fields.reject_remaining()?;
    Ok(budget)
}

/// The amounts that stand in a request itself.
pub(super) fn amount(fields: &mut Fields) -> Result<Budget, HttpError> {
    amounts(fields, 0)
}

fn amounts(fields: &mut Fields, usual: u64) -> Result<Budget, HttpError> {
    let mut amount = |name| Ok::<_, HttpError>(fields.optional_number(name)?.unwrap_or(usual));
    let budget = Budget {
        episodes: amount("episodes")?,
        tool_calls: amount("toolCalls")?,
        tokens: amount("tokens")?,
        duration_ms: amount("durationMs")?,
    };
    budget.check()?;
    Ok(budget)
}

pub(super) fn purpose(fields: &mut Fields) -> Result<Purpose, HttpError> {
    let Some(names) = fields.optional_object("for")? else { return Ok(Purpose::default()) };
    let mut names = Fields::of(names);
    let mut name = |name| Ok::<_, HttpError>(names.optional_text(name)?.map(Arc::from));
    let purpose = Purpose { work_id: name("workId")?, tool: name("tool")?, namespace: name("namespace")? };
    names.reject_remaining()?;
    purpose.check()?;
    Ok(purpose)
}

pub(crate) fn budget_view(budget: Budget) -> tenure_api::Budget {
    let Budget { episodes, tool_calls, tokens, duration_ms } = budget;
    tenure_api::Budget { episodes, tool_calls, tokens, duration_ms }
}
