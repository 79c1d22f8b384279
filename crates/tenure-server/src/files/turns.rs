//! Who asks for files and who lets go of them take turns, for each owner's process: what is let go of because it is not open must
//! not be opened in between.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::RwLock;

/// Those who ask share a turn; whoever lets go has one alone.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<Arc<str>, Arc<RwLock<()>>>>);

impl Turns {
    pub(super) fn of(&self, process: &Arc<str>) -> Arc<RwLock<()>> {
        self.0.lock().entry(process.clone()).or_default().clone()
    }

    pub(super) fn forget(&self, process: &str) {
        self.0.lock().remove(process);
    }
}
