//! Decides the commands of file sessions.

mod acquire;
mod contend;
mod end;
mod hear;

use std::collections::BTreeSet;

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::{Draft, Grant, Place};
use crate::kernel::event::Event;
use crate::kernel::file::{FILE_LEASE, FileCommand, FileEvent, FileTicket, FileWant, TicketEnd, files};
use crate::kernel::limits::{FILE_BYTES_AT_ONCE, FILE_NAMES_AT_ONCE, FILES_AT_ONCE};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Resource};
use crate::kernel::state::LeaseEntry;
use crate::kernel::value::{Fence, Nonce};
use crate::kernel::want::Want;
use crate::rules::names::InvalidInput;
use crate::rules::overlap::Reach;

pub(super) fn decide(draft: &mut Draft<'_>, command: &FileCommand) -> Result<Answer, Refusal> {
    let answer = match command {
        FileCommand::Hear { session, sign } => hear::hear(draft, session, *sign),
        FileCommand::Acquire(acquire) => acquire::acquire(draft, acquire),
        FileCommand::Commit { sessions, resources } => end::commit(draft, sessions, resources),
        FileCommand::Rest { session, turn_ended_at, keep } => end::rest(draft, session, *turn_ended_at, keep),
        FileCommand::End { sessions, end, detail } => end::end(draft, sessions, *end, detail),
        FileCommand::Adopt { from, to } => end::adopt(draft, from, to),
        FileCommand::Give { file, to, by } => end::give(draft, file, to, by),
        FileCommand::ForceRelease { resources, by, detail } => {
            end::force_release(draft, resources, by, detail)
        }
        FileCommand::Resume { report, file, checked } => end::resume(draft, *report, file, checked),
        FileCommand::Violate { resource, session, detail } => {
            end::violate(draft, resource, session.as_ref(), detail)
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

    /// Who is in the way of somebody who may use what `family` has, on one name of a file. What the family has it may use,
    /// whoever waits for that.
    pub(in crate::kernel) fn in_the_way_of(&self, family: &[Holder], resource: &Resource) -> Vec<Holder> {
        let owner = self.lease_on_file(resource).map(|lease| self.state.holder_name(lease.holder));
        if owner.is_some_and(|owner| family.contains(owner)) {
            return Vec::new();
        }
        let blockers = self.blockers(resource, Mode::Exclusive, Place::default());
        let foreign = blockers.filter(|blocker| !family.contains(blocker.holder));
        let mut found: Vec<_> = foreign.map(|blocker| blocker.holder.clone()).collect();
        found.dedup();
        found
    }

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

    /// Ends the tickets that a session has for these names, of which each is there once.
    pub(super) fn close_tickets_for<'n>(
        &mut self,
        session: &Holder,
        names: impl IntoIterator<Item = &'n Resource>,
        end: TicketEnd,
    ) {
        let state = self.state;
        for ticket in names.into_iter().filter_map(|name| state.file_ticket_for(session, name)) {
            self.close_ticket(ticket, end);
        }
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

/// Whether there is room for that many more leases that last as long as those on files. After a restore, that one still lives
/// is not said either.
fn check_room(draft: &Draft<'_>, leases: usize) -> Result<(), Refusal> {
    if leases == 0 {
        return draft.check_is_not_held_back();
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

/// Whether each name means one thing, and whether there are not too many of them.
fn check_files(files: &[FileWant]) -> Result<(), Refusal> {
    check_count(files.len())?;
    let names = || files.iter().flat_map(|file| std::iter::once(&file.resource).chain(&file.aliases));
    let bytes: usize = names().map(|name| name.as_str().len()).sum();
    if names().count() > FILE_NAMES_AT_ONCE || bytes > FILE_BYTES_AT_ONCE {
        let reason = format!(
            "has more than {FILE_NAMES_AT_ONCE} names, or than {FILE_BYTES_AT_ONCE} bytes of them; ask in parts"
        );
        return Err(InvalidInput::new("files", reason).into());
    }
    // A family may not have a folder and what is below it in different hands, so nobody has a folder.
    if names().any(|name| matches!(Reach::of(name.as_str()), Reach::Below(_))) {
        let reason = "has a folder or a pattern for a name; name each file";
        return Err(InvalidInput::new("files", reason).into());
    }
    Ok(())
}

/// Each name once: one file that is named twice is one file.
fn names_of(wants: &[FileWant]) -> Vec<(&Resource, Nonce)> {
    let mut known = BTreeSet::new();
    wants.iter().flat_map(FileWant::names).filter(|(resource, _)| known.insert(*resource)).collect()
}
