//! What is asked about files, in stories.
//!
//! ```text
//!   0  session s1 wants a                    -> began s1, granted 1
//!   5  session s2 wants a                    -> began s2, check s1
//!   5  session s2 wants a checked s1         -> contended t1 a of s1 due 185, waits a of s1 t1 until 185
//! 185  session s2 wants a checked s1         -> seen s2, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
//! 190  session s1 commits a                  -> 1 COMPLETED, lets go a
//! ```
//!
//! `a=b` is one file with another name, `a+c` are two files. `session s1.x of s1` is a subagent of `s1`, in the same process.
//! Options: `checked s1,s2`, `at TASK`, `in PROCESS`.

use std::sync::Arc;

use tenure_core::kernel::{
    Command, Event, FileAcquire, FileCommand, FileEvent, FileOutcome, FileRequest, FileSessionActivity,
    FileSessionEnd, FileSessionInfo, HeldFile, Holder, Nonce, RecordedProcess, Resource, Tick, Ticket,
};

use crate::scenario::{format_fences, format_holders, format_tick, holder, parse_seconds, principal};

/// What is asked about or by a session, after its name.
pub fn parse_session_command(name: &str, words: &[&str]) -> Command {
    let (parent, words) = match words {
        ["of", parent, rest @ ..] => (Some(holder(parent)), rest),
        rest => (None, rest),
    };
    let option = |keyword: &str| words.iter().position(|word| *word == keyword).map(|at| words[at + 1]);
    let id = holder(name);
    let introduction = || session_info(name, parent.clone(), option("in"), option("at"));
    let end = |end| FileCommand::End { sessions: vec![holder(name)], end, detail: "told".into() };
    let command = match words {
        ["is", "active", ..] => {
            FileCommand::RecordActivity { session: introduction(), activity: FileSessionActivity::Active }
        }
        ["turn", "ends", ..] => {
            FileCommand::RecordActivity { session: introduction(), activity: FileSessionActivity::TurnEnded }
        }
        ["wants", files, ..] => FileCommand::Acquire(FileAcquire {
            session: introduction(),
            files: files.split('+').map(file_request).collect(),
            checked: option("checked").map(holders).unwrap_or_default(),
            background: words.contains(&"background"),
        }),
        ["adopts", from, ..] => FileCommand::Adopt { from: holder(from), to: introduction() },
        ["commits", files] => FileCommand::Commit { sessions: vec![id], resources: resources(files) },
        ["rests", since, ..] => FileCommand::ReleaseIdle {
            session: id,
            turn_ended_at: Tick(parse_seconds(since).0),
            keep: option("keep").map(resources).unwrap_or_default(),
        },
        ["ends"] => end(FileSessionEnd::Ended),
        ["dies"] => end(FileSessionEnd::Died),
        ["hands", "up"] => end(FileSessionEnd::TransferredToParent),
        _ => panic!("no session asks this: {words:?}"),
    };
    Command::File(Box::new(command))
}

/// What a person asks.
pub fn parse_admin_command(words: &[&str]) -> Command {
    let by = principal("token:person");
    let option = |keyword: &str| words.iter().position(|word| *word == keyword).map(|at| words[at + 1]);
    let command = match words {
        ["gives", name, "to", to] => FileCommand::Give { file: file_request(name), to: holder(to), by },
        ["forces", files] => {
            FileCommand::ForceRelease { resources: resources(files), by, detail: "in the way".into() }
        }
        ["resumes", report, name, ..] => FileCommand::Resume {
            report: Ticket(report.trim_start_matches('t').parse().expect("a ticket")),
            file: file_request(name),
            checked: option("checked").map(holders).unwrap_or_default(),
        },
        ["sees", name, "changed", rest @ ..] => FileCommand::RecordViolation {
            resource: resource(name),
            session: rest.last().map(|name| holder(name)),
            detail: "it is not as it was".into(),
        },
        _ => panic!("no person asks this: {words:?}"),
    };
    Command::File(Box::new(command))
}

/// Who speaks. A subagent is of the process and the session of whoever stands before the first dot of its name.
pub fn session_info(
    name: &str,
    parent: Option<Holder>,
    in_process: Option<&str>,
    task: Option<&str>,
) -> FileSessionInfo {
    let top = name.split('.').next().expect("a text has at least one part");
    let text = |text: &str| -> Arc<str> { text.into() };
    let process = process(in_process.unwrap_or(&format!("process of {top}")));
    FileSessionInfo {
        parent,
        agent: text("claude"),
        session: text(&format!("session of {top}")),
        task: task.map(text),
        ..FileSessionInfo::new(holder(name), process)
    }
}

/// A process by a text that identifies none: the kernel only compares them.
pub fn process(text: &str) -> RecordedProcess {
    RecordedProcess::parse(text).expect("a text")
}

/// `a=b=c`: one file by all its names.
pub fn file_request(names: &str) -> FileRequest {
    let mut names = names.split('=').map(resource);
    let resource = names.next().expect("a text has at least one part");
    let aliases: Vec<_> = names.collect();
    FileRequest { resource, nonces: vec![Nonce([3; 16]); aliases.len() + 1], aliases }
}

fn resource(name: &str) -> Resource {
    Resource::parse(name).expect("a resource")
}

fn resources(names: &str) -> Vec<Resource> {
    names.split('+').map(resource).collect()
}

fn holders(names: &str) -> Vec<Holder> {
    names.split(',').map(holder).collect()
}

/// How leases on files ended that were let go of; other stories tell that by their answers.
pub fn render_release(event: &Event) -> Option<String> {
    match event {
        Event::Released { lease, reason, .. } => Some(format!("{} {}", lease.0, reason.as_str())),
        _ => None,
    }
}

/// What happened to files and sessions.
pub fn render_event(event: &FileEvent) -> String {
    let circle = |circle: &[Holder]| match circle {
        [] => String::new(),
        circle => format!(" circle {}", format_holders(circle)),
    };
    match event {
        FileEvent::Began { session, .. } => format!("began {}", session.id),
        FileEvent::Seen { session, task: Some(task), .. } => format!("seen {session} at {task}"),
        FileEvent::Seen { session, .. } => format!("seen {session}"),
        FileEvent::TurnEnded { session, .. } => format!("turn over {session}"),
        FileEvent::Contended(contended) => format!(
            "contended t{} {} of {} due {}{}",
            contended.ticket.0,
            contended.request.resource,
            contended.owner,
            format_tick(contended.retry_at),
            circle(&contended.cycle)
        ),
        FileEvent::Blocked { ticket, report: found } => format!(
            "blocked t{} by {} since {} seen {}{}",
            ticket.0,
            found.owner.holder,
            format_tick(found.held_since),
            format_tick(found.seen_at),
            circle(&found.cycle)
        ),
        FileEvent::Closed { ticket, end, .. } => format!("closed t{} {}", ticket.0, end.as_str()),
        FileEvent::Ended { session, end, .. } => format!("over {session} {}", end.as_str()),
        FileEvent::Violated { resource, owner, session, .. } => {
            let name = |name: &Option<Holder>| name.as_ref().map_or("nobody".into(), ToString::to_string);
            format!("violated {resource} of {} by {}", name(owner), name(session))
        }
    }
}

/// What is answered.
pub fn render_answer(answer: &FileOutcome) -> String {
    let each = |held: &[HeldFile]| -> String {
        held.iter().map(|held| format!(" {} of {} t{}", held.resource, held.holder, held.ticket.0)).collect()
    };
    match answer {
        FileOutcome::Acknowledged => "noted".into(),
        FileOutcome::Granted { leases, uncommitted } => {
            let uncommitted = uncommitted.iter().map(|(resource, file)| {
                format!(" left {resource} by {} at {}", file.owner.holder, format_tick(file.at))
            });
            format!("granted{}{}", format_fences(leases), uncommitted.collect::<String>())
        }
        FileOutcome::CheckRequired { sessions } => format!("check {}", format_holders(sessions)),
        FileOutcome::Wait { held, until } => format!("waits{} until {}", each(held), format_tick(*until)),
        FileOutcome::Blocked { held, report } => format!("stops{} report t{}", each(held), report.0),
        FileOutcome::Released { resources, foreign } => {
            let resources = resources.iter().map(|resource| format!(" {resource}"));
            let foreign = foreign.iter().map(|(resource, holder)| format!(" foreign {resource} of {holder}"));
            format!("lets go{}{}", resources.collect::<String>(), foreign.collect::<String>())
        }
    }
}
