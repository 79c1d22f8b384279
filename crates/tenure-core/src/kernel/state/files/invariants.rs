//! What must hold about files after every event.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernel::file::FILES_PRINCIPAL;
use crate::kernel::mode::LeaseMode;
use crate::kernel::state::{KernelState, ensure};

impl KernelState {
    /// Files are held by sessions that live, by one each; who wants one has one ticket for it; and whoever is above a session
    /// lives as well.
    pub(in crate::kernel::state) fn invariant_files_are_held_by_active_sessions(&self) -> Result<(), String> {
        let files = &self.files;
        for (slot, holder) in self.holders.iter() {
            let is_ours = self.principal_of(slot).1.as_str() == FILES_PRINCIPAL;
            let is_session = files.sessions.contains_key(&holder.name);
            let leases: Vec<_> = self.leases_of(slot).collect();
            if is_ours && !is_session {
                ensure(leases.is_empty(), || format!("{} is over and holds files", holder.name))?;
            }
            if is_session && !leases.is_empty() {
                ensure(is_ours, || format!("{} holds files in another name", holder.name))?;
                let exclusive = leases.iter().all(|lease| lease.terms.mode == LeaseMode::Exclusive);
                ensure(exclusive, || format!("{} shares a file", holder.name))?;
            }
            let is_queued = self.queue_entries_of(slot).next().is_some();
            ensure(!(is_session && is_queued), || format!("{} waits in the plain line", holder.name))?;
        }
        for session in files.sessions.values() {
            let Some(parent) = &session.parent else { continue };
            ensure(files.sessions.contains_key(parent), || format!("{} has no parent", session.id))?;
            let noted = files.children.get(parent).is_some_and(|own| own.contains(&session.id));
            ensure(noted, || format!("{} is not among the children of its parent", session.id))?;
        }
        let children = files.sessions.values().filter(|session| session.parent.is_some()).count();
        let noted: usize = files.children.values().map(BTreeSet::len).sum();
        ensure(noted == children, || "there are children that are none".into())?;
        // Whoever is above itself is found from nobody who has no parent.
        let first = files.sessions.values().filter(|session| session.parent.is_none());
        let found: usize = first.map(|session| 1 + self.file_session_descendants(&session.id).len()).sum();
        ensure(found == files.sessions.len(), || "a session is above itself".into())?;
        for id in files.sessions.keys() {
            let is_shared = self.agent(id).is_some() || self.intent_session(id).is_some();
            ensure(!is_shared, || format!("{id} is somebody of another kind, too"))?;
        }
        let requested: usize = files.by_request.values().map(BTreeMap::len).sum();
        ensure(requested == files.tickets.len(), || "tickets and wants differ in count".into())?;
        let empty = files.by_request.values().any(BTreeMap::is_empty)
            || files.children.values().any(BTreeSet::is_empty);
        ensure(!empty, || "a list of nothing is kept".into())?;
        let twice = files.reports.keys().any(|ticket| files.tickets.contains_key(ticket));
        ensure(!twice, || "a ticket goes on and is over".into())?;
        for ticket in files.tickets.values() {
            let found = self.retry_ticket_for(&ticket.session, &ticket.request.resource);
            let wrong = || format!("ticket {} is not found by what it is for", ticket.ticket.0);
            ensure(found.is_some_and(|found| found.ticket == ticket.ticket), wrong)?;
            let is_active = files.sessions.contains_key(&ticket.session);
            ensure(is_active && ticket.end.is_none(), || format!("ticket {} is nobody's", ticket.ticket.0))?;
        }
        let reported = files.reports.values().all(|report| report.blocked.is_some() && report.end.is_some());
        ensure(reported, || "a report tells of nobody who was blocked".into())?;
        ensure(files.uncommitted.len() == files.uncommitted_order.len(), || {
            "what was left is counted wrongly".into()
        })
    }
}
