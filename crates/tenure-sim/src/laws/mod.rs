//! What must never happen, judged from what is durable and what was answered: a model of its own, as
//! simple as can be, that shares nothing with the kernel but the events.

mod agents;
mod files;
mod sessions;

use std::collections::BTreeMap;

use tenure_core::kernel::{Event, Fence, Holder, Issued, Mode, Queued, Resource, Tick, Ticket, Want};

pub use agents::Agents;
pub use files::Files;
pub use sessions::{ModelSession, Sessions};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

pub type Lawful = Result<(), Violation>;

/// Everything that the ledger says, as plain lists.
#[derive(Debug, Default)]
pub struct Laws {
    leases: BTreeMap<Fence, ModelLease>,
    waits: BTreeMap<Ticket, Queued>,
    ended: BTreeMap<Fence, Tick>,
    last_fence: Fence,
    last_tick: Tick,
    sessions: Sessions,
    agents: Agents,
    files: Files,
}

#[derive(Debug, Clone)]
struct ModelLease {
    resource: Resource,
    holder: Holder,
    mode: Mode,
    expires_at: Tick,
    /// When, in true time, the holder was last given time, and up to which tick from which tick.
    given: Given,
}

#[derive(Debug, Clone, Copy)]
struct Given {
    true_time: u64,
    at: Tick,
}

/// How much a server's clock may be fast, in microseconds per second, and still not end a lease early.
const CLOCK_ALLOWANCE: u64 = 2_500;

impl Laws {
    /// Judges an event that has become durable. `true_time` is when its tick was reached.
    pub fn durable(&mut self, event: &Event, true_time: u64) -> Lawful {
        law(event.at() >= self.last_tick, || format!("time goes back at {event:?}"))?;
        self.last_tick = event.at();
        if let Event::Released { lease, at, .. }
        | Event::Expired { lease, at }
        | Event::Revoked { lease, at, .. } = event
        {
            self.ended.insert(*lease, *at);
        }
        self.files.lease(event)?;
        match event {
            Event::Issued(issued) => self.issued(issued, true_time),
            Event::Renewed { lease, at, expires_at, .. } => {
                let model = self.living(*lease, *at, "renewed")?;
                law(*expires_at > model.expires_at, || format!("{lease:?} is shortened by a renewal"))?;
                model.expires_at = *expires_at;
                model.given = Given { true_time, at: *at };
                Ok(())
            }
            Event::Released { lease, at, .. } | Event::Revoked { lease, at, .. } => {
                self.living(*lease, *at, "ended")?;
                self.leases.remove(lease);
                Ok(())
            }
            Event::Expired { lease, at } => self.expired(*lease, *at, true_time),
            Event::Queued(queued) => {
                law(!self.waits.contains_key(&queued.ticket), || format!("{:?} twice", queued.ticket))?;
                self.waits.insert(queued.ticket, queued.clone());
                Ok(())
            }
            Event::Left { ticket, .. } => {
                let left = self.waits.remove(ticket);
                law(left.is_some(), || format!("{ticket:?} leaves without having come"))
            }
            Event::Intent(event) => self.sessions.step(event),
            Event::Agent(event) => self.agents.step(event, &self.leases),
            // Budgets are judged by the state's own invariants, after every step.
            Event::Work(_) => Ok(()),
            Event::File(event) => self.files.step(event),
            Event::Marked { .. } | Event::Resumed { .. } | Event::Restored { .. } => Ok(()),
        }
    }

    /// Judges a grant that somebody is told of: it must be durable by now.
    pub fn acknowledged(&self, fence: Fence) -> Lawful {
        law(fence <= self.last_fence, || format!("{fence:?} was acknowledged and is not durable"))
    }

    /// When a lease ended, also if nobody was told: a write of which nobody knew may have been the end of it.
    pub fn ended(&self, fence: Fence) -> Option<Tick> {
        self.ended.get(&fence).copied()
    }

    /// Whether nothing is held and nobody waits.
    pub fn is_quiet(&self) -> bool {
        self.leases.is_empty() && self.waits.is_empty() && self.agents.waits().next().is_none()
    }

    /// The live leases: number, resource, holder.
    pub fn live(&self) -> impl Iterator<Item = (Fence, &Resource, &Holder)> {
        self.leases.iter().map(|(fence, lease)| (*fence, &lease.resource, &lease.holder))
    }

    /// The sessions, as the ledger tells of them.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The agents, as the ledger tells of them.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Sessions of coding agents and their files, as the ledger tells of them.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The same, to be told what is known of processes.
    pub fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }

    /// Judges a moment between two batches: sessions and leases agree, and nobody waits for an older one.
    pub fn all_is_in_order(&mut self) -> Lawful {
        self.sessions.agree_with(self.live())?;
        self.files.are_in_order()?;
        self.agents.are_in_order(&self.leases, self.last_tick)
    }

    /// Judges a moment in which nothing is left to do: whoever waits waits for something.
    pub fn nobody_is_left_behind(&self) -> Lawful {
        for waiting in self.waits.values() {
            let free = self.way_to_serve(waiting, &waiting.wants, &mut Vec::new());
            law(!free, || format!("{:?} waits, and what it wants is free", waiting.ticket))?;
        }
        self.agents.none_is_left_behind(&self.leases, self.last_tick)
    }

    /// Whether there is a free resource for each of the wants, none of them `taken`.
    fn way_to_serve<'a>(&self, own: &Queued, wants: &'a [Want], taken: &mut Vec<&'a Resource>) -> bool {
        let Some((want, rest)) = wants.split_first() else { return true };
        want.resources().any(|resource| {
            if taken.contains(&resource) || !self.is_free(own, resource, want.mode) {
                return false;
            }
            taken.push(resource);
            let served = self.way_to_serve(own, rest, taken);
            taken.pop();
            served
        })
    }

    fn is_free(&self, own: &Queued, resource: &Resource, mode: Mode) -> bool {
        let mut leases = self.leases.values().filter(|lease| lease.resource == *resource);
        let mut older = self.waits.range(..own.ticket).flat_map(|(_, waiting)| &waiting.wants);
        leases.all(|lease| lease.mode.goes_with(mode))
            && older.all(|want| want.mode.goes_with(mode) || !names(want, resource))
    }

    fn issued(&mut self, issued: &Issued, true_time: u64) -> Lawful {
        let fence = issued.fence;
        law(fence > self.last_fence, || format!("{fence:?} is used again"))?;
        self.last_fence = fence;
        for (other, lease) in self.leases.iter().filter(|(_, lease)| lease.resource == issued.resource) {
            let together = lease.mode.goes_with(issued.mode);
            law(together, || format!("{fence:?} and {other:?} both hold {}", issued.resource))?;
        }
        for (other, lease) in self.leases.iter().filter(|(_, lease)| lease.holder != issued.holder) {
            let apart = agents::overlap(lease.resource.as_str(), issued.resource.as_str())
                && !agents::together(lease.mode, issued.mode);
            law(!apart, || format!("{fence:?} and {other:?} hold {} in part", issued.resource))?;
        }
        self.agents.was_granted(&issued.holder, issued.ticket, issued.at)?;
        self.order_is_kept(issued)?;
        let given = Given { true_time, at: issued.at };
        let (resource, holder) = (issued.resource.clone(), issued.holder.clone());
        let (mode, expires_at) = (issued.mode, issued.expires_at);
        self.leases.insert(fence, ModelLease { resource, holder, mode, expires_at, given });
        Ok(())
    }

    /// First come, first served, and nobody after its patience.
    fn order_is_kept(&mut self, issued: &Issued) -> Lawful {
        if let Some(own) = issued.ticket.and_then(|ticket| self.waits.remove(&ticket)) {
            let in_time = issued.at < own.until;
            law(in_time, || format!("{:?} is served after its patience", own.ticket))?;
            law(own.holder == issued.holder, || format!("{:?} is served to another", own.ticket))?;
            let wanted =
                own.wants.iter().any(|want| want.mode == issued.mode && names(want, &issued.resource));
            law(wanted, || format!("{:?} is served with what it did not wait for", own.ticket))?;
        }
        if issued.continues.is_some() {
            return Ok(());
        }
        let older =
            self.waits.values().filter(|waiting| issued.ticket.is_none_or(|own| waiting.ticket < own));
        for waiting in older.filter(|waiting| issued.at < waiting.until) {
            let overtaken = waiting
                .wants
                .iter()
                .any(|want| names(want, &issued.resource) && !want.mode.goes_with(issued.mode));
            law(!overtaken, || format!("{:?} overtakes {:?}", issued.fence, waiting.ticket))?;
        }
        Ok(())
    }

    fn expired(&mut self, lease: Fence, at: Tick, true_time: u64) -> Lawful {
        let model = self.leases.remove(&lease);
        let model = model.ok_or_else(|| Violation(format!("{lease:?} expires and does not live")))?;
        law(at >= model.expires_at, || format!("{lease:?} expires early by its tick"))?;
        let promised = model.expires_at.since(model.given.at).0;
        let lived = true_time.saturating_sub(model.given.true_time);
        // A tick is a whole microsecond: two roundings.
        let enough = lived + 2 + promised * CLOCK_ALLOWANCE / 1_000_000 >= promised;
        law(enough, || format!("{lease:?} was promised {promised} µs and lived {lived} µs of true time"))
    }

    fn living(&mut self, lease: Fence, at: Tick, what: &str) -> Result<&mut ModelLease, Violation> {
        let model = self.leases.get_mut(&lease);
        let model = model.ok_or_else(|| Violation(format!("{lease:?} is {what} and does not live")))?;
        law(at < model.expires_at, || format!("{lease:?} is {what} at {at:?}, when it is over"))?;
        Ok(model)
    }
}

fn names(want: &Want, resource: &Resource) -> bool {
    want.resources().any(|other| other == resource)
}

pub fn law(holds: bool, otherwise: impl FnOnce() -> String) -> Lawful {
    if holds { Ok(()) } else { Err(Violation(otherwise())) }
}
