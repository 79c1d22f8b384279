//! What people see while they wait for a lease: one line on a terminal, a plain line now and then anywhere else.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tenure_api::Lease;
use tenure_client::Place;

use crate::duration::{milliseconds, short};
use crate::message::{Progress, tell};

/// How often a log hears that somebody still waits.
const PLAIN_EVERY: Duration = Duration::from_secs(60);

/// The line, if there is anybody to show it to. It is removed when this is dropped.
#[derive(Debug)]
pub struct Waiting(Option<Arc<Mutex<Option<Shown>>>>);

#[derive(Debug)]
enum Shown {
    Line(Progress),
    /// How long it had waited when it last said so.
    Plain(Option<Duration>),
}

impl Waiting {
    pub fn new(is_quiet: bool) -> Self {
        let shown = || {
            if std::io::stderr().is_terminal() { Shown::Line(Progress::new()) } else { Shown::Plain(None) }
        };
        Self((!is_quiet).then(|| Arc::new(Mutex::new(Some(shown())))))
    }

    /// Shows a place in the queue, from wherever it becomes known.
    pub fn teller(&self) -> Option<impl FnMut(Place) + Send + 'static> {
        let shared = self.0.clone()?;
        Some(move |place: Place| {
            if let Some(shown) = shared.lock().as_mut() {
                shown.show(&place);
            }
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            *shared.lock() = None;
        }
    }
}

impl Shown {
    fn show(&mut self, place: &Place) {
        let text = in_words(place, Timestamp::now());
        match self {
            Shown::Line(progress) => progress.show(&text),
            Shown::Plain(last) => {
                if last.is_none_or(|last| place.waited >= last + PLAIN_EVERY) {
                    *last = Some(place.waited);
                    tell(&format!("tenure: {text}\n"));
                }
            }
        }
    }
}

fn in_words(place: &Place, now: Timestamp) -> String {
    let Place { resource, position, waiting, held, waited, .. } = place;
    let holders = match &held[..] {
        [] => "about to be free".to_owned(),
        [lease] => format!("held by {}{}", lease.holder, since(lease, now)),
        [lease, others @ ..] => format!("held by {} and {} more", lease.holder, others.len()),
    };
    let waited = short(milliseconds(*waited));
    format!("waiting for {resource}: place {position} of {waiting}, {holders}, waited {waited}")
}

/// For how long somebody has held it, if the clocks of both machines agree enough to say.
fn since(lease: &Lease, now: Timestamp) -> String {
    let acquired: Option<Timestamp> = lease.acquired_at.parse().ok();
    let held = acquired.and_then(|acquired| u64::try_from(now.duration_since(acquired).as_millis()).ok());
    held.map_or_else(String::new, |held| format!(" for {}", short(held)))
}
