//! Requests to the server, and the caller that they name.

use std::sync::atomic::Ordering;

use tenure_api::{FileAcquireRequest, FileCaller, FileEventKind, FileEventReport};

use super::answer::CallDenial;
use super::syscall_policy::{FileChange, utf8_path};
use super::{SupervisorState, orphan_processes};

/// The server knows whom we speak for, before whoever started us is gone: it could not see that afterwards.
pub async fn register_caller(watched: &SupervisorState) {
    let is_needed =
        watched.attribution.ancestor_agent().is_some() && !watched.is_registered.load(Ordering::Relaxed);
    let has_ended = watched.listener.readiness().is_ok_and(|readiness| readiness.is_closed);
    if let (true, false, Ok(questions)) = (is_needed, has_ended, &watched.client) {
        let news = FileEventReport {
            speaker: caller(watched),
            event: FileEventKind::Guarding,
            cwd: None,
            paths: Vec::new(),
            detail: None,
        };
        // If nobody answers, what goes on in the background is refused, or is our own.
        let _ = questions.send_event(&news).await;
    }
}

fn caller(watched: &SupervisorState) -> FileCaller {
    let naming = &watched.selector;
    FileCaller {
        agent: "guard".to_owned(),
        session: naming.session.clone().unwrap_or_else(|| watched.own_name.clone()),
        subagent: naming.subagent.clone(),
        task: Some(watched.task.clone()),
        ..FileCaller::default()
    }
}

/// Whether these may be changed, by this process.
pub fn acquire_request(
    watched: &SupervisorState,
    process: u32,
    files: &[FileChange],
) -> Result<FileAcquireRequest, CallDenial> {
    let named = |follows: bool| {
        files
            .iter()
            .filter(move |file| file.follows == follows)
            .map(|file| utf8_path(&file.path))
            .collect::<Result<Vec<_>, _>>()
    };
    let not_text = |path: std::ffi::OsString| {
        CallDenial::busy(format!(
            "{} was not changed: its name is not UTF-8, so no lease can be taken for it. Rename it, or do this without \
             `tenure guard`.",
            path.to_string_lossy()
        ))
    };
    Ok(FileAcquireRequest {
        speaker: caller(watched),
        cwd: "/".to_owned(),
        paths: named(true).map_err(not_text)?,
        entries: named(false).map_err(not_text)?,
        whole: false,
        process: Some(process),
        orphan: orphan_processes::is_orphan(watched, process),
        named: watched.selector.session.is_some(),
    })
}
