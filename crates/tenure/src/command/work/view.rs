//! Leases on work as people read them.

use std::path::Path;

use tenure_api::{Budget, WorkGrant, WorkResponse, WorkView};
use tenure_core::authority::Budget as CoreBudget;

use crate::command::lease::{request, view};
use crate::failure::Failure;
use crate::output::{Format, Table};

/// Everything about one lease and what it allows.
pub fn fields(shown: &WorkResponse) -> Table {
    let mut table = view::fields(&shown.lease);
    add(&mut table, &shown.work);
    table
}

/// Prints what was granted, with its token, unless that goes to a file.
pub fn print_granted(
    mut granted: WorkGrant,
    token_file: Option<&Path>,
    format: Format,
) -> Result<(), Failure> {
    if let Some(path) = token_file {
        request::write(path, &granted.token)?;
        granted.token.clear();
    }
    format.print(&granted, self::granted)
}

/// What was granted. Its token stands in it, unless it is kept elsewhere.
fn granted(granted: &WorkGrant) -> Table {
    let mut table = Table::default();
    table.field("lease", &granted.lease.id);
    table.field("resource", &granted.lease.resource);
    table.field("holder", &granted.lease.holder);
    table.field("fence", granted.lease.fence);
    table.field("expires", &granted.lease.expires_at);
    add(&mut table, &granted.work);
    if !granted.token.is_empty() {
        table.field("token", &granted.token);
    }
    table
}

/// What is not named is not allowed.
fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn add(table: &mut Table, work: &WorkView) {
    match &work.scope {
        None => table.field("allows", "everything"),
        Some(scope) => {
            table.field("allows work", list(&scope.work_ids));
            table.field("allows tools", list(&scope.tools));
            table.field("allows in", list(&scope.namespaces));
        }
    }
    table.field("budget", format_amounts(&work.budget));
    table.field("spent", format_amounts(&work.spent));
    table.field("given away", format_amounts(&work.given));
    table.field("left", format_amounts(&work.remaining));
    if let Some(parent) = &work.parent {
        table.field("derived from", parent);
    }
    for child in &work.children {
        table.field("gave to", child);
    }
}

pub fn format_amounts(budget: &Budget) -> String {
    let named = [
        (budget.episodes, "episodes"),
        (budget.tool_calls, "tool calls"),
        (budget.tokens, "tokens"),
        (budget.duration_ms, "ms"),
    ];
    let word = |(amount, name): (u64, &str)| match amount {
        // Nobody ever comes near it.
        amount if amount > CoreBudget::MAX_AMOUNT / 2 => format!("any {name}"),
        amount => format!("{amount} {name}"),
    };
    named.map(word).join(", ")
}
