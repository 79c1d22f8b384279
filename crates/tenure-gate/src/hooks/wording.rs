//! What a model is told. A denial teaches: what happened, what it means, what to do, and what not to do.
//!
//! Each text is one paragraph of plain sentences, at most about 900 characters, and always the same for the same input.
//! What others wrote (paths, tasks) is made one line, shortened and put in quotes, so that it cannot pass for a sentence.

use std::time::Duration;

use super::unheard::Unheard;

/// Who has a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Which agent, for people: `claude`.
    pub agent: String,
    /// What it is at.
    pub task: Option<String>,
    /// Its session.
    pub session: String,
    /// Its process, where it is one that is known.
    pub process: Option<u32>,
    /// Whether that process is stopped. It is alive either way: the dead hold nothing.
    pub suspended: bool,
    /// How long it has held the file.
    pub held_for: Duration,
    /// How long ago something was last heard of it, if that is known.
    pub last_heard: Option<Duration>,
}

/// A file that is held, while the one retry is still to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The file, as git names it.
    pub file: String,
    /// Who has it.
    pub holder: Holder,
    /// When the one retry is made.
    pub retry_in: Duration,
}

/// A file that was still held at the one retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The file, as git names it.
    pub file: String,
    /// Who has it.
    pub holder: Holder,
    /// How long after the first attempt the retry was made.
    pub retried_after: Duration,
    /// The id of the report.
    pub report: String,
    /// The file of this session that the holder waits for, if they wait for each other.
    pub wanted_back: Option<String>,
}

/// A file that has changed since this session knew it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// The file, as git names it.
    pub file: String,
    /// Who changed it, if that is known: `codex, session 7f3a`.
    pub changed_by: Option<String>,
}

/// The daemon does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoDaemon {
    /// What is wrong: `the socket refuses connections`.
    pub problem: String,
    /// The one command that helps.
    pub fix: String,
}

/// A file that somebody let go before committing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftDirty {
    /// The file, as git names it.
    pub file: String,
    /// Which agent left it.
    pub agent: String,
    /// In which session.
    pub session: String,
    /// What it was at.
    pub task: Option<String>,
    /// How long ago.
    pub ago: Duration,
}

const NO_WAY_AROUND: &str = "Do not go around this with the shell, a copy, git stash or a worktree: the other one's work \
                             would be lost. Other files remain editable.";

/// The file is held, and the retry of this session is on its way already: asking again changes nothing.
pub fn held(held: &Held) -> String {
    format!(
        "{} was not changed: {}. The one retry of this session is scheduled and comes in {}; asking again before that \
         changes nothing. {NO_WAY_AROUND}",
        name(&held.file),
        holding(&held.holder),
        wait(held.retry_in),
    )
}

/// Code mode, where a hook cannot wait: the retry has to be asked for.
pub fn waiting(held: &Held) -> String {
    format!(
        "{} was not changed: {}. You are in line. Work on something else, and make this same edit once more in {}, not \
         earlier: that is the one retry, and if the file is still held then, the task stops and waits. {NO_WAY_AROUND}",
        name(&held.file),
        holding(&held.holder),
        wait(held.retry_in),
    )
}

/// A command that nobody stands behind who could come back by itself: the person runs it again.
pub fn run_again(file: &str, holder: &Holder) -> String {
    format!(
        "{} was not changed: {}. Run the command again when `tenure who {}` says that nobody has it. {NO_WAY_AROUND}",
        name(file),
        holding(holder),
        line(file, 200),
    )
}

/// The retry is used up: the task stops here.
pub fn blocked(blocked: &Blocked) -> String {
    let circle = blocked.wanted_back.as_ref().map(|file| {
        format!(" You wait for each other: it waits for {}, which this session holds.", name(file))
    });
    format!(
        "{} was not changed: {}. The one retry, {} after the first attempt, is used up and the file is still held.{} \
         Stop this task here and tell the person: state waiting_for_instruction, report {}. {NO_WAY_AROUND} The person can \
         look at it with `tenure report show {}`, hand the file over with `tenure give`, or end the lease with `tenure \
         force-release`; do not run these yourself.",
        name(&blocked.file),
        holding(&blocked.holder),
        wait(blocked.retried_after),
        circle.unwrap_or_default(),
        line(&blocked.report, 40),
        line(&blocked.report, 40),
    )
}

/// The whole content would be replaced by one that does not know the last change.
pub fn stale(stale: &Stale) -> String {
    let by = stale.changed_by.as_ref().map(|by| format!(" (by {})", line(by, 120)));
    format!(
        "{} was not written: it has changed since this session last read or wrote it{}, and this write would undo that \
         change. Read the file again, keep what is new in it, and write it then: after reading it the write passes.",
        name(&stale.file),
        by.unwrap_or_default(),
    )
}

/// Nobody can say who holds what.
pub fn no_daemon(daemon: &NoDaemon) -> String {
    format!(
        "Nothing was changed: Tenure's daemon does not answer ({}), so nobody can say whether another agent is editing this \
         file. Do not go around this with the shell or a copy. Ask the person to run `{}`, then try again.",
        line(&daemon.problem, 200),
        line(&daemon.fix, 200),
    )
}

/// Commands may run only where each of their changes is asked for.
pub fn unguarded(command: &str) -> String {
    format!(
        "The command was not run: here, commands run only where Tenure is asked about each file that they change, and this \
         agent's shell does not ask. Do not go around this with another tool. Edit files with the edit tool; for everything \
         else, ask the person to start this agent with `{command}`.",
    )
}

/// The shell that was named for an agent is not there, and the agent would take another one without a word.
pub fn shell_is_gone(shell: &str, agent: &str) -> String {
    format!(
        "The command was not run: {}, the shell that asks before a command changes a file, is not there any more. Do not go \
         around this with another tool. Ask the person to run `tenure install {agent}`, or to take that shell out of the \
         settings.",
        name(shell),
    )
}

/// A shell would write what it may have read before somebody else changed the file.
pub fn changed_since(file: &str) -> String {
    format!(
        "{} was not changed: somebody else changed it after this command began, so what the command is about to write may \
         undo that. The file is yours now. Read it again, and run the command once more.",
        name(file),
    )
}

/// A note beside a grant: the file is not as it was committed.
pub fn left_dirty(left: &LeftDirty) -> String {
    format!(
        "{} has changes that are not committed: {} (session {}{}) left them {} ago. Keep them unless you are told otherwise, \
         and mention them when you commit this file.",
        name(&left.file),
        line(&left.agent, 40),
        line(&left.session, 64),
        task(left.task.as_ref()),
        span(left.ago),
    )
}

/// What the hook was given cannot be understood.
pub fn not_understood(unheard: &Unheard) -> String {
    if !unheard.is_before_a_call() {
        return format!(
            "Tenure did not understand this event: {unheard}. It asks nothing, so nothing was stopped."
        );
    }
    format!(
        "Tenure did not understand this call: {unheard}. Nobody can say which files it would change, so it was not allowed. \
         Make the change with the plain edit tool, one file at a time; if that is denied too, ask the person to run `tenure \
         files`."
    )
}

/// `claude (task "…", session S, pid 7, alive) has held it for 5 min, last heard of 40 s ago`.
fn holding(holder: &Holder) -> String {
    let process = holder.process.map(|process| format!(", pid {process}"));
    let state = if holder.suspended { "suspended" } else { "alive" };
    let heard = match holder.last_heard {
        Some(ago) => format!("last heard of {} ago", span(ago)),
        None => "nothing heard of it yet".to_owned(),
    };
    format!(
        "{} (session {}{}, {state}{}) has held it for {}, {heard}",
        line(&holder.agent, 40),
        line(&holder.session, 64),
        process.unwrap_or_default(),
        task(holder.task.as_ref()),
        span(holder.held_for),
    )
}

fn task(task: Option<&String>) -> String {
    let task = task.map(|task| line(task, 100)).filter(|task| !task.is_empty());
    task.map(|task| format!(", task \"{}\"", task.replace('"', "'"))).unwrap_or_default()
}

fn name(file: &str) -> String {
    format!("`{}`", line(file, 160).replace('`', "'"))
}

/// `text` as one line of at most `most` characters, its middle left out where it is longer.
fn line(text: &str, most: usize) -> String {
    let clean =
        |character: char| if character.is_control() || character == '\u{2028}' { ' ' } else { character };
    let characters: Vec<char> = text.chars().map(clean).collect();
    if characters.len() <= most {
        return characters.into_iter().collect();
    }
    let half = (most - 1) / 2;
    let (head, tail) = (&characters[..half], &characters[characters.len() - half..]);
    head.iter().chain(['…'].iter()).chain(tail).collect()
}

/// A time to wait, in seconds: who asks a moment too early asks in vain, so a part of one counts as one.
fn wait(duration: Duration) -> String {
    format!("{} s", duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)))
}

/// A span of time in its two largest units.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(3);
    let shown =
        parts[first..].iter().take(2).filter(|(count, unit)| *count > 0 || first == 3 && *unit == "s");
    shown.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}
