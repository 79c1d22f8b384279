//! What covers which way of changing files, for each agent. This is the one place that says it.
//!
//! A hook that gave a shell's command back with the guard before it would reach more. It does not, because what an agent checks
//! afterwards would be the new command: Codex forgets the rules that forbid one, Gemini CLI sees no `$(…)` in it.

use crate::agent::Agent;

/// A way in which an agent changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
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
pub enum Means {
    /// The agent asks before it begins.
    Hook,
    /// Its shell is Tenure's, which watches every call.
    Shim,
    /// The same for the agent as a whole, if it was started as [`guarded`] says.
    Guard,
    /// The server watches the tree, and writes down what no lease explains. It stops nothing.
    Audit,
}

/// What of Tenure an agent has in its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InPlace {
    pub hooks: bool,
    /// Whether its shell is Tenure's, where it lets anybody choose.
    pub shell: bool,
    /// Whether the system lets calls be watched. If not, there is neither shim nor guard.
    pub gate: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    pub way: Way,
    /// By what, together. Never empty; the audit is for where nothing else is.
    pub by: Vec<Means>,
    /// What else is to be known, for people.
    pub remark: &'static str,
}

impl Way {
    pub const ALL: [Way; 6] =
        [Way::EditTools, Way::Shell, Way::Background, Way::Patch, Way::McpTools, Way::Subagents];

    pub const fn as_str(self) -> &'static str {
        match self {
            Way::EditTools => "edit",
            Way::Shell => "shell",
            Way::Background => "background",
            Way::Patch => "patch",
            Way::McpTools => "mcp",
            Way::Subagents => "subagent",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Way::EditTools => "edit tools",
            Way::Shell => "shell commands",
            Way::Background => "background commands",
            Way::Patch => "a patch in a command",
            Way::McpTools => "MCP tools that write",
            Way::Subagents => "subagents",
        }
    }
}

impl Means {
    pub const fn as_str(self) -> &'static str {
        match self {
            Means::Hook => "hook",
            Means::Shim => "shim",
            Means::Guard => "guard",
            Means::Audit => "audit",
        }
    }
}

/// How each way is covered, with this in place.
pub fn coverage(agent: Agent, in_place: InPlace) -> Vec<Covered> {
    Way::ALL.into_iter().map(|way| with(in_place, way, by(agent, way), remark(agent, way))).collect()
}

/// The command under which everything that this agent does is watched.
pub const fn guarded(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "tenure guard -- claude",
        Agent::Codex => "tenure guard -- codex",
        Agent::Gemini => "tenure guard -- gemini",
        Agent::Cursor => "tenure guard -- cursor-agent",
        Agent::OpenCode => "tenure guard -- opencode",
    }
}

/// Whether this agent can be given a shell.
const fn has_shim(agent: Agent) -> bool {
    matches!(agent, Agent::Claude | Agent::OpenCode)
}

fn by(agent: Agent, way: Way) -> &'static [Means] {
    match way {
        Way::EditTools => &[Means::Hook],
        Way::Patch if matches!(agent, Agent::Codex) => &[Means::Hook],
        Way::Shell | Way::Background | Way::Patch if has_shim(agent) => &[Means::Shim],
        Way::Shell | Way::Background | Way::Patch => &[Means::Guard, Means::Audit],
        Way::McpTools => &[Means::Hook, Means::Guard, Means::Audit],
        Way::Subagents if has_shim(agent) => &[Means::Hook, Means::Shim],
        Way::Subagents => &[Means::Hook, Means::Guard, Means::Audit],
    }
}

fn remark(agent: Agent, way: Way) -> &'static str {
    match (way, agent) {
        (Way::EditTools, Agent::Codex) => "once you have trusted the hooks",
        (Way::EditTools, Agent::Cursor) => "from its documentation",
        (Way::EditTools, _) => "each asks first, and waits",
        (Way::Shell, Agent::Claude) => "unless another `CLAUDE_CODE_SHELL` is chosen",
        (Way::Shell, Agent::OpenCode) => "unless `shell` in opencode.json chooses another",
        (Way::Shell, Agent::Codex | Agent::Gemini) => {
            "no setting names its shell, and its rules would not see a rewritten command"
        }
        (Way::Shell, Agent::Cursor) => "its hooks cannot change a command",
        (Way::Background, _) => "for as long as they run",
        (Way::Patch, Agent::Codex) => "`apply_patch` is read by the hook, and applied by Codex itself",
        (Way::Patch, _) => "`patch` and `git apply` are commands as others are",
        (Way::McpTools, _) => "hook: those whose name says that they write, and that name the file",
        (Way::Subagents, _) => "hook: their edits; the rest as shell commands",
    }
}

/// The same where something is not in place: then only the guard is left, or nothing but the audit.
fn with(in_place: InPlace, way: Way, by: &[Means], remark: &'static str) -> Covered {
    let is_there = |means: &Means| match means {
        Means::Hook => in_place.hooks,
        Means::Shim => in_place.shell && in_place.gate,
        Means::Guard => in_place.gate,
        Means::Audit => true,
    };
    let mut left: Vec<Means> = by.iter().copied().filter(is_there).collect();
    if left.len() == by.len() {
        return Covered { way, by: left, remark };
    }
    let remark = if by.contains(&Means::Hook) && !in_place.hooks {
        "hooks are turned off in the settings"
    } else if !in_place.gate {
        "this system does not let calls be watched"
    } else {
        "another shell is chosen"
    };
    let rest = [Means::Guard, Means::Audit].into_iter().filter(is_there);
    left.extend(rest.filter(|means| !by.contains(means)));
    Covered { way, by: left, remark }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: InPlace = InPlace { hooks: true, shell: true, gate: true };

    fn row(agent: Agent, in_place: InPlace, way: Way) -> Vec<Means> {
        coverage(agent, in_place).into_iter().find(|covered| covered.way == way).unwrap().by
    }

    #[test]
    fn every_change_method_of_every_agent_has_a_mechanism_and_no_duplicates() {
        for agent in Agent::ALL {
            for bits in 0..8 {
                let [hooks, shell, gate] = [1, 2, 4].map(|bit| bits & bit != 0);
                let rows = coverage(agent, InPlace { hooks, shell, gate });
                assert_eq!(rows.iter().map(|row| row.way).collect::<Vec<_>>(), Way::ALL);
                for Covered { way, by, remark } in rows {
                    assert!(!by.is_empty() && by.is_sorted() && !remark.is_empty(), "{agent} {way:?} {by:?}");
                    assert!(by.windows(2).all(|pair| pair[0] != pair[1]), "{agent} {way:?} {by:?}");
                    assert!(hooks || !by.contains(&Means::Hook), "{agent} {way:?}");
                    assert!(shell && gate || !by.contains(&Means::Shim), "{agent} {way:?}");
                    assert!(gate || !by.contains(&Means::Guard), "{agent} {way:?}");
                    // What nothing stops is at least seen.
                    let is_seen = by.contains(&Means::Audit);
                    assert_eq!(by.contains(&Means::Guard), is_seen && gate, "{agent} {way:?}");
                    assert!(gate || is_seen || by == [Means::Hook], "{agent} {way:?}");
                }
            }
        }
    }

    #[test]
    fn only_agents_with_a_configurable_shell_have_a_shim() {
        for agent in Agent::ALL {
            let is_shim = row(agent, ALL, Way::Shell) == [Means::Shim];
            assert_eq!(is_shim, matches!(agent, Agent::Claude | Agent::OpenCode), "{agent}");
            assert_eq!(row(agent, ALL, Way::EditTools), [Means::Hook]);
        }
        assert_eq!(row(Agent::Codex, ALL, Way::Patch), [Means::Hook]);
        assert_eq!(row(Agent::Gemini, ALL, Way::Patch), [Means::Guard, Means::Audit]);
    }

    #[test]
    fn missing_components_cover_nothing() {
        let own_shell = InPlace { hooks: true, shell: false, gate: true };
        assert_eq!(row(Agent::Claude, own_shell, Way::Shell), [Means::Guard, Means::Audit]);
        assert_eq!(row(Agent::Claude, own_shell, Way::Subagents), [Means::Hook, Means::Guard, Means::Audit]);
        assert_eq!(row(Agent::Claude, own_shell, Way::EditTools), [Means::Hook]);
        let closed = InPlace { hooks: true, shell: false, gate: false };
        assert_eq!(row(Agent::Claude, closed, Way::Shell), [Means::Audit]);
        assert_eq!(row(Agent::Codex, closed, Way::Subagents), [Means::Hook, Means::Audit]);
        let off = InPlace { hooks: false, shell: true, gate: true };
        assert_eq!(row(Agent::Gemini, off, Way::EditTools), [Means::Guard, Means::Audit]);
        assert_eq!(row(Agent::Claude, off, Way::Shell), [Means::Shim]);
    }
}
