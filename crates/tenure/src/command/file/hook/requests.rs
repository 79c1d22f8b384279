//! Requests of a hook, and the caller that they name.

use std::path::Path;
use std::time::Duration;

use tenure_api::{FileAcquireRequest, FileCaller, FileEventKind, FileEventReport};
use tenure_client::Error;
use tenure_hooks::{HookEvent, HookPayload};
use tenure_host::coding_agent::CodingAgent;
use tokio::time::timeout;

use crate::autostart::{LocalServer, start};

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

/// How long the agent is held up for it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

pub async fn send_event(agent: CodingAgent, payload_event: &HookPayload) {
    let (Ok(news), Ok(local)) = (file_event(agent, payload_event), LocalServer::find()) else { return };
    let Ok(client) = local.client() else { return };
    let response = timeout(RESPONSE_TIMEOUT, client.report_file_event(&news)).await;
    let is_away = matches!(response, Ok(Err(Error::Unreachable { .. })));
    if is_away && should_start_server(&payload_event.event) && start(&local).await.is_ok() {
        let _ = timeout(RESPONSE_TIMEOUT, client.report_file_event(&news)).await;
    }
}

/// Whether a daemon is started for it: a session begins, or knows what is in a file. An end needs none: whoever starts
/// next finds out who lives.
fn should_start_server(event: &HookEvent) -> bool {
    matches!(event, HookEvent::Started | HookEvent::Prompted | HookEvent::AfterRead { .. })
}
