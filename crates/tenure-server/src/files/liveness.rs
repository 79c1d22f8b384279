//! Whether those live who have files. Nobody is denied for the sake of somebody who does not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_api::Code;
use tenure_core::kernel::{
    Command, CommandOutcome, FileCommand, FileOutcome, FileSessionEnd, Holder, KernelState, RecordedProcess,
    Tick,
};
use tenure_gate::process::{self, Liveness};
use tenure_registrar::Reply;

use super::{guards, submit};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::HttpError;

/// How often is asked anew: each time somebody else is in the way, who is looked at once.
const MAX_CHECKS: usize = 64;

/// Looks at each of these sessions now. Those that live are answered; those that do not are over, with what they had.
pub(super) async fn end_dead_sessions(app: &Arc<App>, sessions: &[Holder]) -> Vec<Holder> {
    let processes = app.registrar.read(|state| {
        let process = |id: &Holder| state.file_session(id).map(|session| session.process.clone());
        sessions.iter().filter_map(|id| Some((id.clone(), process(id)?))).collect::<Vec<_>>()
    });
    let looked = tokio::task::spawn_blocking(move || {
        processes.into_iter().map(|(id, process)| (id, is_alive(&process))).collect::<Vec<_>>()
    });
    let looked = looked.await.unwrap_or_default();
    let (living, dead): (Vec<_>, Vec<_>) = looked.into_iter().partition(|(_, is_alive)| *is_alive);
    if !dead.is_empty() {
        let dead: Vec<Holder> = dead.into_iter().map(|(id, _)| id).collect();
        let processes = app.registrar.read(|state| {
            let process = |id: &Holder| state.file_session(id).map(|session| session.process.clone());
            dead.iter().filter_map(process).collect::<BTreeSet<_>>()
        });
        for process in processes {
            guards::wait_until_closed(app, &process, &dead).await;
        }
        end(app, dead, FileSessionEnd::Died, "its process is gone").await;
    }
    living.into_iter().map(|(id, _)| id).collect()
}

/// Asks until it is known of everybody in the way that they live, or that they do not. `question` makes the question, given whose
/// life was just made sure of.
pub(super) async fn execute_with_liveness_checks(
    app: &Arc<App>,
    caller: &Caller,
    command: impl Fn(Vec<Holder>) -> Result<FileCommand, HttpError>,
) -> Result<(FileOutcome, Tick), HttpError> {
    let mut checked: Vec<Holder> = Vec::new();
    for _ in 0..MAX_CHECKS {
        match submit(app, caller, command(checked.clone())?).await? {
            (FileOutcome::CheckRequired { sessions }, _) => {
                checked.extend(end_dead_sessions(app, &sessions).await)
            }
            answered => return Ok(answered),
        }
    }
    let detail = "others get and lose this faster than anybody can be looked at; nothing happened, ask again";
    Err(HttpError::new(Code::Busy, detail))
}

/// Whether the process of a session lives. One that stands still does.
pub(super) fn is_alive(process: &RecordedProcess) -> bool {
    process.id().is_some_and(|process| process::liveness(&process) != Liveness::Dead)
}

/// Ends sessions. Says whether that is in the ledger.
pub(super) async fn end(app: &App, sessions: Vec<Holder>, end: FileSessionEnd, detail: &str) -> bool {
    sessions.iter().for_each(|session| app.files.known_contents.forget(session));
    let command = FileCommand::End { sessions, end, detail: detail.into() };
    let response = app.registrar.submit(Command::File(Box::new(command))).await;
    matches!(response.reply, Reply::Answered { answer: CommandOutcome::File(_), .. })
}

pub(super) fn sessions_by_process(state: &KernelState) -> BTreeMap<RecordedProcess, Vec<Holder>> {
    let mut found: BTreeMap<RecordedProcess, Vec<Holder>> = BTreeMap::new();
    for session in state.file_sessions() {
        found.entry(session.process.clone()).or_default().push(session.id.clone());
    }
    found
}
