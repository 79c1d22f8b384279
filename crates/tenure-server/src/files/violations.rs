//! What is written down of those who change what somebody else has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::{Command, FileCommand, Holder, Resource, Tick, TickDuration};
use tenure_registrar::Reply;

use crate::app::App;

/// Within this time, one file is told once.
const DEDUPLICATION_WINDOW: TickDuration = TickDuration::from_secs(5);
const MAX_ENTRIES: usize = 10_000;
/// How often a writer is asked that has no time.
const TRIES: usize = 100;
/// How long it is let be in between.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Writes down that this happened to these files, one after the other, while nobody waits for it. Where there is no room for
/// it, it is not written: there may be thousands, and the room that is left is for the ends of leases.
pub(super) fn report_violations(
    app: &Arc<App>,
    resources: Vec<Resource>,
    session: Option<Holder>,
    detail: impl Into<Arc<str>>,
) {
    if resources.is_empty() {
        return;
    }
    let (app, detail) = (app.clone(), detail.into());
    tokio::spawn(async move {
        for resource in resources {
            let command =
                FileCommand::RecordViolation { resource, session: session.clone(), detail: detail.clone() };
            write_down(&app, Command::File(Box::new(command))).await;
        }
    });
}

async fn write_down(app: &App, command: Command) {
    for _ in 0..TRIES {
        let response = app.registrar.submit(command.clone()).await;
        if !matches!(response.reply, Reply::Busy | Reply::Unavailable) {
            return;
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// When each file was last told.
#[derive(Default)]
pub(super) struct ReportedViolations(Mutex<HashMap<Resource, Tick>>);

impl ReportedViolations {
    /// Whether this is to be told.
    pub(super) fn is_new(&self, resource: &Resource, now: Tick) -> bool {
        let mut reported = self.0.lock();
        if reported.len() >= MAX_ENTRIES {
            reported.retain(|_, at| now.since(*at) < DEDUPLICATION_WINDOW);
        }
        let before = reported.get(resource).copied();
        let is_new = before.is_none_or(|before| now.since(before) >= DEDUPLICATION_WINDOW);
        if is_new && reported.len() < MAX_ENTRIES {
            reported.insert(resource.clone(), now);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_violation_is_reported_again_only_after_the_window() {
        let (reported, file) = (ReportedViolations::default(), Resource::parse("FILE:t/a").expect("a name"));
        let at = |seconds: u64| Tick(TickDuration::from_secs(seconds).0);
        assert!(reported.is_new(&file, at(1)));
        assert!(!reported.is_new(&file, at(2)));
        assert!(reported.is_new(&file, at(7)));
    }
}
