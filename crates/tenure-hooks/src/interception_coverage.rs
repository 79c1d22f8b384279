//! What covers which way of changing files, for each agent. This is the one place that says it.
//!
//! A hook that gave a shell's command back with the guard before it would reach more. It does not, because what an agent checks
//! afterwards would be the new command: Codex forgets the rules that forbid one, Gemini CLI sees no `$(…)` in it.

use tenure_host::coding_agent::CodingAgent;

/// A way in which an agent changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeMethod {
    EditTools,
    Shell,
    /// A command that goes on while the agent does something else.
    Background,
    /// A patch in a command, which some agents apply themselves.
    Patch,
    /// A tool of an MCP server.
    McpTools,
    Subagents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterceptionMechanism {
    /// The agent asks before it begins.
    Hook,
    /// Its shell is Tenure's, which watches every call.
    Shim,
    /// The same for the agent as a whole, if it was started as [`guard_command`] says.
    Guard,
    /// The server watches the tree, and writes down what no lease explains. It stops nothing.
    Audit,
}

/// What of Tenure an agent has in its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstalledComponents {
    pub hooks: bool,
    /// Whether its shell is Tenure's, where it lets anybody choose.
    pub shell: bool,
    /// Whether the system lets calls be watched. If not, there is neither shim nor guard.
    pub interception: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterceptionCoverage {
    pub method: ChangeMethod,
    /// By what, together. Never empty; the audit is for where nothing else is.
    pub mechanisms: Vec<InterceptionMechanism>,
    /// What else is to be known, for people.
    pub remark: &'static str,
}

impl ChangeMethod {
    pub const ALL: [ChangeMethod; 6] = [
        ChangeMethod::EditTools,
        ChangeMethod::Shell,
        ChangeMethod::Background,
        ChangeMethod::Patch,
        ChangeMethod::McpTools,
        ChangeMethod::Subagents,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ChangeMethod::EditTools => "edit",
            ChangeMethod::Shell => "shell",
            ChangeMethod::Background => "background",
            ChangeMethod::Patch => "patch",
            ChangeMethod::McpTools => "mcp",
            ChangeMethod::Subagents => "subagent",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            ChangeMethod::EditTools => "edit tools",
            ChangeMethod::Shell => "shell commands",
            ChangeMethod::Background => "background commands",
            ChangeMethod::Patch => "a patch in a command",
            ChangeMethod::McpTools => "MCP tools that write",
            ChangeMethod::Subagents => "subagents",
        }
    }
}

impl InterceptionMechanism {
    pub const fn as_str(self) -> &'static str {
        match self {
            InterceptionMechanism::Hook => "hook",
            InterceptionMechanism::Shim => "shim",
            InterceptionMechanism::Guard => "guard",
            InterceptionMechanism::Audit => "audit",
        }
    }
}

/// How each way is covered, with this in place.
pub fn interception_coverage(agent: CodingAgent, in_place: InstalledComponents) -> Vec<InterceptionCoverage> {
    ChangeMethod::ALL
        .into_iter()
        .map(|way| effective_coverage(in_place, way, mechanisms(agent, way), remark(agent, way)))
        .collect()
}

/// The command under which everything that this agent does is watched.
pub const fn guard_command(agent: CodingAgent) -> &'static str {
    match agent {
        CodingAgent::Claude => "tenure guard -- claude",
        CodingAgent::Codex => "tenure guard -- codex",
        CodingAgent::Gemini => "tenure guard -- gemini",
        CodingAgent::Cursor => "tenure guard -- cursor-agent",
        CodingAgent::OpenCode => "tenure guard -- opencode",
    }
}

/// Whether this agent can be given a shell.
const fn has_shim(agent: CodingAgent) -> bool {
    matches!(agent, CodingAgent::Claude | CodingAgent::OpenCode)
}

fn mechanisms(agent: CodingAgent, way: ChangeMethod) -> &'static [InterceptionMechanism] {
    match way {
        ChangeMethod::EditTools => &[InterceptionMechanism::Hook],
        ChangeMethod::Patch if matches!(agent, CodingAgent::Codex) => &[InterceptionMechanism::Hook],
        ChangeMethod::Shell | ChangeMethod::Background | ChangeMethod::Patch if has_shim(agent) => {
            &[InterceptionMechanism::Shim]
        }
        ChangeMethod::Shell | ChangeMethod::Background | ChangeMethod::Patch => {
            &[InterceptionMechanism::Guard, InterceptionMechanism::Audit]
        }
        ChangeMethod::McpTools => {
            &[InterceptionMechanism::Hook, InterceptionMechanism::Guard, InterceptionMechanism::Audit]
        }
        ChangeMethod::Subagents if has_shim(agent) => {
            &[InterceptionMechanism::Hook, InterceptionMechanism::Shim]
        }
        ChangeMethod::Subagents => {
            &[InterceptionMechanism::Hook, InterceptionMechanism::Guard, InterceptionMechanism::Audit]
        }
    }
}

fn remark(agent: CodingAgent, way: ChangeMethod) -> &'static str {
    match (way, agent) {
        (ChangeMethod::EditTools, CodingAgent::Codex) => "once you have trusted the hooks",
        (ChangeMethod::EditTools, CodingAgent::Cursor) => "from its documentation",
        (ChangeMethod::EditTools, _) => "each asks first, and waits",
        (ChangeMethod::Shell, CodingAgent::Claude) => "unless another `CLAUDE_CODE_SHELL` is chosen",
        (ChangeMethod::Shell, CodingAgent::OpenCode) => "unless `shell` in opencode.json chooses another",
        (ChangeMethod::Shell, CodingAgent::Codex | CodingAgent::Gemini) => {
            "no setting names its shell, and its rules would not see a rewritten command"
        }
        (ChangeMethod::Shell, CodingAgent::Cursor) => "its hooks cannot change a command",
        (ChangeMethod::Background, _) => "for as long as they run",
        (ChangeMethod::Patch, CodingAgent::Codex) => {
            "`apply_patch` is read by the hook, and applied by Codex itself"
        }
        (ChangeMethod::Patch, _) => "`patch` and `git apply` are commands as others are",
        (ChangeMethod::McpTools, _) => "hook: those whose name says that they write, and that name the file",
        (ChangeMethod::Subagents, _) => "hook: their edits; the rest as shell commands",
    }
}

/// The same where something is not in place: then only the guard is left, or nothing but the audit.
fn effective_coverage(
    in_place: InstalledComponents,
    way: ChangeMethod,
    by: &[InterceptionMechanism],
    remark: &'static str,
) -> InterceptionCoverage {
    let is_there = |means: &InterceptionMechanism| match means {
        InterceptionMechanism::Hook => in_place.hooks,
        InterceptionMechanism::Shim => in_place.shell && in_place.interception,
        InterceptionMechanism::Guard => in_place.interception,
        InterceptionMechanism::Audit => true,
    };
    let mut remaining: Vec<InterceptionMechanism> = by.iter().copied().filter(is_there).collect();
    if remaining.len() == by.len() {
        return InterceptionCoverage { method: way, mechanisms: remaining, remark };
    }
    let remark = if by.contains(&InterceptionMechanism::Hook) && !in_place.hooks {
        "hooks are turned off in the settings"
    } else if !in_place.interception {
        "this system does not let calls be watched"
    } else {
        "another shell is chosen"
    };
    let rest = [InterceptionMechanism::Guard, InterceptionMechanism::Audit].into_iter().filter(is_there);
    remaining.extend(rest.filter(|means| !by.contains(means)));
    InterceptionCoverage { method: way, mechanisms: remaining, remark }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: InstalledComponents = InstalledComponents { hooks: true, shell: true, interception: true };

    fn row(
        agent: CodingAgent,
        in_place: InstalledComponents,
        way: ChangeMethod,
    ) -> Vec<InterceptionMechanism> {
        interception_coverage(agent, in_place)
            .into_iter()
            .find(|covered| covered.method == way)
            .unwrap()
            .mechanisms
    }

    #[test]
    fn every_change_method_of_every_agent_has_a_mechanism_and_no_duplicates() {
        for agent in CodingAgent::ALL {
            for bits in 0..8 {
                let [hooks, shell, gate] = [1, 2, 4].map(|bit| bits & bit != 0);
                let coverages =
                    interception_coverage(agent, InstalledComponents { hooks, shell, interception: gate });
                assert_eq!(coverages.iter().map(|row| row.method).collect::<Vec<_>>(), ChangeMethod::ALL);
                for InterceptionCoverage { method: way, mechanisms: by, remark } in coverages {
                    assert!(!by.is_empty() && by.is_sorted() && !remark.is_empty(), "{agent} {way:?} {by:?}");
                    assert!(by.windows(2).all(|pair| pair[0] != pair[1]), "{agent} {way:?} {by:?}");
                    assert!(hooks || !by.contains(&InterceptionMechanism::Hook), "{agent} {way:?}");
                    assert!(shell && gate || !by.contains(&InterceptionMechanism::Shim), "{agent} {way:?}");
                    assert!(gate || !by.contains(&InterceptionMechanism::Guard), "{agent} {way:?}");
                    // What nothing stops is at least seen.
                    let is_seen = by.contains(&InterceptionMechanism::Audit);
                    assert_eq!(
                        by.contains(&InterceptionMechanism::Guard),
                        is_seen && gate,
                        "{agent} {way:?}"
                    );
                    assert!(gate || is_seen || by == [InterceptionMechanism::Hook], "{agent} {way:?}");
                }
            }
        }
    }

    #[test]
    fn only_agents_with_a_configurable_shell_have_a_shim() {
        for agent in CodingAgent::ALL {
            let is_shim = row(agent, ALL, ChangeMethod::Shell) == [InterceptionMechanism::Shim];
            assert_eq!(is_shim, matches!(agent, CodingAgent::Claude | CodingAgent::OpenCode), "{agent}");
            assert_eq!(row(agent, ALL, ChangeMethod::EditTools), [InterceptionMechanism::Hook]);
        }
        assert_eq!(row(CodingAgent::Codex, ALL, ChangeMethod::Patch), [InterceptionMechanism::Hook]);
        assert_eq!(
            row(CodingAgent::Gemini, ALL, ChangeMethod::Patch),
            [InterceptionMechanism::Guard, InterceptionMechanism::Audit]
        );
    }

    #[test]
    fn missing_components_cover_nothing() {
        let own_shell = InstalledComponents { hooks: true, shell: false, interception: true };
        assert_eq!(
            row(CodingAgent::Claude, own_shell, ChangeMethod::Shell),
            [InterceptionMechanism::Guard, InterceptionMechanism::Audit]
        );
        assert_eq!(
            row(CodingAgent::Claude, own_shell, ChangeMethod::Subagents),
            [InterceptionMechanism::Hook, InterceptionMechanism::Guard, InterceptionMechanism::Audit]
        );
        assert_eq!(
            row(CodingAgent::Claude, own_shell, ChangeMethod::EditTools),
            [InterceptionMechanism::Hook]
        );
        let closed = InstalledComponents { hooks: true, shell: false, interception: false };
        assert_eq!(row(CodingAgent::Claude, closed, ChangeMethod::Shell), [InterceptionMechanism::Audit]);
        assert_eq!(
            row(CodingAgent::Codex, closed, ChangeMethod::Subagents),
            [InterceptionMechanism::Hook, InterceptionMechanism::Audit]
        );
        let off = InstalledComponents { hooks: false, shell: true, interception: true };
        assert_eq!(
            row(CodingAgent::Gemini, off, ChangeMethod::EditTools),
            [InterceptionMechanism::Guard, InterceptionMechanism::Audit]
        );
        assert_eq!(row(CodingAgent::Claude, off, ChangeMethod::Shell), [InterceptionMechanism::Shim]);
    }
}
