//! The guide says the same as the code.

use tenure_hooks::interception_coverage::{
    ChangeMethod, InstalledComponents, InterceptionCoverage, InterceptionMechanism, interception_coverage,
};
use tenure_host::coding_agent::CodingAgent;

const GUIDE: &str = include_str!("../../../../docs/guides/files.md");

/// In the order in which the guide names them.
const AGENTS: [(CodingAgent, &str); 5] = [
    (CodingAgent::Claude, "Claude Code"),
    (CodingAgent::OpenCode, "OpenCode"),
    (CodingAgent::Codex, "Codex"),
    (CodingAgent::Gemini, "Gemini CLI"),
    (CodingAgent::Cursor, "Cursor"),
];

fn cell(covered: &InterceptionCoverage) -> String {
    let names: Vec<_> = covered.mechanisms.iter().map(|means| means.as_str()).collect();
    names.join(", ").replace(", audit", ", else audit")
}

#[test]
fn the_guide_lists_the_interception_coverage_of_every_agent() {
    let heads = AGENTS.map(|(_, name)| name).join(" | ");
    assert!(GUIDE.contains(&format!("\n| | {heads} |\n")), "{heads}");
    let tables = AGENTS.map(|(agent, _)| {
        interception_coverage(agent, InstalledComponents { hooks: true, shell: true, interception: true })
    });
    for (at, way) in ChangeMethod::ALL.into_iter().enumerate() {
        let cells: Vec<_> = tables.iter().map(|coverages| cell(&coverages[at])).collect();
        let row = format!("\n| {} | {} |\n", way.title(), cells.join(" | "));
        assert!(GUIDE.contains(&row), "{row}");
    }
    for means in [
        InterceptionMechanism::Hook,
        InterceptionMechanism::Shim,
        InterceptionMechanism::Guard,
        InterceptionMechanism::Audit,
    ] {
        assert!(GUIDE.contains(&format!("\n- **{}**: ", means.as_str())), "{means:?}");
    }
}
