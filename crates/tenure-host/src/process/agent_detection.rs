//! Which of the processes above a hook is the agent.

use std::io;

use tenure_core::kernel::ProcessId;

use super::identity::from_entry;
use super::proc_table::{ProcEntry, ProcessStat};
use super::process_tree::ancestors_with_stat;
use crate::coding_agent::CodingAgent;

/// One of the processes above the one that asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ancestor {
    pub pid: u32,
    /// What it calls itself: `comm`, at most fifteen bytes.
    pub name: String,
    /// The program that it runs, if that may be seen.
    pub program: Option<String>,
    pub arguments: Vec<String>,
}

/// Programs that run what a file says: the file is what counts.
const INTERPRETERS: [&str; 8] = ["node", "nodejs", "bun", "deno", "python", "python3", "electron", "tsx"];

/// Options of those that have their value beside them.
const OPTIONS_WITH_VALUE: [&str; 8] =
    ["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "-W", "--env-file"];

const SHELLS: [&str; 16] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "ash",
    "busybox",
    "csh",
    "tcsh",
    "nu",
    "pwsh",
    "xonsh",
    "rbash",
    "tenure-bash",
];

/// Programs that only start another one and wait for it, or are started for one step and are gone after it.
const LAUNCHERS: [&str; 31] = [
    "tenure", "env", "timeout", "sudo", "su", "doas", "runuser", "setpriv", "nice", "ionice", "chrt",
    "taskset", "nohup", "setsid", "stdbuf", "time", "strace", "ltrace", "unshare", "nsenter", "chroot",
    "flock", "script", "xargs", "watch", "bwrap", "firejail", "git", "husky", "lefthook", "make",
];

/// They take in whoever has lost its parent, so being below them says nothing.
const INIT_PROGRAMS: [&str; 6] = ["systemd", "init", "tini", "dumb-init", "docker-init", "catatonit"];

/// The place of the agent among those above the one that asks, nearest first.
///
/// The nearest that is a known agent of this kind (of any, if it is not known); nearest, because a launcher above it can be
/// killed while the agent lives on. Else the nearest that is no shell and does not merely pass on. Else the outermost that is
/// not the first process of the system, which never ends.
pub fn choose_agent(above: &[Ancestor], kind: Option<CodingAgent>) -> Option<usize> {
    let is_known = |ancestor: &Ancestor| match kind {
        Some(kind) => is_agent(ancestor, kind),
        None => detect_agent(ancestor).is_some(),
    };
    let is_first = is_init_process;
    let stays = |ancestor: &Ancestor| !is_called(ancestor, &SHELLS) && !is_called(ancestor, &LAUNCHERS);
    let known = above.iter().position(is_known);
    let standing = || above.iter().position(|ancestor| stays(ancestor) && !is_first(ancestor));
    let outermost = || above.iter().rposition(|ancestor| !is_first(ancestor));
    known.or_else(standing).or_else(outermost).or(above.len().checked_sub(1))
}

/// Whether being below it says nothing.
pub(super) fn is_init_process(ancestor: &Ancestor) -> bool {
    ancestor.pid == 1 || is_called(ancestor, &INIT_PROGRAMS)
}

/// Which agent that is known this is, if it is one. The editor counts as none: below it are the terminals of people too.
pub fn detect_agent(ancestor: &Ancestor) -> Option<CodingAgent> {
    CodingAgent::ALL.into_iter().find(|kind| is_agent(ancestor, *kind)).filter(|_| !is_editor(ancestor))
}

/// Whether this is an agent of this kind: by its name, its program, or the file that it interprets.
fn is_agent(ancestor: &Ancestor, kind: CodingAgent) -> bool {
    let (names, packages): (&[&str], &[&str]) = match kind {
        CodingAgent::Claude => (&["claude"], &["claude-code"]),
        CodingAgent::Codex => (&["codex"], &[]),
        CodingAgent::Gemini => (&["gemini"], &["gemini-cli"]),
        CodingAgent::Cursor => (&["cursor-agent", "cursor", "Cursor"], &["cursor-agent"]),
        CodingAgent::OpenCode => (&["opencode"], &["opencode-ai"]),
    };
    let script = script(ancestor);
    let is_package = |path: &str| path.split('/').any(|part| packages.contains(&part));
    is_called(ancestor, names)
        || script.is_some_and(|script| names.contains(&base(script)) || is_package(script))
        || ancestor.program.as_deref().is_some_and(|program| !is_shell(program) && is_package(program))
}

fn is_editor(ancestor: &Ancestor) -> bool {
    is_called(ancestor, &["cursor", "Cursor"]) && !is_called(ancestor, &["cursor-agent"])
}

/// Whether it is called so, by any of the names that it has.
fn is_called(ancestor: &Ancestor, names: &[&str]) -> bool {
    let program = ancestor.program.as_deref();
    // A shell that was started as the login shell is called `-bash`.
    let first = ancestor.arguments.first().map(|first| first.strip_prefix('-').unwrap_or(first));
    let own = [Some(&*ancestor.name), program.map(base), first.map(base)];
    own.into_iter().flatten().any(|own| names.contains(&own))
}

fn is_shell(program: &str) -> bool {
    SHELLS.contains(&base(program))
}

/// The file that an interpreter was given.
fn script(ancestor: &Ancestor) -> Option<&str> {
    let (first, rest) = ancestor.arguments.split_first()?;
    let runs = |program: &str| INTERPRETERS.contains(&base(program));
    if !runs(first) && !ancestor.program.as_deref().is_some_and(runs) {
        return None;
    }
    let mut rest = rest.iter().map(|argument| &**argument);
    while let Some(argument) = rest.next() {
        match argument {
            // What follows is code, and no file.
            "-e" | "-p" | "-c" | "-m" | "--eval" | "--print" => return None,
            "run" => {}
            option if OPTIONS_WITH_VALUE.contains(&option) => drop(rest.next()),
            option if option.starts_with('-') => {}
            script => return Some(script),
        }
    }
    None
}

/// The last part of a path, without what says how it is to be run.
fn base(path: &str) -> &str {
    // The program of one that was replaced meanwhile, as an update does.
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    let endings = [".exe", ".js", ".mjs", ".cjs"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

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
