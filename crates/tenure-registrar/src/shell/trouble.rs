//! What goes wrong without ending anything: said once, for people to look at.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// Nearly always no: then nothing is locked.
    is_there: AtomicBool,
    text: Mutex<Option<String>>,
}

impl Trouble {
    pub(crate) fn set(&self, text: Option<String>) {
        self.is_there.store(text.is_some(), Ordering::Release);
        *self.text.lock() = text;
    }

    pub(crate) fn clear(&self) {
        if self.is_there.load(Ordering::Acquire) {
            self.set(None);
        }
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.text.lock().clone()
    }
}

/// What happened, and everything that led to it, in one line.
pub(crate) fn describe(what: &str, error: &dyn Error) -> String {
    let mut text = format!("{what}: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, ": {error}").expect("writing into a string");
        source = error.source();
    }
    text
}
