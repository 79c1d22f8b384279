//! One file per request about files: what it leads to.

mod acquire;
mod commit;
mod contend;
mod end;
mod force_release;
mod give;
mod hear;
mod rest;
mod resume;

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::{Draft, Grant, Place};
use crate::kernel::event::Event;
use crate::kernel::file::{FILE_LEASE, FileCommand, FileEvent, FileTicket, FileWant, TicketEnd, files};
use crate::kernel::limits::FILES_AT_ONCE;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Resource};
use crate::kernel::state::LeaseEntry;
use crate::kernel::value::{Fence, Nonce};
use crate::kernel::want::Want;
use crate::rules::names::InvalidInput;

pub(super) fn decide(draft: &mut Draft<'_>, command: &FileCommand) -> Result<Answer, Refusal> {
    let answer = match command {
        FileCommand::Hear { session, sign } => hear::hear(draft, session, *sign),
        FileCommand::Acquire(acquire) => acquire::acquire(draft, acquire),
        FileCommand::Commit { sessions, resources } => commit::commit(draft, sessions, resources),
        FileCommand::Rest { session, turn_ended_at, keep } => {
            rest::rest(draft, session, *turn_ended_at, keep)
        }
        FileCommand::End { sessions, end, detail } => end::end(draft, sessions, *end, detail),
        FileCommand::Give { file, to, by } => give::give(draft, file, to, by),
        FileCommand::ForceRelease { resources, by, detail } => {
            force_release::force_release(draft, resources, by, detail)
        }
        FileCommand::Resume { report, file, checked } => resume::resume(draft, *report, file, checked),
        FileCommand::Violate { resource, session, detail } => {
            commit::violate(draft, resource, session.as_ref(), detail)
        }
    };
    answer.map(|answer| Answer::File(Box::new(answer)))
}

impl<'a> Draft<'a> {
    pub(super) fn push_file(&mut self, event: FileEvent) {
        self.push(Event::File(Box::new(event)));
    }

    /// The living lease on a resource, of which a file has one at most that is exclusive.
    pub(super) fn lease_on_file(&self, resource: &Resource) -> Option<&'a LeaseEntry> {
        let slot = self.state.find_resource(resource)?;
        self.state.leases_on(slot).find(|lease| self.lives(lease))
    }

    /// Who is in the way of somebody who may use what `family` has, on one name of a file.
    pub(super) fn in_the_way_of(&self, family: &[Holder], resource: &Resource) -> Vec<Holder> {
        let blockers = self.blockers(resource, Mode::Exclusive, Place::default());
        let foreign = blockers.filter(|blocker| !family.contains(blocker.holder));
        let mut found: Vec<_> = foreign.map(|blocker| blocker.holder.clone()).collect();
        found.dedup();
        found
    }

    /// Grants one name of a file.
    pub(super) fn grant_file(
        &mut self,
        session: &Holder,
        resource: &Resource,
        nonce: Nonce,
        continues: Option<Fence>,
    ) -> Result<Fence, Refusal> {
        let want = Want::new(resource.clone(), Mode::Exclusive, FILE_LEASE, nonce);
        let principal = files();
        self.issue(Grant {
            holder: session,
            principal: &principal,
            want: &want,
            resource,
            key: None,
            ticket: None,
            continues,
            authority: None,
        })
    }

    pub(super) fn close_ticket(&mut self, ticket: &FileTicket, end: TicketEnd) {
        self.push_file(FileEvent::Closed { ticket: ticket.ticket, at: self.now, end });
    }
}

/// Who of these lives by nobody's word but their own, and was not looked at.
fn unchecked(draft: &Draft<'_>, in_the_way: &[Holder], checked: &[Holder]) -> Vec<Holder> {
    let is_session = |holder: &&Holder| draft.state.file_session(holder).is_some();
    let unchecked = in_the_way.iter().filter(is_session).filter(|holder| !checked.contains(holder));
    let mut found: Vec<_> = unchecked.cloned().collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether there is room for that many more leases that last as long as those on files.
fn check_room(draft: &Draft<'_>, leases: usize) -> Result<(), Refusal> {
    if leases == 0 {
        return Ok(());
    }
    draft.check_may_grant()?;
    let has_time = draft.now.checked_add(FILE_LEASE).is_some();
    let has_numbers = draft.fences_left() >= leases as u64;
    if has_time && has_numbers { Ok(()) } else { Err(Refusal::Exhausted) }
}

fn check_count(files: usize) -> Result<(), Refusal> {
    if files <= FILES_AT_ONCE {
        return Ok(());
    }
    let reason = format!("has {files} entries; at most {FILES_AT_ONCE} are allowed; ask in parts");
    Err(InvalidInput::new("files", reason).into())
}

/// Each name once: one file that is named twice is one file.
fn names_of(wants: &[FileWant]) -> Vec<(&Resource, Nonce)> {
    let mut names: Vec<(&Resource, Nonce)> = Vec::new();
    for (resource, nonce) in wants.iter().flat_map(FileWant::names) {
        if !names.iter().any(|(known, _)| *known == resource) {
            names.push((resource, nonce));
        }
    }
    names
}
