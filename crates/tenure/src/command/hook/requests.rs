//! For whom a hook speaks, and what the server is told.

use std::path::Path;

use tenure_api::{FileAcquireRequest, FileCaller, FileEventKind, FileEventReport};
use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::hooks::{HookEvent, HookPayload};

/// As the server wants to know it.
pub fn caller(agent: CodingAgent, payload_event: &HookPayload) -> FileCaller {
    let subagent = payload_event.subagent.as_ref();
    FileCaller {
        agent: agent.as_str().to_owned(),
        session: payload_event.session.clone(),
        subagent: subagent.map(|subagent| subagent.id.clone()),
        parent: subagent.and_then(|subagent| subagent.parent.clone()),
        task: payload_event.task.clone().filter(|task| !task.is_empty()),
    }
}

/// What to ask before these files are changed.
pub fn file_request(
    agent: CodingAgent,
    payload: &HookPayload,
    paths: &[impl AsRef<Path>],
    whole: bool,
) -> Result<FileAcquireRequest, NotUtf8> {
    let paths = paths.iter().map(|path| text(path.as_ref())).collect::<Result<_, _>>()?;
    Ok(FileAcquireRequest {
        speaker: caller(agent, payload),
        cwd: cwd(payload)?,
        paths,
        entries: Vec::new(),
        whole,
        process: None,
        orphan: false,
        named: false,
    })
}

/// What to say about an event that asks nothing. Nothing, if it says nothing either.
pub fn file_event(agent: CodingAgent, payload: &HookPayload) -> Result<FileEventReport, NotUtf8> {
    let (event, paths, detail): (_, &[_], _) = match &payload.event {
        HookEvent::AfterRead { paths } => (FileEventKind::Read, paths, None),
        HookEvent::AfterWrite { paths, failed: false } => (FileEventKind::Wrote, paths, None),
        // What a failed tool left behind is nothing that the session knows.
        HookEvent::AfterWrite { .. } => (FileEventKind::Active, &[], None),
        HookEvent::TurnEnded { still_working: false } => (FileEventKind::TurnEnded, &[], None),
        HookEvent::SubagentEnded => (FileEventKind::SubagentEnded, &[], None),
        HookEvent::Ended { reason } => (FileEventKind::Ended, &[], Some(shortened(reason))),
        HookEvent::TurnEnded { still_working: true }
        | HookEvent::Started
        | HookEvent::Prompted
        | HookEvent::BeforeWrite { .. }
        | HookEvent::SubagentStarted
        | HookEvent::BeforeToolCall
        | HookEvent::Other => (FileEventKind::Active, &[], None),
    };
    let paths = paths.iter().map(|path| text(path)).collect::<Result<Vec<_>, _>>()?;
    let cwd = if paths.is_empty() { None } else { Some(cwd(payload)?) };
    let detail = detail.filter(|detail| !detail.is_empty());
    Ok(FileEventReport { speaker: caller(agent, payload), event, cwd, paths, detail })
}

/// A path or folder that cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUtf8;

/// The folder that paths are meant in; ours, where the agent says nothing.
fn cwd(payload: &HookPayload) -> Result<String, NotUtf8> {
    match &payload.cwd {
        Some(folder) => text(folder),
        None => std::env::current_dir().map_err(|_| NotUtf8).and_then(|folder| text(&folder)),
    }
}

fn text(path: &Path) -> Result<String, NotUtf8> {
    path.to_str().map(str::to_owned).ok_or(NotUtf8)
}

fn shortened(reason: &str) -> String {
    reason.chars().filter(|letter| !letter.is_control()).take(100).collect()
}
