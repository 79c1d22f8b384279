//! From the process that asks up to the agent that it belongs to.

use std::io;

use tenure_core::kernel::ProcessId;

use super::agent_detection::{Ancestor, choose_agent, detect_agent, is_init_process};
use super::identity::from_entry;
use super::proc_table::{ProcEntry, ProcessStat};
use super::process_tree::ancestors_with_stat;
use crate::coding_agent::CodingAgent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    pub process: ProcessId,
    /// What it calls itself, for people.
    pub name: String,
}

/// The agent above the process that asks, which is a hook or a shell: it lives as long as what it holds. [`choose_agent`] says
/// which one that is.
///
/// An error if nobody is above it.
pub fn ancestor_agent(asking: u32, kind: Option<CodingAgent>) -> io::Result<AgentProcess> {
    let mut above = ancestors_with_stat(asking);
    let described: Vec<Ancestor> =
        above.iter().map(|(process, entry, line)| ancestor(process.pid, entry, line)).collect();
    let chosen = choose_agent(&described, kind).ok_or_else(|| {
        let message =
            "no process is above the one that asks, so nobody can be the owner; start it from the agent";
        io::Error::new(io::ErrorKind::NotFound, message)
    })?;
    let (process, _, line) = above.swap_remove(chosen);
    Ok(AgentProcess { process, name: line.name })
}

/// The nearest agent that is known: this process itself, or one above it.
pub fn nearest_known_agent(process: u32) -> Option<(ProcessId, CodingAgent)> {
    let own = ProcEntry::of(process).and_then(|entry| {
        let line = entry.stat()?;
        Ok((from_entry(process, &entry, &line)?, entry, line))
    });
    let line = own.into_iter().chain(ancestors_with_stat(process));
    line.into_iter().find_map(|(process, entry, line)| {
        detect_agent(&ancestor(process.pid, &entry, &line)).map(|agent| (process, agent))
    })
}

/// Whether this process takes in whoever has lost its parent: then being below it says nothing of who started somebody.
pub fn adopts_reparented_children(pid: u32) -> bool {
    let seen = ProcEntry::of(pid).and_then(|entry| Ok(ancestor(pid, &entry, &entry.stat()?)));
    pid == 1 || seen.is_ok_and(|seen| is_init_process(&seen))
}

fn ancestor(pid: u32, entry: &ProcEntry, stat: &ProcessStat) -> Ancestor {
    Ancestor {
        pid,
        name: stat.name.clone(),
        // Only its own user may see it. Without it, the rest has to do.
        program: entry.link("exe").ok().map(text),
        arguments: entry.read("cmdline").map(arguments).unwrap_or_default(),
    }
}

/// Each argument ends with a zero byte.
fn arguments(bytes: Vec<u8>) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
