//! Amounts, scopes and keys on the command line.

use clap::Args;
use tenure_api::{Budget, BudgetLimits, WorkScope};
use tenure_client::IdempotencyKey;

use crate::duration::parse_milliseconds;
use crate::exit;
use crate::failure::Failure;

/// How much.
#[derive(Debug, Args)]
pub struct BudgetArguments {
    /// How many times an agent is run
    #[arg(long, value_name = "NUMBER")]
    episodes: Option<u64>,
    /// How many tools are called
    #[arg(long, value_name = "NUMBER")]
    tool_calls: Option<u64>,
    /// How many tokens are read and written
    #[arg(long, value_name = "NUMBER")]
    tokens: Option<u64>,
    /// For how long something runs
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds)]
    duration: Option<u64>,
}

impl BudgetArguments {
    /// As bounds: what is not named has none.
    pub fn bounds(&self) -> BudgetLimits {
        let BudgetArguments { episodes, tool_calls, tokens, duration } = *self;
        BudgetLimits { episodes, tool_calls, tokens, duration_ms: duration }
    }

    /// As amounts: what is not named is nothing.
    pub fn budget(&self) -> Budget {
        let BudgetLimits { episodes, tool_calls, tokens, duration_ms } = self.bounds();
        let amount = Option::unwrap_or_default;
        Budget {
            episodes: amount(episodes),
            tool_calls: amount(tool_calls),
            tokens: amount(tokens),
            duration_ms: amount(duration_ms),
        }
    }
}

/// What is allowed.
#[derive(Debug, Args)]
pub struct ScopeArguments {
    /// Allow work on this; can be repeated. With none of the three everything is allowed that can be
    #[arg(long = "work", value_name = "WORK")]
    work_ids: Vec<String>,
    /// Allow this tool; can be repeated
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    /// Allow this namespace and what is below it at `/`; can be repeated
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
}

impl ScopeArguments {
    /// What is named, if anything is.
    pub fn scope(self) -> Option<WorkScope> {
        let ScopeArguments { work_ids, tools, namespaces } = self;
        let is_named = !work_ids.is_empty() || !tools.is_empty() || !namespaces.is_empty();
        is_named.then_some(WorkScope { work_ids, tools, namespaces })
    }
}

/// What makes a request one and the same however often it is sent.
#[derive(Debug, Args)]
pub struct IdempotencyKeyArguments {
    /// Makes the request one and the same however often it is sent: 1 to 255 visible characters
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl IdempotencyKeyArguments {
    /// Reads it.
    pub fn read(&self) -> Result<Option<IdempotencyKey>, Failure> {
        let key = self.key.as_deref().map(IdempotencyKey::parse).transpose();
        key.map_err(|error| Failure::new(exit::USAGE, "--key cannot be used", &error))
    }
}
