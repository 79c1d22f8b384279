//! For whom the server hears us speak.

use std::sync::atomic::Ordering;

use tenure_api::{FileAsk, FileEventKind, FileNews, FileSpeaker};

use super::asking::Refused;
use super::judging::{Want, text};
use super::{Watched, orphans};

/// The server knows whom we speak for, before whoever started us is gone: it could not see that afterwards.
pub async fn introduce(watched: &Watched) {
    let is_needed = watched.owners.above().is_some() && !watched.is_introduced.load(Ordering::Relaxed);
    let is_over = watched.listener.readiness().is_ok_and(|readiness| readiness.is_over);
    if let (true, false, Ok(questions)) = (is_needed, is_over, &watched.questions) {
        let news = FileNews {
            speaker: speaker(watched),
            event: FileEventKind::Guarding,
            cwd: None,
            paths: Vec::new(),
            detail: None,
        };
        // If nobody answers, what goes on in the background is refused, or is our own.
        let _ = questions.tell(&news).await;
    }
}

fn speaker(watched: &Watched) -> FileSpeaker {
    let naming = &watched.naming;
    FileSpeaker {
        agent: "guard".to_owned(),
        session: naming.session.clone().unwrap_or_else(|| watched.own_name.clone()),
        subagent: naming.subagent.clone(),
        parent: None,
        task: Some(watched.task.clone()),
    }
}

/// Whether these may be changed, by this process.
pub fn question(watched: &Watched, process: u32, files: &[Want]) -> Result<FileAsk, Refused> {
    let named = |follows: bool| {
        files
            .iter()
            .filter(move |file| file.follows == follows)
            .map(|file| text(&file.path))
            .collect::<Result<Vec<_>, _>>()
    };
    let not_text = |path: std::ffi::OsString| {
        Refused::busy(format!(
            "{} was not changed: its name is not UTF-8, so no lease can be taken for it. Rename it, or do this without \
             `tenure guard`.",
            path.to_string_lossy()
        ))
    };
    Ok(FileAsk {
        speaker: speaker(watched),
        cwd: "/".to_owned(),
        paths: named(true).map_err(not_text)?,
        entries: named(false).map_err(not_text)?,
        whole: false,
        process: Some(process),
        orphan: orphans::is_one(watched, process),
        named: watched.naming.session.is_some(),
    })
}
