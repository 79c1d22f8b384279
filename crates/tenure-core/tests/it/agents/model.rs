//! A second opinion on what becomes of a manifest: plain lists, and the rules as they are told to people.

use tenure_core::kernel::{
    AgentRank, DeclareManifest, Fence, Holder, KernelState, LeaseMode, LeaseRequest, Rejection, Resource,
    Tick,
};

use crate::kernel::model::{are_compatible, overlaps};

/// What becomes of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestOutcome {
    Granted,
    Wait,
    Die,
    PriorityFixed,
    LeaseTimeUsed,
}

/// Who holds what and who waits for what, with the age of each.
#[derive(Debug)]
pub struct AgentModel {
    held: Vec<(Option<AgentRank>, Holder, Resource, LeaseMode)>,
    waiting: Vec<(AgentRank, Vec<LeaseRequest>)>,
    /// Those who wait in line, with those who have no age: no agent waits for them, and they do not wait as agents.
    queued: Vec<(Holder, Vec<LeaseRequest>)>,
}

impl AgentModel {
    /// Everything that lives, provided that everything that is over has been announced.
    pub fn from_state(state: &KernelState, now: Tick) -> Option<Self> {
        let age = |holder: &Holder| {
            let priority = state.agent(holder)?.priority?;
            Some(AgentRank { priority, agent: holder.clone() })
        };
        let leases: Vec<_> = state.leases_from(Fence(0)).collect();
        let pending: Vec<_> = state.waiting_agents().collect();
        if leases.iter().any(|lease| lease.terms.expires_at <= now)
            || pending.iter().any(|one| one.until <= now)
        {
            return None;
        }
        if state.queue_tickets().any(|waiting| waiting.until <= now) {
            return None;
        }
        let held = leases
            .iter()
            .map(|lease| (age(lease.holder), lease.holder.clone(), lease.resource.clone(), lease.terms.mode));
        let waiting = pending.iter().map(|pending| (pending.rank.clone(), pending.requests.clone()));
        let in_line =
            state.queue_tickets().map(|waiting| (waiting.holder.clone(), waiting.requests.to_vec()));
        Some(Self { held: held.collect(), waiting: waiting.collect(), queued: in_line.collect() })
    }

    /// What a manifest has to be answered with.
    pub fn outcome(mut self, state: &KernelState, declare: &DeclareManifest) -> ManifestOutcome {
        let own = AgentRank { priority: declare.priority, agent: declare.agent.clone() };
        if let Some(rejection) = self.rejection(state, &own) {
            return rejection;
        }
        // An attempt that begins makes the agent as old as it says, for what it holds without an age too.
        for held in self.held.iter_mut().filter(|held| held.1 == own.agent) {
            held.0 = Some(own.clone());
        }
        match self.judge(&own, &declare.requests) {
            ManifestOutcome::Wait => self.reevaluate(own, declare.requests.clone()),
            verdict => verdict,
        }
    }

    fn rejection(&self, state: &KernelState, own: &AgentRank) -> Option<ManifestOutcome> {
        let agent = state.agent(&own.agent)?;
        let has = agent.priority?;
        let has_attempt = agent.retry_at.is_some()
            || self.held.iter().any(|held| held.1 == own.agent)
            || self.waiting.iter().any(|(rank, _)| rank.agent == own.agent);
        if agent.hold_time_used_up && own.priority <= has {
            return Some(ManifestOutcome::LeaseTimeUsed);
        }
        let is_other = own.priority < has || has_attempt && own.priority != has;
        is_other.then_some(ManifestOutcome::PriorityFixed)
    }

    fn judge<'a>(&'a self, own: &AgentRank, requests: &[LeaseRequest]) -> ManifestOutcome {
        let conflicts = |resource: &Resource, mode: LeaseMode| {
            requests
                .iter()
                .any(|request| overlaps(&request.resource, resource) && !are_compatible(request.mode, mode))
        };
        let holders = self.held.iter().filter(|held| held.1 != own.agent && conflicts(&held.2, held.3));
        let stands_in_line = |holder: &Holder| self.queued.iter().any(|(other, _)| other == holder);
        let age =
            |holder: &Holder, age: &'a Option<AgentRank>| age.as_ref().filter(|_| !stands_in_line(holder));
        let ages: Vec<Option<&AgentRank>> = holders.map(|held| age(&held.1, &held.0)).collect();
        let older = self.waiting.iter().filter(|(rank, _)| rank.agent != own.agent && rank < own);
        let is_behind =
            older.flat_map(|(_, theirs)| theirs).any(|request| conflicts(&request.resource, request.mode));
        if is_behind || ages.iter().any(|age| age.is_none_or(|age| age < own)) {
            return ManifestOutcome::Die;
        }
        // Who stands in line itself passes nobody, neither there nor among agents.
        let line = self.queued.iter().filter(|(other, _)| *other != own.agent).map(|(_, requests)| requests);
        let agents =
            self.waiting.iter().filter(|(rank, _)| rank.agent != own.agent).map(|(_, requests)| requests);
        let is_passed =
            line.chain(agents).flatten().any(|request| conflicts(&request.resource, request.mode));
        match (ages.is_empty(), stands_in_line(&own.agent)) {
            (true, true) if is_passed => ManifestOutcome::Die,
            (true, _) => ManifestOutcome::Granted,
            (false, true) => ManifestOutcome::Die,
            (false, false) => ManifestOutcome::Wait,
        }
    }

    /// Whoever now waits behind an older one dies, and loses what an older one waits for; then whoever has everything free
    /// gets it.
    fn reevaluate(mut self, own: AgentRank, requests: Vec<LeaseRequest>) -> ManifestOutcome {
        self.waiting.push((own.clone(), requests.clone()));
        loop {
            self.waiting.sort_by(|one, other| one.0.cmp(&other.0));
            let find = |verdict| {
                self.waiting.iter().position(|(rank, requests)| self.judge(rank, requests) == verdict)
            };
            if let Some(index) = find(ManifestOutcome::Die) {
                let (dead, _) = self.waiting.remove(index);
                let older: Vec<LeaseRequest> =
                    self.waiting.iter().filter(|one| one.0 < dead).flat_map(|one| one.1.clone()).collect();
                self.held.retain(|(_, holder, resource, mode)| {
                    let is_blocking = older.iter().any(|request| {
                        overlaps(&request.resource, resource) && !are_compatible(request.mode, *mode)
                    });
                    *holder != dead.agent || !is_blocking
                });
            } else if let Some(index) = find(ManifestOutcome::Granted) {
                let (rank, got) = self.waiting.remove(index);
                if rank == own && got == requests {
                    return ManifestOutcome::Granted;
                }
                let agent = rank.agent.clone();
                let own = got
                    .into_iter()
                    .map(|request| (Some(rank.clone()), agent.clone(), request.resource, request.mode));
                self.held.extend(own);
            } else {
                return ManifestOutcome::Wait;
            }
        }
    }
}

/// The verdict that a refusal stands for.
pub fn outcome_of_rejection(rejection: &Rejection) -> ManifestOutcome {
    match rejection {
        Rejection::PriorityFixed { .. } => ManifestOutcome::PriorityFixed,
        Rejection::LeaseTimeUsed { .. } => ManifestOutcome::LeaseTimeUsed,
        other => panic!("{other:?}"),
    }
}

/// Which of these an agent has no lease for.
pub fn touched_outside(
    state: &KernelState,
    now: Tick,
    agent: &Holder,
    touched: &[(Resource, LeaseMode)],
) -> Vec<Resource> {
    // 2: alone, 1: lets others look, 0: looks.
    let strength = |mode: LeaseMode| match mode {
        LeaseMode::Exclusive | LeaseMode::Mutates | LeaseMode::Deletes | LeaseMode::Renames => 2,
        LeaseMode::Provides => 1,
        LeaseMode::Shared | LeaseMode::Consumes | LeaseMode::DependsOn => 0,
    };
    let part_of = |name: &str, whole: &str| {
        let beginning = whole.trim_end_matches('*');
        name == whole || beginning.ends_with('/') && name.starts_with(beginning)
    };
    let leases =
        || state.leases_from(Fence(0)).filter(|lease| lease.holder == agent && now < lease.terms.expires_at);
    let mut outside: Vec<Resource> = Vec::new();
    for (resource, mode) in touched {
        let within = leases().any(|lease| {
            strength(lease.terms.mode) >= strength(*mode)
                && part_of(resource.as_str(), lease.resource.as_str())
        });
        if !within && !outside.contains(resource) {
            outside.push(resource.clone());
        }
    }
    outside
}
