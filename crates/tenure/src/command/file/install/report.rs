//! What is said about an installation: what was changed, what is left to do, and what is covered by what.

use std::io;

use serde_json::{Value, json};
use tenure_hooks::install::InstallPlan;
use tenure_hooks::interception_coverage::{InterceptionCoverage, InterceptionMechanism, guard_command};
use tenure_host::coding_agent::CodingAgent;

use crate::output::{Table, write_json, write_table, write_text};
use crate::terminal_message::wrap_paragraph;

/// Writes for people what was done, or would be, and what there is to know.
pub fn write(plans: &[InstallPlan], dry_run: bool, nothing: &str) -> io::Result<()> {
    let verb = if dry_run { "would " } else { "" };
    let changes = plans.iter().flat_map(|plan| &plan.changes).map(|change| format!("{verb}{change}\n"));
    let mut text: String = changes.collect();
    if text.is_empty() {
        text = format!("Nothing to do: {nothing}.\n");
    }
    text.extend(
        plans.iter().flat_map(|plan| &plan.notes).map(|remark| wrap_paragraph("note: ", remark, "  ")),
    );
    write_text(&text)
}

/// Writes for people what is covered by what.
pub fn write_coverage(agent: CodingAgent, plans: &[InstallPlan]) -> io::Result<()> {
    let entries: Vec<&InterceptionCoverage> = plans.iter().flat_map(|plan| &plan.coverage).collect();
    write_text("\n")?;
    write_table(&table(&entries))?;
    write_text(&legend(agent, &entries))
}

/// Writes all of it for programs.
pub fn write_plans_json(plans: &[InstallPlan], dry_run: bool) -> io::Result<()> {
    let changes: Vec<_> = plans.iter().flat_map(|plan| &plan.changes).map(ToString::to_string).collect();
    let notes: Vec<_> = plans.iter().flat_map(|plan| &plan.notes).collect();
    let coverage: Vec<Value> = plans
        .iter()
        .flat_map(|plan| &plan.coverage)
        .map(|row| json!({"way": row.method.as_str(), "by": names(row), "remark": row.remark}))
        .collect();
    write_json(&json!({"dryRun": dry_run, "changes": changes, "notes": notes, "coverage": coverage}))
}

fn table(rows: &[&InterceptionCoverage]) -> Table {
    let mut table = Table::with_header(&["WHAT CHANGES FILES", "COVERED BY", "REMARK"]);
    for row in rows {
        table.row([
            row.method.title().to_owned(),
            names(row).join(", ").replace(", audit", ", else audit"),
            row.remark.to_owned(),
        ]);
    }
    table
}

fn names(row: &InterceptionCoverage) -> Vec<&'static str> {
    row.mechanisms.iter().map(|means| means.as_str()).collect()
}

/// What the words in the table mean, as far as they stand there.
fn legend(agent: CodingAgent, rows: &[&InterceptionCoverage]) -> String {
    let mut lines = vec![
        (InterceptionMechanism::Hook, "the agent asks before it begins, and waits".to_owned()),
        (
            InterceptionMechanism::Shim,
            "its shell is `tenure-bash`, which asks at every change of a file".to_owned(),
        ),
        (
            InterceptionMechanism::Guard,
            format!("all that it does asks, if you start it with `{}`", guard_command(agent)),
        ),
        (
            InterceptionMechanism::Audit,
            "nothing is stopped; the server writes down what no lease explains".to_owned(),
        ),
    ];
    lines.retain(|(means, _)| rows.iter().any(|row| row.mechanisms.contains(means)));
    lines.iter().map(|(means, text)| format!("{}: {text}\n", means.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use tenure_hooks::interception_coverage::{InstalledComponents, interception_coverage};

    use super::*;

    #[test]
    fn coverage_table_has_a_legend_for_its_words() {
        let rows = interception_coverage(
            CodingAgent::Codex,
            InstalledComponents { hooks: true, shell: false, interception: true },
        );
        let rows: Vec<_> = rows.iter().collect();
        let text = table(&rows).to_string();
        assert!(text.starts_with("WHAT CHANGES FILES    COVERED BY"), "{text}");
        assert!(text.contains("\nedit tools            hook "), "{text}");
        assert!(text.contains("\nshell commands        guard, else audit "), "{text}");
        let legend = legend(CodingAgent::Codex, &rows);
        assert!(legend.contains("`tenure guard -- codex`") && !legend.contains("shim:"), "{legend}");
    }
}
