//! Whose each file was last: who gets it back has missed nothing.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{Fence, FileSession, Resource, Tick};

use super::observer::FileListener;
use crate::app::App;

/// The most that is remembered. What is forgotten counts as somebody else's.
const MOST: usize = 100_000;

/// The process whose lease on a file ended last, since the server started.
#[derive(Default)]
pub(super) struct Lasts(Mutex<HashMap<Resource, Arc<str>>>);

impl Lasts {
    fn is(&self, resource: &Resource, process: &str) -> bool {
        let lasts = self.0.lock();
        lasts.get(resource).is_some_and(|last| **last == *process)
    }
}

impl FileListener for Lasts {
    fn lease_ended(&self, resource: &Resource, session: &FileSession, _: Tick) {
        let mut lasts = self.0.lock();
        if lasts.len() >= MOST {
            lasts.clear();
        }
        lasts.insert(resource.clone(), session.process.clone());
    }
}

/// Whether somebody else than this process may have changed what these new leases are on, before they were there.
pub(super) fn others_could(app: &App, leases: &[Fence], process: &str) -> bool {
    app.registrar.read(|state| {
        let is_its = |lease: &Fence| {
            state.lease(*lease).is_some_and(|lease| app.files.lasts.is(lease.resource, process))
        };
        !leases.iter().all(is_its)
    })
}
