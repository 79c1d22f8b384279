//! From the process that asks up to the agent that it belongs to.

use std::io;

use super::choice::{Ancestor, choose, keeps_orphans, known};
use super::family::above;
use super::identity::Process;
use super::table::{Entry, Stat};
use crate::agent::Agent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    pub process: Process,
    /// What it calls itself, for people.
    pub name: String,
}

/// The agent above the process that asks, which is a hook or a shell: it lives as long as what it holds. [`choose`] says
/// which one that is.
///
/// An error if nobody is above it.
pub fn agent_above(asking: u32, kind: Option<Agent>) -> io::Result<AgentProcess> {
    let mut above = above(asking);
    let described: Vec<Ancestor> =
        above.iter().map(|(process, entry, line)| described(process.pid, entry, line)).collect();
    let chosen = choose(&described, kind).ok_or_else(|| {
        let message =
            "no process is above the one that asks, so nobody can be the owner; start it from the agent";
        io::Error::new(io::ErrorKind::NotFound, message)
    })?;
    let (process, _, line) = above.swap_remove(chosen);
    Ok(AgentProcess { process, name: line.name })
}

/// The nearest agent that is known: this process itself, or one above it.
pub fn known_agent_at(process: u32) -> Option<(Process, Agent)> {
    let own = Entry::of(process).and_then(|entry| {
        let line = entry.stat()?;
        Ok((Process::seen(process, &entry, &line)?, entry, line))
    });
    let line = own.into_iter().chain(above(process));
    line.into_iter().find_map(|(process, entry, line)| {
        known(&described(process.pid, &entry, &line)).map(|agent| (process, agent))
    })
}

/// Whether this process takes in whoever has lost its parent: then being below it says nothing of who started somebody.
pub fn takes_in_orphans(pid: u32) -> bool {
    let seen = Entry::of(pid).and_then(|entry| Ok(described(pid, &entry, &entry.stat()?)));
    pid == 1 || seen.is_ok_and(|seen| keeps_orphans(&seen))
}

fn described(pid: u32, entry: &Entry, stat: &Stat) -> Ancestor {
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
