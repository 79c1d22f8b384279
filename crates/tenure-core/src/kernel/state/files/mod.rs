//! Which sessions live, who wants a file of theirs, who was blocked, and what was left behind.

mod apply;
mod invariants;

use std::collections::{BTreeMap, BTreeSet};

use super::KernelState;
use crate::kernel::file::{FileSession, RetryTicket, UncommittedFile};
use crate::kernel::limits::{MAX_BLOCKED_REPORTS, MAX_UNCOMMITTED_FILES};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::newtypes::{Fence, Tick, Ticket};

/// Everything that is known of files, beside their leases.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileStore {
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
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    pub(super) fn insert_session(&mut self, session: FileSession) {
        if let Some(parent) = &session.parent {
            self.children.entry(parent.clone()).or_default().insert(session.id.clone());
        }
        self.sessions.insert(session.id.clone(), session);
    }

    pub(super) fn insert_ticket(&mut self, ticket: RetryTicket) {
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
    pub(super) fn record_uncommitted(&mut self, resource: Resource, uncommitted: UncommittedFile) {
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
    pub(super) fn uncommitted_oldest_first(&self) -> impl Iterator<Item = (&Resource, &UncommittedFile)> {
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

    pub(crate) fn retry_ticket_for(&self, session: &Holder, resource: &Resource) -> Option<&RetryTicket> {
        let ticket = self.files.by_request.get(session)?.get(resource)?;
        self.files.tickets.get(ticket)
    }

    /// The open tickets of a session, by their files.
    pub(crate) fn retry_tickets_of(&self, session: &Holder) -> impl Iterator<Item = &RetryTicket> {
        let own = self.files.by_request.get(session).into_iter().flat_map(BTreeMap::values);
        own.filter_map(|ticket| self.files.tickets.get(ticket))
    }

    /// The sessions below one, parents before their children.
    pub(crate) fn file_session_descendants(&self, session: &Holder) -> Vec<Holder> {
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
    pub(crate) fn file_session_ancestors(&self, session: &Holder) -> Vec<Holder> {
        let parent = |id: &Holder| self.file_session(id).and_then(|session| session.parent.clone());
        std::iter::successors(parent(session), parent).collect()
    }
}
