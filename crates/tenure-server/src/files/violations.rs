//! What is written down of those who change what somebody else has.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{Command, FileCommand, Holder, Resource};
use tenure_registrar::Reply;

use crate::app::App;

/// How often a writer is asked that has no time.
const TRIES: usize = 100;
/// How long it is let be in between.
const REST: Duration = Duration::from_millis(50);

/// Writes down that this happened to these files, one after the other, while nobody waits for it. Where there is no room for
/// it, it is not written: there may be thousands, and the room that is left is for the ends of leases.
pub(super) fn tell(app: &Arc<App>, resources: Vec<Resource>, session: Option<Holder>, detail: &'static str) {
    if resources.is_empty() {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        for resource in resources {
            let command = FileCommand::Violate { resource, session: session.clone(), detail: detail.into() };
            write_down(&app, Command::File(Box::new(command))).await;
        }
    });
}

async fn write_down(app: &App, command: Command) {
    for _ in 0..TRIES {
        let response = app.registrar.ask(command.clone()).await;
        if !matches!(response.reply, Reply::Busy | Reply::Unavailable) {
            return;
        }
        tokio::time::sleep(REST).await;
    }
}
