//! Which of the processes above a hook is the agent.

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
