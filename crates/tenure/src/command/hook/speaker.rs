//! For whom a hook speaks, and what the server is told.

use std::path::Path;

use tenure_api::{FileAsk, FileEventKind, FileNews, FileSpeaker};
use tenure_gate::agent::Agent;
use tenure_gate::hooks::{Event, Heard};

/// As the server wants to know it.
pub fn speaker(agent: Agent, heard: &Heard) -> FileSpeaker {
    let subagent = heard.subagent.as_ref();
    FileSpeaker {
        agent: agent.as_str().to_owned(),
        session: heard.session.clone(),
        subagent: subagent.map(|subagent| subagent.id.clone()),
        parent: subagent.and_then(|subagent| subagent.parent.clone()),
        task: heard.task.clone().filter(|task| !task.is_empty()),
    }
}

/// What to ask before these files are changed.
pub fn wish(
    agent: Agent,
    heard: &Heard,
    paths: &[impl AsRef<Path>],
    whole: bool,
) -> Result<FileAsk, NotText> {
    let paths = paths.iter().map(|path| text(path.as_ref())).collect::<Result<_, _>>()?;
    Ok(FileAsk {
        speaker: speaker(agent, heard),
        cwd: cwd(heard)?,
        paths,
        entries: Vec::new(),
        whole,
        process: None,
        orphan: false,
        named: false,
    })
}

/// What to say about an event that asks nothing. Nothing, if it says nothing either.
pub fn news(agent: Agent, heard: &Heard) -> Result<FileNews, NotText> {
    let (event, paths, detail): (_, &[_], _) = match &heard.event {
        Event::Read { paths } => (FileEventKind::Read, paths, None),
        Event::Wrote { paths, failed: false } => (FileEventKind::Wrote, paths, None),
        // What a failed tool left behind is nothing that the session knows.
        Event::Wrote { .. } => (FileEventKind::Active, &[], None),
        Event::TurnEnded { still_working: false } => (FileEventKind::TurnEnded, &[], None),
        Event::SubagentEnded => (FileEventKind::SubagentEnded, &[], None),
        Event::Ended { reason } => (FileEventKind::Ended, &[], Some(shortened(reason))),
        Event::TurnEnded { still_working: true }
        | Event::Started
        | Event::Prompted
        | Event::Writing { .. }
        | Event::SubagentStarted
        | Event::Calling
        | Event::Other => (FileEventKind::Active, &[], None),
    };
    let paths = paths.iter().map(|path| text(path)).collect::<Result<Vec<_>, _>>()?;
    let cwd = if paths.is_empty() { None } else { Some(cwd(heard)?) };
    let detail = detail.filter(|detail| !detail.is_empty());
    Ok(FileNews { speaker: speaker(agent, heard), event, cwd, paths, detail })
}

/// A path or folder that cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText;

/// The folder that paths are meant in; ours, where the agent says nothing.
fn cwd(heard: &Heard) -> Result<String, NotText> {
    match &heard.cwd {
        Some(folder) => text(folder),
        None => std::env::current_dir().map_err(|_| NotText).and_then(|folder| text(&folder)),
    }
}

fn text(path: &Path) -> Result<String, NotText> {
    path.to_str().map(str::to_owned).ok_or(NotText)
}

fn shortened(reason: &str) -> String {
    reason.chars().filter(|letter| !letter.is_control()).take(100).collect()
}
