//! What the documentation says, as lists and loops: it knows no tables, no order of work, and no draft.
//!
//! [`LeaseModel::record`] believes an event only if the promises allow it; what an answer may be is the
//! business of `kernel_forecast`.

use tenure_core::kernel::{
    Event, Fence, Holder, IdempotencyKey, IssuedLease, LeaseMode, LeaseRequest, LeaseTerms, Limits,
    Principal, QueuedAcquire, Resource, RevocationCause, Tick, Ticket, WaitEnd,
};

#[derive(Debug, Clone, Default)]
pub struct LeaseModel {
    pub leases: Vec<ModelLease>,
    pub waiters: Vec<QueuedAcquire>,
    pub ended: Vec<EndedRecord>,
    /// Requests with a key that were granted, oldest first.
    pub keyed: Vec<KeyedRequest>,
    steps: usize,
    pub last_fence: Fence,
    pub last_ticket: Ticket,
    /// The rest of a request that is being served, and what it gets: all of it, at once and in order.
    serving: Option<(QueuedAcquire, Vec<Resource>)>,
    /// The lease that was just ended so that another continues it.
    transferred: Option<ModelLease>,
}

#[derive(Debug, Clone)]
pub struct ModelLease {
    pub fence: Fence,
    pub resource: Resource,
    pub mode: LeaseMode,
    pub holder: Holder,
    pub principal: Principal,
    pub end: Tick,
}

/// What came of a request with a key.
#[derive(Debug, Clone)]
pub struct KeyedRequest {
    pub principal: Principal,
    pub key: IdempotencyKey,
    pub leases: Vec<Fence>,
    step: usize,
}

/// A lease or a wait that was announced to be over.
#[derive(Debug, Clone)]
pub struct EndedRecord {
    pub lease: Option<ModelLease>,
    pub holder: Holder,
    pub principal: Principal,
    pub at: Tick,
}

/// The table of the documentation, in words: only those that look go together, and of those that provide
/// there is one.
pub fn are_compatible(one: LeaseMode, other: LeaseMode) -> bool {
    let looks = |mode| {
        matches!(mode, LeaseMode::Shared | LeaseMode::Provides | LeaseMode::Consumes | LeaseMode::DependsOn)
    };
    looks(one) && looks(other) && !(one == LeaseMode::Provides && other == LeaseMode::Provides)
}

/// Whether two resources have something in common: said here once more, in the plainest way for the names that are used.
pub fn overlaps(one: &Resource, other: &Resource) -> bool {
    let covers = |folder: &str, name: &str| {
        let beginning = folder.trim_end_matches('*');
        folder.starts_with("FILE:") && beginning.ends_with('/') && name.starts_with(beginning)
    };
    one == other || covers(one.as_str(), other.as_str()) || covers(other.as_str(), one.as_str())
}

/// Whether a resource that `request` accepts overlaps `resource`.
pub fn request_overlaps(request: &LeaseRequest, resource: &Resource) -> bool {
    request.resources().any(|other| overlaps(other, resource))
}

/// Whether `request` accepts `resource`.
pub fn request_names(request: &LeaseRequest, resource: &Resource) -> bool {
    request.resources().any(|other| other == resource)
}

impl LeaseModel {
    pub fn active_leases(&self, now: Tick) -> impl Iterator<Item = &ModelLease> {
        self.leases.iter().filter(move |lease| now < lease.end)
    }

    pub fn active_waiters(&self, now: Tick) -> impl Iterator<Item = &QueuedAcquire> {
        self.waiters.iter().filter(move |wait| now < wait.until)
    }

    /// Who is in the way of one who wants `resource` like this and comes after those with a smaller ticket.
    pub fn blockers(&self, resource: &Resource, mode: LeaseMode, ticket: Ticket, now: Tick) -> Vec<Holder> {
        let leases = self.active_leases(now).filter(|lease| overlaps(&lease.resource, resource));
        let leases =
            leases.filter(|lease| !are_compatible(lease.mode, mode)).map(|lease| lease.holder.clone());
        let waiters = self.active_waiters(now).filter(|wait| wait.ticket < ticket).filter(|wait| {
            wait.requests
                .iter()
                .any(|request| request_overlaps(request, resource) && !are_compatible(request.mode, mode))
        });
        leases.chain(waiters.map(|wait| wait.holder.clone())).collect()
    }

    /// When everything is over that now keeps one who comes last from having `resource` like this: no sooner than the
    /// one that is named in a refusal, which is the first of them.
    pub fn latest_blocker_end(&self, resource: &Resource, mode: LeaseMode, now: Tick) -> Option<Tick> {
        let leases = self.active_leases(now).filter(|lease| overlaps(&lease.resource, resource));
        let leases = leases.filter(|lease| !are_compatible(lease.mode, mode)).map(|lease| lease.end);
        let waiters = self.active_waiters(now).filter(|wait| {
            wait.requests
                .iter()
                .any(|request| request_overlaps(request, resource) && !are_compatible(request.mode, mode))
        });
        leases.chain(waiters.map(|wait| wait.until)).max()
    }

    /// The resources that the wants get: the first want its first, and so on through every way there is, until each
    /// has one of its own for which it `fits`. What `has` says comes first.
    pub fn assign(
        requests: &[LeaseRequest],
        taken: &mut Vec<Resource>,
        has: &dyn Fn(&LeaseRequest, &Resource) -> bool,
        fits: &dyn Fn(&LeaseRequest, &Resource) -> bool,
    ) -> Option<Vec<Resource>> {
        let Some((request, rest)) = requests.split_first() else { return Some(taken.clone()) };
        let own = request.resources().filter(|resource| has(request, resource));
        let free = request.resources().filter(|resource| !has(request, resource) && fits(request, resource));
        for resource in own.chain(free) {
            if !taken.contains(resource) {
                taken.push(resource.clone());
                let chosen = Self::assign(rest, taken, has, fits);
                taken.pop();
                if chosen.is_some() {
                    return chosen;
                }
            }
        }
        None
    }

    /// What somebody with this ticket would be served with now.
    pub fn assignment_for(
        &self,
        requests: &[LeaseRequest],
        ticket: Ticket,
        now: Tick,
    ) -> Option<Vec<Resource>> {
        let fits = |request: &LeaseRequest, resource: &Resource| {
            self.blockers(resource, request.mode, ticket, now).is_empty()
        };
        Self::assign(requests, &mut Vec::new(), &|_, _| false, &fits)
    }

    /// Believes `event`, or panics.
    pub fn record(&mut self, event: &Event) {
        let between = self.serving.as_ref().is_some_and(|_| !matches!(event, Event::Issued(_)));
        // An end that is found on the way may come between two leases of one request.
        assert!(!between || matches!(event, Event::Expired { .. }), "{event:?} while a request is served");
        match event {
            Event::Issued(issued) => self.issue(issued),
            Event::Renewed { lease, at, expires_at, .. } => {
                let lease = self.lease(*lease);
                assert!(*at < lease.end, "renewed when it was over: {lease:?}");
                assert!(*expires_at > lease.end, "shortened by a renewal: {lease:?}");
                lease.end = *expires_at;
            }
            Event::Released { lease, at, by, .. } => {
                let lease = self.end(*lease, *at);
                assert!(*at < lease.end && lease.holder == *by, "released by {by}: {lease:?}");
            }
            Event::Expired { lease, at } => {
                let lease = self.end(*lease, *at);
                assert!(*at >= lease.end, "expired before its end: {lease:?}");
            }
            Event::Revoked { lease, at, cause, .. } => {
                let lease = self.end(*lease, *at);
                assert!(*at < lease.end, "revoked when it was over: {lease:?}");
                self.transferred = (*cause == RevocationCause::Transferred).then_some(lease);
            }
            Event::Queued(queued) => {
                assert_eq!(queued.ticket.0, self.last_ticket.0 + 1, "a ticket out of order");
                assert!(queued.until > queued.at, "a wait of no time");
                self.last_ticket = queued.ticket;
                self.check_name(&queued.holder, &queued.principal, queued.at);
                self.waiters.push(queued.clone());
            }
            Event::Left { ticket, at, end } => {
                let wait =
                    self.remove_waiter(*ticket, *at).unwrap_or_else(|| panic!("nobody has {ticket:?}"));
                let timed_out = *end == WaitEnd::TimedOut;
                assert!(*at < wait.until || timed_out, "left after its end without a time-out: {wait:?}");
            }
            Event::Restored { fence, .. } => {
                assert!(*fence >= self.last_fence, "fences that were given out are taken back");
                self.last_fence = *fence;
            }
            Event::Intent(_)
            | Event::Agent(_)
            | Event::Work(_)
            | Event::File(_)
            | Event::Marked { .. }
            | Event::Resumed { .. } => {}
        }
    }

    fn issue(&mut self, issued: &IssuedLease) {
        let LeaseTerms { mode, issued_at: at, expires_at, ttl, .. } = issued.terms;
        assert_eq!(issued.fence.0, self.last_fence.0 + 1, "fences go up by one: {issued:?}");
        assert_eq!(expires_at.0, at.0 + ttl.0, "a length that was not asked for");
        self.last_fence = issued.fence;
        self.check_name(&issued.holder, &issued.principal, at);
        // Not even one that is over but not announced: the ledger itself never holds both.
        let mut overlapping = self.leases.iter().filter(|other| overlaps(&other.resource, &issued.resource));
        let other = overlapping.find(|other| !are_compatible(other.mode, mode));
        assert!(other.is_none(), "{issued:?} beside {other:?}");
        match (issued.ticket, issued.continues) {
            (Some(ticket), None) => self.serve(issued, ticket),
            (None, Some(before)) => {
                let old = self.transferred.take().expect("what is continued was just ended");
                assert_eq!((old.fence, &old.resource), (before, &issued.resource));
            }
            (None, None) => {
                let last = Ticket(u64::MAX);
                let first = self.blockers(&issued.resource, mode, last, at);
                assert!(first.is_empty(), "{issued:?} came before {first:?}");
            }
            (Some(_), Some(_)) => panic!("served and continued: {issued:?}"),
        }
        self.leases.push(ModelLease {
            fence: issued.fence,
            resource: issued.resource.clone(),
            mode,
            holder: issued.holder.clone(),
            principal: issued.principal.clone(),
            end: expires_at,
        });
        if let Some(key) = issued.key {
            self.record_key(&issued.principal, key, issued.fence);
        }
    }

    fn serve(&mut self, issued: &IssuedLease, ticket: Ticket) {
        let LeaseTerms { mode, issued_at: at, .. } = issued.terms;
        let (mut wait, mut resources) = match self.serving.take() {
            Some(serving) => serving,
            None => {
                let wait = self.remove_waiter(ticket, at).unwrap_or_else(|| panic!("nobody has {ticket:?}"));
                let chosen = self.assignment_for(&wait.requests, ticket, at);
                let resources = chosen.unwrap_or_else(|| panic!("{ticket:?} is served before its turn"));
                (wait, resources)
            }
        };
        assert!(at < wait.until, "served after its patience: {wait:?}");
        assert_eq!((wait.ticket, &wait.holder), (ticket, &issued.holder), "served in part");
        let (request, resource) = (wait.requests.remove(0), resources.remove(0));
        assert_eq!((&resource, request.mode), (&issued.resource, mode), "served otherwise than asked");
        let first = self.blockers(&issued.resource, mode, ticket, at);
        assert!(first.is_empty(), "{ticket:?} was served before {first:?}");
        self.serving = (!wait.requests.is_empty()).then_some((wait, resources));
    }

    fn record_key(&mut self, principal: &Principal, key: IdempotencyKey, fence: Fence) {
        let step = self.steps;
        let same = |keyed: &&mut KeyedRequest| {
            keyed.step == step && keyed.key == key && keyed.principal == *principal
        };
        match self.keyed.iter_mut().find(same) {
            Some(keyed) => keyed.leases.push(fence),
            None => {
                self.keyed.push(KeyedRequest { principal: principal.clone(), key, leases: vec![fence], step })
            }
        }
    }

    fn check_name(&self, holder: &Holder, principal: &Principal, now: Tick) {
        let leases = self.active_leases(now).map(|lease| (&lease.holder, &lease.principal));
        let mut uses = leases.chain(self.active_waiters(now).map(|wait| (&wait.holder, &wait.principal)));
        let shared = uses.any(|(name, other)| name == holder && other != principal);
        assert!(!shared, "{holder} is the name of two principals at once");
    }

    fn lease(&mut self, fence: Fence) -> &mut ModelLease {
        let found = self.leases.iter_mut().find(|lease| lease.fence == fence);
        found.unwrap_or_else(|| panic!("{fence:?} is no live lease"))
    }

    fn end(&mut self, fence: Fence, at: Tick) -> ModelLease {
        let lease = self.lease(fence).clone();
        self.leases.retain(|other| other.fence != fence);
        let (holder, principal) = (lease.holder.clone(), lease.principal.clone());
        self.ended.push(EndedRecord { lease: Some(lease.clone()), holder, principal, at });
        lease
    }

    fn remove_waiter(&mut self, ticket: Ticket, at: Tick) -> Option<QueuedAcquire> {
        let index = self.waiters.iter().position(|wait| wait.ticket == ticket)?;
        let wait = self.waiters.remove(index);
        let (holder, principal) = (wait.holder.clone(), wait.principal.clone());
        self.ended.push(EndedRecord { lease: None, holder, principal, at });
        Some(wait)
    }

    /// Whether every lease and wait that is over is known to be.
    pub fn all_ends_recorded(&self, now: Tick) -> bool {
        self.active_leases(now).count() == self.leases.len()
            && self.active_waiters(now).count() == self.waiters.len()
    }

    /// How many leases a principal has and waits for.
    pub fn usage(&self, principal: &Principal, now: Tick) -> usize {
        let leases = self.active_leases(now).filter(|lease| lease.principal == *principal).count();
        let waiters = self.active_waiters(now).filter(|wait| wait.principal == *principal);
        leases + waiters.map(|wait| wait.requests.len()).sum::<usize>()
    }

    /// What must hold between two commands.
    pub fn check(&mut self, limits: &Limits, now: Tick) {
        self.steps += 1;
        assert!(self.serving.is_none(), "a request was served in part: {:?}", self.serving);
        self.transferred = None;
        if self.all_ends_recorded(now) {
            for wait in &self.waiters {
                let free = self.assignment_for(&wait.requests, wait.ticket, now);
                assert!(free.is_none(), "{free:?} is free, and yet it waits: {wait:?}");
            }
        }
        let live: Vec<&ModelLease> = self.active_leases(now).collect();
        for (index, one) in live.iter().enumerate() {
            let conflict = |other: &&&ModelLease| {
                overlaps(&other.resource, &one.resource) && !are_compatible(other.mode, one.mode)
            };
            let other = live[index + 1..].iter().find(conflict);
            assert!(other.is_none(), "two at once: {one:?} and {other:?}");
        }
        let max = limits.max_leases_per_principal.unwrap_or(usize::MAX);
        for principal in live.iter().map(|lease| &lease.principal) {
            assert!(self.usage(principal, now) <= max, "{principal} is over its quota of {max}");
        }
    }
}
