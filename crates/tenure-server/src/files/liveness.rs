//! Whether those live who have files. Nobody is denied for the sake of somebody who does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_core::kernel::{Answer, Command, FileCommand, FileEnd, Holder, State};
use tenure_gate::process::Liveness;
use tenure_registrar::Reply;

use super::identity;
use crate::app::App;

/// Looks at each of these sessions now. Those that live are answered; those that do not are over, with what they had.
pub(super) async fn check(app: &Arc<App>, sessions: &[Holder]) -> Vec<Holder> {
    let processes = app.registrar.read(|state| {
        let process = |id: &Holder| state.file_session(id).map(|session| session.process.clone());
        sessions.iter().filter_map(|id| Some((id.clone(), process(id)?))).collect::<Vec<_>>()
    });
    let looked = tokio::task::spawn_blocking(move || {
        processes.into_iter().map(|(id, process)| (id, lives(&process))).collect::<Vec<_>>()
    });
    let looked = looked.await.unwrap_or_default();
    let (living, dead): (Vec<_>, Vec<_>) = looked.into_iter().partition(|(_, lives)| *lives);
    if !dead.is_empty() {
        let dead = dead.into_iter().map(|(id, _)| id).collect();
        end(app, dead, FileEnd::Died, "its process is gone").await;
    }
    living.into_iter().map(|(id, _)| id).collect()
}

/// Whether the process of a session lives. One that stands still does.
pub(super) fn lives(process: &str) -> bool {
    identity::process_in(process).is_some_and(|process| process.liveness() != Liveness::Dead)
}

/// Ends sessions. Says whether that is in the ledger.
pub(super) async fn end(app: &App, sessions: Vec<Holder>, end: FileEnd, detail: &str) -> bool {
    sessions.iter().for_each(|session| app.files.contents.forget(session));
    let command = FileCommand::End { sessions, end, detail: detail.into() };
    let response = app.registrar.ask(Command::File(Box::new(command))).await;
    matches!(response.reply, Reply::Answered { answer: Answer::File(_), .. })
}

/// The sessions of each process.
pub(super) fn by_process(state: &State) -> BTreeMap<Arc<str>, Vec<Holder>> {
    let mut found: BTreeMap<Arc<str>, Vec<Holder>> = BTreeMap::new();
    for session in state.file_sessions() {
        found.entry(session.process.clone()).or_default().push(session.id.clone());
    }
    found
}
