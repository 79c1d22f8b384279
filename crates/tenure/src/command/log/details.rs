//! What an event says, for people.

use tenure_core::kernel::{Event, Fence, Resource, Want};
use tenure_ledger::signing::KeyEntry;

use super::Entry;
use crate::output::{in_words, time_of, time_of_wall};

impl Entry<'_> {
    /// Lease, resource and holder where the event has them, and what else it says.
    pub(super) fn details(&self) -> String {
        match (&self.event, &self.key) {
            (Some(event), _) => self.details_of(event),
            (None, Some(KeyEntry::Added(added))) => {
                format!("key {} signed by {}", added.key_id, added.signed_by)
            }
            (None, Some(KeyEntry::Retired(retired))) => {
                format!("key {} signed by {}", retired.key_id, retired.signed_by)
            }
            (None, None) => format!("by {}", self.record.actor_id),
        }
    }

    fn details_of(&self, event: &Event) -> String {
        let id = |fence: &Fence| self.tag.lease_id(*fence);
        let time = |tick| time_of(self.anchor, tick);
        match event {
            Event::Issued(issued) => {
                let from =
                    issued.continues.map_or_else(String::new, |lease| format!(" continues {}", id(&lease)));
                let (length, mode) = (in_words(issued.ttl.as_millis()), issued.mode.as_str());
                let (resource, holder) = (&issued.resource, &issued.holder);
                format!("{}  {resource}  {holder}  {mode} for {length}{from}", id(&issued.fence))
            }
            Event::Renewed { lease, expires_at, ttl, .. } => {
                format!("{}  for {}, until {}", id(lease), in_words(ttl.as_millis()), time(*expires_at))
            }
            Event::Released { lease, by, reason, .. } => format!("{}  {by}  {reason}", id(lease)),
            Event::Expired { lease, .. } => id(lease),
            Event::Revoked { lease, cause, by, detail, .. } => {
                format!("{}  {} by {by}: {detail}", id(lease), cause.as_str())
            }
            Event::Queued(queued) => {
                let any_of =
                    |want: &Want| want.resources().map(Resource::as_str).collect::<Vec<_>>().join(" or ");
                let wants: Vec<_> = queued.wants.iter().map(any_of).collect();
                let (ticket, holder) = (queued.ticket.0, &queued.holder);
                format!("ticket {ticket}  {}  {holder}  until {}", wants.join(", "), time(queued.until))
            }
            Event::Left { ticket, end, .. } => format!("ticket {}  {}", ticket.0, end.as_str()),
            Event::Intent(event) => super::intent::details_of(event),
            Event::Agent(event) => super::agent::details_of(event, self.tag, time),
            Event::Work(event) => super::work::details_of(event, self.tag),
            Event::File(event) => super::file::details_of(event, time),
            Event::Marked { reading, .. } => {
                format!("clock {} at {} us", reading.clock, reading.microseconds)
            }
            Event::Resumed { reading, wall_clock, .. } => {
                let wall = time_of_wall(*wall_clock);
                format!("clock {} at {} us, wall clock {wall}", reading.clock, reading.microseconds)
            }
            Event::Restored { epoch, fence, hold_until, .. } => {
                let until = time(*hold_until);
                format!("epoch {epoch}, fences after {}, nothing granted before {until}", fence.0)
            }
        }
    }
}
