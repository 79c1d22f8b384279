//! The guide says the same as the code.

use tenure_gate::agent::Agent;
use tenure_gate::coverage::{Covered, InPlace, Means, Way, coverage};

const GUIDE: &str = include_str!("../../../../docs/guides/files.md");

/// In the order in which the guide names them.
const AGENTS: [(Agent, &str); 5] = [
    (Agent::Claude, "Claude Code"),
    (Agent::OpenCode, "OpenCode"),
    (Agent::Codex, "Codex"),
    (Agent::Gemini, "Gemini CLI"),
    (Agent::Cursor, "Cursor"),
];

fn cell(covered: &Covered) -> String {
    let names: Vec<_> = covered.by.iter().map(|means| means.as_str()).collect();
    names.join(", ").replace(", audit", ", else audit")
}

#[test]
fn the_guide_lists_the_interception_coverage_of_every_agent() {
    let heads = AGENTS.map(|(_, name)| name).join(" | ");
    assert!(GUIDE.contains(&format!("\n| | {heads} |\n")), "{heads}");
    let tables = AGENTS.map(|(agent, _)| coverage(agent, InPlace { hooks: true, shell: true, gate: true }));
    for (at, way) in Way::ALL.into_iter().enumerate() {
        let cells: Vec<_> = tables.iter().map(|rows| cell(&rows[at])).collect();
        let row = format!("\n| {} | {} |\n", way.title(), cells.join(" | "));
        assert!(GUIDE.contains(&row), "{row}");
    }
    for means in [Means::Hook, Means::Shim, Means::Guard, Means::Audit] {
        assert!(GUIDE.contains(&format!("\n- **{}**: ", means.as_str())), "{means:?}");
    }
}
