//! What must never happen among agents: no two hold what does not go together, nobody waits for an older one or in a circle,
//! every wait ends, and an age stands for as long as its attempt.
//!
//! Which resources overlap and which modes go together is said here once more, so that a mistake in the kernel's tables is
//! not repeated by those who judge it.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{
    AgentEvent, Fence, Holder, Mode, Pending, PendingEnd, Phase, Rank, Resource, Tick, Ticket,
};

use super::{Lawful, ModelLease, law};

/// The agents as the ledger tells of them.
#[derive(Debug, Default)]
pub struct Agents {
    ages: BTreeMap<Holder, u64>,
    waits: BTreeMap<Ticket, Pending>,
    /// Those who died and have neither come back nor given up.
    dead: BTreeSet<Holder>,
    /// Leases that have to be over when this batch is.
    doomed: BTreeSet<Fence>,
}

type Leases = BTreeMap<Fence, ModelLease>;

impl Agents {
    pub fn waits(&self) -> impl Iterator<Item = &Pending> {
        self.waits.values()
    }

    /// Judges what happened to an agent.
    pub(super) fn step(&mut self, event: &AgentEvent, leases: &Leases) -> Lawful {
        match event {
            AgentEvent::Began { rank, at, .. } => self.began(rank, *at, leases),
            AgentEvent::Waits(pending) => {
                let known = self.waits.contains_key(&pending.ticket);
                law(!known, || format!("{:?} twice", pending.ticket))?;
                let age = self.ages.get(&pending.rank.agent);
                law(age == Some(&pending.rank.priority), || {
                    format!("{:?} waits with another age than it has", pending.rank)
                })?;
                self.waits.insert(pending.ticket, pending.clone());
                Ok(())
            }
            AgentEvent::Left { ticket, at, end } => {
                let left = self.waits.remove(ticket);
                law(left.is_some(), || format!("{ticket:?} leaves without having come"))?;
                let in_time = left.is_none_or(|left| (*at < left.until) == (*end != PendingEnd::TimedOut));
                law(in_time, || format!("{ticket:?} leaves at {at:?} by {end:?}"))
            }
            AgentEvent::Died { agent, at, .. } => {
                self.dead.insert(agent.clone());
                let Some(own) = self.rank(agent) else { return law(false, || format!("{agent} has no age")) };
                let older: Vec<&Pending> = self.waits.values().filter(|wait| wait.rank < own).collect();
                let own = leases.iter().filter(|(_, lease)| lease.holder == *agent && *at < lease.expires_at);
                let wanted = own.filter(|(_, lease)| older.iter().any(|wait| stands_in_the_way(lease, wait)));
                self.doomed.extend(wanted.map(|(fence, _)| *fence));
                Ok(())
            }
            AgentEvent::Reported { agent, phase, .. } => {
                if matches!(phase, Phase::Completed | Phase::Aborted) {
                    self.dead.remove(agent);
                }
                Ok(())
            }
            AgentEvent::UsedUp { agent, .. } => {
                self.dead.remove(agent);
                Ok(())
            }
            AgentEvent::Touched { .. } | AgentEvent::Strayed { .. } => Ok(()),
        }
    }

    /// An age stands until the attempt is over, and nobody becomes older.
    fn began(&mut self, rank: &Rank, at: Tick, leases: &Leases) -> Lawful {
        let before = self.ages.insert(rank.agent.clone(), rank.priority);
        let Some(before) = before else { return Ok(()) };
        law(before <= rank.priority, || format!("{} becomes older", rank.agent))?;
        let holds = leases.values().any(|lease| lease.holder == rank.agent && at < lease.expires_at);
        let waits = self.waits.values().any(|wait| wait.rank.agent == rank.agent && at < wait.until);
        let died = self.dead.contains(&rank.agent);
        law(!(holds || waits || died), || format!("{} changes its age within an attempt", rank.agent))
    }

    /// Somebody gets a lease: perhaps because it has waited for it.
    pub(super) fn was_granted(&mut self, holder: &Holder, ticket: Option<Ticket>, at: Tick) -> Lawful {
        self.dead.remove(holder);
        let Some(wait) = ticket.and_then(|ticket| self.waits.remove(&ticket)) else { return Ok(()) };
        law(at < wait.until, || format!("{:?} is served after its patience", wait.ticket))?;
        law(wait.rank.agent == *holder, || format!("{:?} is served to another", wait.ticket))
    }

    /// Judges a moment between two batches.
    pub(super) fn are_in_order(&mut self, leases: &Leases, now: Tick) -> Lawful {
        let kept = std::mem::take(&mut self.doomed).into_iter().find(|fence| leases.contains_key(fence));
        law(kept.is_none(), || format!("{kept:?} outlives a death, and an older one waits for it"))?;
        let mut waits_for: BTreeMap<&Holder, BTreeSet<&Holder>> = BTreeMap::new();
        for wait in self.waits.values().filter(|wait| now < wait.until) {
            for lease in leases.values().filter(|lease| now < lease.expires_at) {
                if !stands_in_the_way(lease, wait) {
                    continue;
                }
                let is_younger = self.rank(&lease.holder).is_some_and(|age| age > wait.rank);
                law(is_younger, || format!("{:?} waits for the older {}", wait.rank, lease.holder))?;
                waits_for.entry(&wait.rank.agent).or_default().insert(&lease.holder);
            }
        }
        for start in waits_for.keys() {
            let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
            while let Some(holder) = next.pop() {
                let ahead = waits_for.get(holder).into_iter().flatten();
                let new: Vec<&Holder> = ahead.copied().filter(|other| seen.insert(*other)).collect();
                next.extend(new);
            }
            law(!seen.contains(start), || format!("{start} waits in a circle"))?;
        }
        Ok(())
    }

    /// Judges a moment in which nothing is left to do: whoever waits waits for somebody, and not beyond its end.
    pub(super) fn none_is_left_behind(&self, leases: &Leases, now: Tick) -> Lawful {
        for wait in self.waits.values() {
            law(now < wait.until, || format!("{:?} waits beyond its end", wait.ticket))?;
            let blocked = leases.values().any(|lease| stands_in_the_way(lease, wait));
            law(blocked, || format!("{:?} waits, and what it wants is free", wait.ticket))?;
        }
        Ok(())
    }

    fn rank(&self, agent: &Holder) -> Option<Rank> {
        Some(Rank { priority: *self.ages.get(agent)?, agent: agent.clone() })
    }
}

fn stands_in_the_way(lease: &ModelLease, wait: &Pending) -> bool {
    let apart = |resource: &Resource, mode: Mode| {
        overlap(resource.as_str(), lease.resource.as_str()) && !together(mode, lease.mode)
    };
    lease.holder != wait.rank.agent && wait.wants.iter().any(|want| apart(&want.resource, want.mode))
}

/// Whether two leases of different holders may live at once.
pub(super) fn together(one: Mode, other: Mode) -> bool {
    let looks = |mode: Mode| matches!(mode, Mode::Shared | Mode::Consumes | Mode::DependsOn);
    let makes = |mode: Mode| mode == Mode::Provides;
    looks(one) && (looks(other) || makes(other)) || makes(one) && looks(other)
}

/// Whether two names have something in common.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    // What every name below this one begins with, if there is anything below it.
    let beginning = |name: &str| -> Option<usize> {
        let kinds = ["FILE:", "SYMBOL:", "API_ENDPOINT:", "DATABASE_TABLE:", "CONFIG_KEY:"];
        if !kinds.iter().any(|kind| name.starts_with(kind)) {
            return None;
        }
        name.find('*').or_else(|| name.ends_with('/').then_some(name.len()))
    };
    match (beginning(one), beginning(other)) {
        (None, None) => one == other,
        (Some(end), None) => other.starts_with(&one[..end]),
        (None, Some(end)) => one.starts_with(&other[..end]),
        (Some(end), Some(till)) => {
            let (one, other) = (&one[..end], &other[..till]);
            one.starts_with(other) || other.starts_with(one)
        }
    }
}
