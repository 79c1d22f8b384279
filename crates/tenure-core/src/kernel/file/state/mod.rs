//! State of the files API: sessions, retry tickets, reports of blocked sessions, and uncommitted files.

mod apply;

use std::collections::{BTreeMap, BTreeSet};

use crate::kernel::file::{FILES_PRINCIPAL, FileSession, RetryTicket, UncommittedFile};
use crate::kernel::state::{KernelState, ensure};
use crate::value::{
    Fence, Holder, LeaseMode, MAX_BLOCKED_REPORTS, MAX_UNCOMMITTED_FILES, Resource, Tick, Ticket,
};

/// Everything that is known of files, beside their leases.
#[derive(Debug, Clone, Default)]
pub(in crate::kernel) struct FileStore {
    sessions: BTreeMap<Holder, FileSession>,
    /// Who is a subagent of whom: parent, then child.
    children: BTreeMap<Holder, BTreeSet<Holder>>,
    /// Those that go on.
    tickets: BTreeMap<Ticket, RetryTicket>,
    /// By who wants what: there is one for a session and a file.
    by_request: BTreeMap<Holder, BTreeMap<Resource, Ticket>>,
    /// Those that were blocked and came to an end: the last of them.
    reports: BTreeMap<Ticket, RetryTicket>,
    uncommitted: BTreeMap<Resource, (u64, UncommittedFile)>,
    /// By when they were left: the oldest go first.
    uncommitted_order: BTreeMap<u64, Resource>,
    last_uncommitted_number: u64,
}

impl FileStore {
    /// Whether there is no session. Only sessions hold files or wait for them.
    pub(in crate::kernel) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// How many tickets go on.
    pub(in crate::kernel) fn ticket_count(&self) -> usize {
        self.tickets.len()
    }

    pub(in crate::kernel) fn insert_session(&mut self, session: FileSession) {
        if let Some(parent) = &session.parent {
            self.children.entry(parent.clone()).or_default().insert(session.id.clone());
        }
        self.sessions.insert(session.id.clone(), session);
    }

    pub(in crate::kernel) fn insert_ticket(&mut self, ticket: RetryTicket) {
        if ticket.end.is_some() {
            self.reports.insert(ticket.ticket, ticket);
            if self.reports.len() > MAX_BLOCKED_REPORTS {
                self.reports.pop_first();
            }
            return;
        }
        let own = self.by_request.entry(ticket.session.clone()).or_default();
        own.insert(ticket.request.resource.clone(), ticket.ticket);
        self.tickets.insert(ticket.ticket, ticket);
    }

    /// Notes that a file was let go of without a commit.
    pub(in crate::kernel) fn record_uncommitted(&mut self, resource: Resource, uncommitted: UncommittedFile) {
        self.remove_uncommitted(&resource);
        self.last_uncommitted_number += 1;
        self.uncommitted_order.insert(self.last_uncommitted_number, resource.clone());
        self.uncommitted.insert(resource, (self.last_uncommitted_number, uncommitted));
        if self.uncommitted.len() > MAX_UNCOMMITTED_FILES
            && let Some((_, oldest)) = self.uncommitted_order.pop_first()
        {
            self.uncommitted.remove(&oldest);
        }
    }

    fn remove_uncommitted(&mut self, resource: &Resource) {
        if let Some((number, _)) = self.uncommitted.remove(resource) {
            self.uncommitted_order.remove(&number);
        }
    }

    /// What was left behind, the oldest first.
    pub(in crate::kernel) fn uncommitted_oldest_first(
        &self,
    ) -> impl Iterator<Item = (&Resource, &UncommittedFile)> {
        self.uncommitted_order
            .values()
            .filter_map(|resource| Some((resource, &self.uncommitted.get(resource)?.1)))
    }
}

impl KernelState {
    pub fn file_session(&self, id: &Holder) -> Option<&FileSession> {
        self.files.sessions.get(id)
    }

    pub fn file_session_count(&self) -> usize {
        self.files.sessions.len()
    }

    /// Every session of a coding agent that lives, by its name.
    pub fn file_sessions(&self) -> impl Iterator<Item = &FileSession> {
        self.files.sessions.values()
    }

    /// The tickets that go on, the oldest first.
    pub fn retry_tickets(&self) -> impl Iterator<Item = &RetryTicket> {
        self.files.tickets.values()
    }

    /// A ticket that goes on, or the report of one that was blocked and came to an end not long ago.
    pub fn retry_ticket(&self, ticket: Ticket) -> Option<&RetryTicket> {
        self.files.tickets.get(&ticket).or_else(|| self.files.reports.get(&ticket))
    }

    /// Everybody who was blocked, the oldest first: those who still are, and the last of the others.
    pub fn blocked_reports(&self) -> impl Iterator<Item = &RetryTicket> {
        let open = self.files.tickets.values().filter(|ticket| ticket.blocked.is_some());
        let mut all: Vec<_> = self.files.reports.values().chain(open).collect();
        all.sort_unstable_by_key(|ticket| ticket.ticket);
        all.into_iter()
    }

    /// Who let go of a file without a commit, last.
    pub fn uncommitted_file(&self, resource: &Resource) -> Option<&UncommittedFile> {
        self.files.uncommitted.get(resource).map(|(_, uncommitted)| uncommitted)
    }

    /// Who holds a file: the lease, since when, and whose it is. At most one does.
    pub fn file_lease(&self, resource: &Resource) -> Option<(Fence, Tick, &Holder)> {
        let lease = self.leases_on(self.find_resource(resource)?).next()?;
        Some((lease.fence, lease.terms.issued_at, self.holder_name(lease.holder)))
    }

    pub(in crate::kernel) fn retry_ticket_for(
        &self,
        session: &Holder,
        resource: &Resource,
    ) -> Option<&RetryTicket> {
        let ticket = self.files.by_request.get(session)?.get(resource)?;
        self.files.tickets.get(ticket)
    }

    /// The open tickets of a session, by their files.
    pub(in crate::kernel) fn retry_tickets_of(&self, session: &Holder) -> impl Iterator<Item = &RetryTicket> {
        let own = self.files.by_request.get(session).into_iter().flat_map(BTreeMap::values);
        own.filter_map(|ticket| self.files.tickets.get(ticket))
    }

    /// The sessions below one, parents before their children.
    pub(in crate::kernel) fn file_session_descendants(&self, session: &Holder) -> Vec<Holder> {
        let mut found = vec![session.clone()];
        let mut next = 0;
        while let Some(parent) = found.get(next).cloned() {
            found.extend(self.files.children.get(&parent).into_iter().flatten().cloned());
            next += 1;
        }
        found.remove(0);
        found
    }

    /// The sessions above one, nearest first.
    pub(in crate::kernel) fn file_session_ancestors(&self, session: &Holder) -> Vec<Holder> {
        let parent = |id: &Holder| self.file_session(id).and_then(|session| session.parent.clone());
        std::iter::successors(parent(session), parent).collect()
    }
}

impl KernelState {
    /// Files are held by sessions that live, by one each; who wants one has one ticket for it; and whoever is above a session
    /// lives as well.
    pub(in crate::kernel) fn invariant_files_are_held_by_active_sessions(&self) -> Result<(), String> {
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
