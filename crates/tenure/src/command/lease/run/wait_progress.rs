//! What people see while they wait for a lease: one line on a terminal, a plain line now and then anywhere else.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tenure_api::Lease;
use tenure_client::QueuePosition;
use tenure_host::stderr::print_stderr;

use crate::duration::{format_short, milliseconds};
use crate::terminal_message::ProgressLine;

/// How often a log hears that somebody still waits.
const PLAIN_INTERVAL: Duration = Duration::from_secs(60);

/// The line, if there is anybody to show it to. It is removed when this is dropped.
#[derive(Debug)]
pub struct WaitProgress(Option<Arc<Mutex<Option<ProgressOutput>>>>);

#[derive(Debug)]
enum ProgressOutput {
    Line(ProgressLine),
    /// How long it had waited when it last said so.
    Plain(Option<Duration>),
}

impl WaitProgress {
    pub fn new(is_silent: bool) -> Self {
        let shown = || {
            if std::io::stderr().is_terminal() {
                ProgressOutput::Line(ProgressLine::new())
            } else {
                ProgressOutput::Plain(None)
            }
        };
        Self((!is_silent).then(|| Arc::new(Mutex::new(Some(shown())))))
    }

    /// Shows a place in the queue, from wherever it becomes known.
    pub fn queue_callback(&self) -> Option<impl FnMut(QueuePosition) + Send + 'static> {
        let shared = self.0.clone()?;
        Some(move |place: QueuePosition| {
            if let Some(shown) = shared.lock().as_mut() {
                shown.show(&place);
            }
        })
    }
}

impl Drop for WaitProgress {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            *shared.lock() = None;
        }
    }
}

impl ProgressOutput {
    fn show(&mut self, place: &QueuePosition) {
        let text = in_words(place, Timestamp::now());
        match self {
            ProgressOutput::Line(progress) => progress.show(&text),
            ProgressOutput::Plain(last) => {
                if last.is_none_or(|last| place.waited >= last + PLAIN_INTERVAL) {
                    *last = Some(place.waited);
                    print_stderr(&format!("tenure: {text}\n"));
                }
            }
        }
    }
}

fn in_words(place: &QueuePosition, now: Timestamp) -> String {
    let QueuePosition { resource, position, waiting, held, waited, .. } = place;
    let holders = match &held[..] {
        [] => "about to be free".to_owned(),
        [lease] => format!("held by {}{}", lease.holder, since(lease, now)),
        [lease, additional @ ..] => format!("held by {} and {} more", lease.holder, additional.len()),
    };
    let waited = format_short(milliseconds(*waited));
    format!("waiting for {resource}: place {position} of {waiting}, {holders}, waited {waited}")
}

/// For how long somebody has held it, if the clocks of both machines agree enough to say.
fn since(lease: &Lease, now: Timestamp) -> String {
    let acquired: Option<Timestamp> = lease.acquired_at.parse().ok();
    let held = acquired.and_then(|acquired| u64::try_from(now.duration_since(acquired).as_millis()).ok());
    held.map_or_else(String::new, |held| format!(" for {}", format_short(held)))
}
