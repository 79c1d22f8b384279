//! Which sessions live, who wants a file of theirs, who was blocked, and what was left behind.

mod apply;
mod invariants;

use std::collections::{BTreeMap, BTreeSet};

use super::State;
use crate::kernel::file::{FileSession, FileTicket, LeftFile};
use crate::kernel::limits::{FILE_REPORTS_KEPT, LEFT_FILES_KEPT};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::value::{Fence, Tick, Ticket};

/// Everything that is known of files, beside their leases.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    sessions: BTreeMap<Holder, FileSession>,
    /// Who is a subagent of whom: parent, then child.
    children: BTreeMap<Holder, BTreeSet<Holder>>,
    /// Those that go on.
    tickets: BTreeMap<Ticket, FileTicket>,
    /// By who wants what: there is one for a session and a file.
    by_want: BTreeMap<Holder, BTreeMap<Resource, Ticket>>,
    /// Those that were blocked and came to an end: the last of them.
    reports: BTreeMap<Ticket, FileTicket>,
    left: BTreeMap<Resource, (u64, LeftFile)>,
    /// By when they were left: the oldest go first.
    left_order: BTreeMap<u64, Resource>,
    lefts: u64,
}

impl Files {
    pub(super) fn enter_session(&mut self, session: FileSession) {
        if let Some(parent) = &session.parent {
            self.children.entry(parent.clone()).or_default().insert(session.id.clone());
        }
        self.sessions.insert(session.id.clone(), session);
    }

    pub(super) fn enter_ticket(&mut self, ticket: FileTicket) {
        if ticket.end.is_some() {
            self.reports.insert(ticket.ticket, ticket);
            if self.reports.len() > FILE_REPORTS_KEPT {
                self.reports.pop_first();
            }
            return;
        }
        let own = self.by_want.entry(ticket.session.clone()).or_default();
        own.insert(ticket.want.resource.clone(), ticket.ticket);
        self.tickets.insert(ticket.ticket, ticket);
    }

    /// Notes that a file was let go of without a commit.
    pub(super) fn leave(&mut self, resource: Resource, left: LeftFile) {
        self.forget_left(&resource);
        self.lefts += 1;
        self.left_order.insert(self.lefts, resource.clone());
        self.left.insert(resource, (self.lefts, left));
        if self.left.len() > LEFT_FILES_KEPT
            && let Some((_, oldest)) = self.left_order.pop_first()
        {
            self.left.remove(&oldest);
        }
    }

    fn forget_left(&mut self, resource: &Resource) {
        if let Some((number, _)) = self.left.remove(resource) {
            self.left_order.remove(&number);
        }
    }

    /// What was left behind, the oldest first.
    pub(super) fn left_in_order(&self) -> impl Iterator<Item = (&Resource, &LeftFile)> {
        self.left_order.values().filter_map(|resource| Some((resource, &self.left.get(resource)?.1)))
    }
}

impl State {
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
    pub fn file_tickets(&self) -> impl Iterator<Item = &FileTicket> {
        self.files.tickets.values()
    }

    /// A ticket that goes on, or the report of one that was blocked and came to an end not long ago.
    pub fn file_ticket(&self, ticket: Ticket) -> Option<&FileTicket> {
        self.files.tickets.get(&ticket).or_else(|| self.files.reports.get(&ticket))
    }

    /// Everybody who was blocked, the oldest first: those who still are, and the last of the others.
    pub fn file_reports(&self) -> impl Iterator<Item = &FileTicket> {
        let open = self.files.tickets.values().filter(|ticket| ticket.blocked.is_some());
        let mut all: Vec<_> = self.files.reports.values().chain(open).collect();
        all.sort_unstable_by_key(|ticket| ticket.ticket);
        all.into_iter()
    }

    /// Who let go of a file without a commit, last.
    pub fn left_file(&self, resource: &Resource) -> Option<&LeftFile> {
        self.files.left.get(resource).map(|(_, left)| left)
    }

    /// Who holds a file: the lease, since when, and whose it is. At most one does.
    pub fn file_lease(&self, resource: &Resource) -> Option<(Fence, Tick, &Holder)> {
        let lease = self.leases_on(self.find_resource(resource)?).next()?;
        Some((lease.fence, lease.terms.issued_at, self.holder_name(lease.holder)))
    }

    pub(crate) fn file_ticket_for(&self, session: &Holder, resource: &Resource) -> Option<&FileTicket> {
        let ticket = self.files.by_want.get(session)?.get(resource)?;
        self.files.tickets.get(ticket)
    }

    /// The open tickets of a session, by their files.
    pub(crate) fn file_tickets_of(&self, session: &Holder) -> impl Iterator<Item = &FileTicket> {
        let own = self.files.by_want.get(session).into_iter().flat_map(BTreeMap::values);
        own.filter_map(|ticket| self.files.tickets.get(ticket))
    }

    /// The sessions below one, parents before their children.
    pub(crate) fn file_family_below(&self, session: &Holder) -> Vec<Holder> {
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
    pub(crate) fn file_family_above(&self, session: &Holder) -> Vec<Holder> {
        let parent = |id: &Holder| self.file_session(id).and_then(|session| session.parent.clone());
        std::iter::successors(parent(session), parent).collect()
    }
}
