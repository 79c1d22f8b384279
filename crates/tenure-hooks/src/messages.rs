//! What a model is told. A denial teaches: what happened, what it means, what to do, and what not to do.
//!
//! Each text is one paragraph of plain sentences, at most about 900 characters, and always the same for the same input.
//! What others wrote (paths, tasks) is made one line, shortened and put in quotes, so that it cannot pass for a sentence.

use std::time::Duration;

use tenure_api::{FileAcquireRequest, FileVerdict, UncommittedFile};

use crate::payload::PayloadError;

/// How many further files are named in one text.
const MAX_NAMED_FILES: usize = 3;

const DO_NOT_BYPASS: &str = "Do not go around this with the shell, a copy, git stash or a worktree: the other one's work \
                             would be lost. Other files remain editable.";

/// Code mode, where a hook cannot wait: the retry has to be asked for.
pub fn retry_later_message(verdict: &FileVerdict, ask: &FileAcquireRequest) -> String {
    format!(
        "{} was not changed: {}. You are in line. Work on something else, and make this same edit once more in {}, not \
         earlier: that is the one retry, and if the file is still held then, the task stops and waits. {DO_NOT_BYPASS}{}",
        name(first_holder(verdict, ask)[0]),
        holder_description(verdict, ask),
        format_seconds(Duration::from_millis(verdict.retry_in_ms.unwrap_or(0))),
        further_files(verdict),
    )
}

/// A command that nobody stands behind who could come back by itself: the person runs it again.
pub fn run_again_message(verdict: &FileVerdict, ask: &FileAcquireRequest) -> String {
    let [file, ..] = first_holder(verdict, ask);
    format!(
        "{} was not changed: {}. Run the command again when `tenure who {}` says that nobody has it. {DO_NOT_BYPASS}{}",
        name(file),
        holder_description(verdict, ask),
        line(file, 200),
        further_files(verdict),
    )
}

/// The retry is used up: the task stops here.
pub fn retry_exhausted_message(verdict: &FileVerdict, ask: &FileAcquireRequest) -> String {
    let report = line(verdict.report.as_deref().unwrap_or("unknown"), 40);
    let circle: Vec<_> = verdict.circle.iter().take(8).map(|name| plain(name)).collect();
    let circle = match circle.as_slice() {
        [] => String::new(),
        circle => format!(" These sessions wait for each other: {}.", circle.join(", ")),
    };
    format!(
        "{} was not changed: {}. The one retry, {} after the first attempt, is used up and the file is still held. \
         Stop this task here and tell the person: state waiting_for_instruction, report {report}. {DO_NOT_BYPASS} The \
         person can look at it with `tenure report show {report}`, hand the file over with `tenure give`, or end the lease \
         with `tenure force-release`; do not run these yourself.{}{circle}",
        name(first_holder(verdict, ask)[0]),
        holder_description(verdict, ask),
        format_seconds(Duration::from_secs(verdict.retry_interval_seconds)),
        further_files(verdict),
    )
}

/// The whole content would be replaced by one that does not know the last change.
pub fn stale_content_message(verdict: &FileVerdict, ask: &FileAcquireRequest) -> String {
    let file = verdict.stale.first().or(ask.paths.first());
    let further: Vec<_> =
        verdict.stale.iter().skip(1).take(MAX_NAMED_FILES).map(|path| format!("`{}`", plain(path))).collect();
    let rest = match further.as_slice() {
        [] => String::new(),
        rest => format!(" The same is true of {}.", rest.join(", ")),
    };
    format!(
        "{} was not written: it has changed since this session last read or wrote it, and this write would undo that \
         change. Read the file again, keep what is new in it, and write it then: after reading it the write passes.{rest}",
        name(file.map_or("", String::as_str)),
    )
}

/// What the model should know though it may go on.
pub fn allow_message(verdict: &FileVerdict) -> Option<String> {
    let held = verdict.held.iter().take(MAX_NAMED_FILES).map(|held| {
        format!(
            "`{}` is being edited by {} (session {}) as well. Tenure only warns here, as it is configured: tell the person.",
            plain(&held.path),
            plain(&held.owner.agent),
            plain(&held.owner.session)
        )
    });
    let dirty = verdict.left_dirty.iter().take(MAX_NAMED_FILES).map(uncommitted_message);
    let texts: Vec<_> = held.chain(dirty).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// Nobody can say who holds what.
pub fn server_unavailable_message(problem: &str, fix: &str) -> String {
    format!(
        "Nothing was changed: Tenure's daemon does not answer ({}), so nobody can say whether another agent is editing this \
         file. Do not go around this with the shell or a copy. Ask the person to run `{}`, then try again.",
        line(problem, 200),
        line(fix, 200),
    )
}

/// Commands may run only where each of their changes is asked for.
pub fn shell_not_intercepted_message(command: &str) -> String {
    format!(
        "The command was not run: here, commands run only where Tenure is asked about each file that they change, and this \
         agent's shell does not ask. Do not go around this with another tool. Edit files with the edit tool; for everything \
         else, ask the person to start this agent with `{command}`.",
    )
}

/// The shell that was named for an agent is not there, and the agent would take another one without a word.
pub fn shell_missing_message(shell: &str, agent: &str) -> String {
    format!(
        "The command was not run: {}, the shell that asks before a command changes a file, is not there any more. Do not go \
         around this with another tool. Ask the person to run `tenure install {agent}`, or to take that shell out of the \
         settings.",
        name(shell),
    )
}

/// A shell would write what it may have read before somebody else changed the file.
pub fn changed_since_start_message(file: &str) -> String {
    format!(
        "{} was not changed: somebody else changed it after this command began, so what the command is about to write may \
         undo that. The file is yours now. Read it again, and run the command once more.",
        name(file),
    )
}

/// A note beside a grant: the file is not as it was committed.
fn uncommitted_message(file: &UncommittedFile) -> String {
    format!(
        "{} has changes that are not committed: {} (session {}{}) left them {} ago. Keep them unless you are told otherwise, \
         and mention them when you commit this file.",
        name(&file.path),
        line(&file.owner.agent, 40),
        line(&file.owner.session, 64),
        task(&file.owner.task),
        format_duration(file.left_ms),
    )
}

/// What the hook was given cannot be understood.
pub fn payload_rejected_message(unheard: &PayloadError) -> String {
    if !unheard.is_pre_tool_use() {
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

/// The first file that is held, with the agent and the session that hold it. A holder that is no agent has its name alone.
pub fn first_holder<'a>(verdict: &'a FileVerdict, ask: &'a FileAcquireRequest) -> [&'a str; 3] {
    let Some(held) = verdict.held.first() else {
        return [ask.paths.first().map_or("", String::as_str), "somebody", "unknown"];
    };
    let named = |text: &'a str| if text.is_empty() { held.owner.holder.as_str() } else { text };
    [&held.path, named(&held.owner.agent), named(&held.owner.session)]
}

/// `claude (session S, pid 7, alive, task "…") has held it for 5 min, last heard of 40 s ago`.
fn holder_description(verdict: &FileVerdict, ask: &FileAcquireRequest) -> String {
    let [_, agent, session] = first_holder(verdict, ask);
    let (agent, session) = (line(agent, 40), line(session, 64));
    let Some(held) = verdict.held.first() else {
        return format!("{agent} (session {session}, alive) has held it for 0 s, nothing heard of it yet");
    };
    let process = if held.owner.pid == 0 { String::new() } else { format!(", pid {}", held.owner.pid) };
    let state = if held.owner.suspended { "suspended" } else { "alive" };
    format!(
        "{agent} (session {session}{process}, {state}{}) has held it for {}, last heard of {} ago",
        task(&held.owner.task),
        format_duration(held.held_ms),
        format_duration(held.idle_ms),
    )
}

/// The other files of the call that are held.
fn further_files(verdict: &FileVerdict) -> String {
    let rest: Vec<_> =
        verdict.held.iter().skip(1).take(MAX_NAMED_FILES).map(|held| plain(&held.path)).collect();
    match rest.as_slice() {
        [] => String::new(),
        rest => format!(" The same call needs further files that are held: `{}`.", rest.join("`, `")),
    }
}

/// What others wrote, as a part of one line.
fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() || letter == '`' { ' ' } else { letter })
        .take(160)
        .collect()
}

fn task(task: &str) -> String {
    let task = line(task, 100);
    if task.is_empty() { task } else { format!(", task \"{}\"", task.replace('"', "'")) }
}

fn name(file: &str) -> String {
    format!("`{}`", line(file, 160).replace('`', "'"))
}

/// `text` as one line of at most `most` characters, its middle left out where it is longer.
fn line(text: &str, max: usize) -> String {
    let clean =
        |character: char| if character.is_control() || character == '\u{2028}' { ' ' } else { character };
    let characters: Vec<char> = text.chars().map(clean).collect();
    if characters.len() <= max {
        return characters.into_iter().collect();
    }
    let half = (max - 1) / 2;
    let (head, tail) = (&characters[..half], &characters[characters.len() - half..]);
    head.iter().chain(['…'].iter()).chain(tail).collect()
}

/// A time to wait, in seconds: who asks a moment too early asks in vain, so a part of one counts as one.
fn format_seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)))
}

/// A span of time in its two largest units.
fn format_duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(3);
    let shown =
        parts[first..].iter().take(2).filter(|(count, unit)| *count > 0 || first == 3 && *unit == "s");
    shown.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}
