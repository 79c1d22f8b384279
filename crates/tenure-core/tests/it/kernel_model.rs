//! What the documentation says, as lists and loops: it knows no tables, no order of work, and no draft.
//!
//! [`Model::record`] believes an event only if the promises allow it; what an answer may be is the
//! business of `kernel_forecast`.

use tenure_core::kernel::{
    Cause, Event, Fence, Holder, Issued, Limits, Mode, Principal, Queued, RequestKey, Resource, Tick, Ticket,
    WaitEnd, Want,
};

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub leases: Vec<Lease>,
    pub waits: Vec<Queued>,
    pub over: Vec<Over>,
    /// Requests with a key that were granted, oldest first.
    pub keyed: Vec<Keyed>,
    steps: usize,
    pub last_fence: Fence,
    pub last_ticket: Ticket,
    /// The rest of a request that is being served, and what it gets: all of it, at once and in order.
    serving: Option<(Queued, Vec<Resource>)>,
    /// The lease that was just ended so that another continues it.
    handed_over: Option<Lease>,
}

#[derive(Debug, Clone)]
pub struct Lease {
    pub fence: Fence,
    pub resource: Resource,
    pub mode: Mode,
    pub holder: Holder,
    pub principal: Principal,
    pub end: Tick,
}

/// What came of a request with a key.
#[derive(Debug, Clone)]
pub struct Keyed {
    pub principal: Principal,
    pub key: RequestKey,
    pub leases: Vec<Fence>,
    step: usize,
}

/// A lease or a wait that was announced to be over.
#[derive(Debug, Clone)]
pub struct Over {
    pub lease: Option<Lease>,
    pub holder: Holder,
    pub principal: Principal,
    pub at: Tick,
}

/// The table of the documentation, in words: only those that look go together, and of those that provide
/// there is one.
pub fn together(one: Mode, other: Mode) -> bool {
    let looks = |mode| matches!(mode, Mode::Shared | Mode::Provides | Mode::Consumes | Mode::DependsOn);
    looks(one) && looks(other) && !(one == Mode::Provides && other == Mode::Provides)
}

/// Whether two resources have something in common: said here once more, in the plainest way for the names that are used.
pub fn meet(one: &Resource, other: &Resource) -> bool {
    let covers = |folder: &str, name: &str| {
        let beginning = folder.trim_end_matches('*');
        folder.starts_with("FILE:") && beginning.ends_with('/') && name.starts_with(beginning)
    };
    one == other || covers(one.as_str(), other.as_str()) || covers(other.as_str(), one.as_str())
}

/// Whether something that `want` would be content with has something in common with `resource`.
pub fn touches(want: &Want, resource: &Resource) -> bool {
    want.resources().any(|other| meet(other, resource))
}

/// Whether `want` would be content with `resource`.
pub fn names(want: &Want, resource: &Resource) -> bool {
    want.resources().any(|other| other == resource)
}

impl Model {
    pub fn live(&self, now: Tick) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(move |lease| now < lease.end)
    }

    pub fn waiting(&self, now: Tick) -> impl Iterator<Item = &Queued> {
        self.waits.iter().filter(move |wait| now < wait.until)
    }

    /// Who is in the way of one who wants `resource` like this and comes after those with a smaller ticket.
    pub fn in_the_way(&self, resource: &Resource, mode: Mode, ticket: Ticket, now: Tick) -> Vec<Holder> {
        let leases = self.live(now).filter(|lease| meet(&lease.resource, resource));
        let leases = leases.filter(|lease| !together(lease.mode, mode)).map(|lease| lease.holder.clone());
        let waits = self.waiting(now).filter(|wait| wait.ticket < ticket).filter(|wait| {
            wait.wants.iter().any(|want| touches(want, resource) && !together(want.mode, mode))
        });
        leases.chain(waits.map(|wait| wait.holder.clone())).collect()
    }

    /// When everything is over that now keeps one who comes last from having `resource` like this: no sooner than the
    /// one that is named in a refusal, which is the first of them.
    pub fn first_end(&self, resource: &Resource, mode: Mode, now: Tick) -> Option<Tick> {
        let leases = self.live(now).filter(|lease| meet(&lease.resource, resource));
        let leases = leases.filter(|lease| !together(lease.mode, mode)).map(|lease| lease.end);
        let waits = self.waiting(now).filter(|wait| {
            wait.wants.iter().any(|want| touches(want, resource) && !together(want.mode, mode))
        });
        leases.chain(waits.map(|wait| wait.until)).max()
    }

    /// The resources that the wants get: the first want its first, and so on through every way there is, until each
    /// has one of its own for which it `fits`. What `has` says comes first.
    pub fn choose(
        wants: &[Want],
        taken: &mut Vec<Resource>,
        has: &dyn Fn(&Want, &Resource) -> bool,
        fits: &dyn Fn(&Want, &Resource) -> bool,
    ) -> Option<Vec<Resource>> {
        let Some((want, rest)) = wants.split_first() else { return Some(taken.clone()) };
        let own = want.resources().filter(|resource| has(want, resource));
        let free = want.resources().filter(|resource| !has(want, resource) && fits(want, resource));
        for resource in own.chain(free) {
            if !taken.contains(resource) {
                taken.push(resource.clone());
                let chosen = Self::choose(rest, taken, has, fits);
                taken.pop();
                if chosen.is_some() {
                    return chosen;
                }
            }
        }
        None
    }

    /// What somebody with this ticket would be served with now.
    pub fn served_with(&self, wants: &[Want], ticket: Ticket, now: Tick) -> Option<Vec<Resource>> {
        let fits =
            |want: &Want, resource: &Resource| self.in_the_way(resource, want.mode, ticket, now).is_empty();
        Self::choose(wants, &mut Vec::new(), &|_, _| false, &fits)
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
                self.handed_over = (*cause == Cause::Transferred).then_some(lease);
            }
            Event::Queued(queued) => {
                assert_eq!(queued.ticket.0, self.last_ticket.0 + 1, "a ticket out of order");
                assert!(queued.until > queued.at, "a wait of no time");
                self.last_ticket = queued.ticket;
                self.check_name(&queued.holder, &queued.principal, queued.at);
                self.waits.push(queued.clone());
            }
            Event::Left { ticket, at, end } => {
                let wait = self.leave(*ticket, *at).unwrap_or_else(|| panic!("nobody has {ticket:?}"));
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

    fn issue(&mut self, issued: &Issued) {
        assert_eq!(issued.fence.0, self.last_fence.0 + 1, "fences go up by one: {issued:?}");
        assert_eq!(issued.expires_at.0, issued.at.0 + issued.ttl.0, "a length that was not asked for");
        self.last_fence = issued.fence;
        self.check_name(&issued.holder, &issued.principal, issued.at);
        // Not even one that is over but not announced: the ledger itself never holds both.
        let mut others = self.leases.iter().filter(|other| meet(&other.resource, &issued.resource));
        let other = others.find(|other| !together(other.mode, issued.mode));
        assert!(other.is_none(), "{issued:?} beside {other:?}");
        match (issued.ticket, issued.continues) {
            (Some(ticket), None) => self.serve(issued, ticket),
            (None, Some(before)) => {
                let old = self.handed_over.take().expect("what is continued was just ended");
                assert_eq!((old.fence, &old.resource), (before, &issued.resource));
            }
            (None, None) => {
                let last = Ticket(u64::MAX);
                let first = self.in_the_way(&issued.resource, issued.mode, last, issued.at);
                assert!(first.is_empty(), "{issued:?} came before {first:?}");
            }
            (Some(_), Some(_)) => panic!("served and continued: {issued:?}"),
        }
        self.leases.push(Lease {
            fence: issued.fence,
            resource: issued.resource.clone(),
            mode: issued.mode,
            holder: issued.holder.clone(),
            principal: issued.principal.clone(),
            end: issued.expires_at,
        });
        if let Some(key) = issued.key {
            self.note_key(&issued.principal, key, issued.fence);
        }
    }

    fn serve(&mut self, issued: &Issued, ticket: Ticket) {
        let (mut wait, mut resources) = match self.serving.take() {
            Some(serving) => serving,
            None => {
                let wait = self.leave(ticket, issued.at).unwrap_or_else(|| panic!("nobody has {ticket:?}"));
                let chosen = self.served_with(&wait.wants, ticket, issued.at);
                let resources = chosen.unwrap_or_else(|| panic!("{ticket:?} is served before its turn"));
                (wait, resources)
            }
        };
        assert!(issued.at < wait.until, "served after its patience: {wait:?}");
        assert_eq!((wait.ticket, &wait.holder), (ticket, &issued.holder), "served in part");
        let (want, resource) = (wait.wants.remove(0), resources.remove(0));
        assert_eq!((&resource, want.mode), (&issued.resource, issued.mode), "served otherwise than asked");
        let first = self.in_the_way(&issued.resource, issued.mode, ticket, issued.at);
        assert!(first.is_empty(), "{ticket:?} was served before {first:?}");
        self.serving = (!wait.wants.is_empty()).then_some((wait, resources));
    }

    fn note_key(&mut self, principal: &Principal, key: RequestKey, fence: Fence) {
        let step = self.steps;
        let same =
            |keyed: &&mut Keyed| keyed.step == step && keyed.key == key && keyed.principal == *principal;
        match self.keyed.iter_mut().find(same) {
            Some(keyed) => keyed.leases.push(fence),
            None => self.keyed.push(Keyed { principal: principal.clone(), key, leases: vec![fence], step }),
        }
    }

    fn check_name(&self, holder: &Holder, principal: &Principal, now: Tick) {
        let leases = self.live(now).map(|lease| (&lease.holder, &lease.principal));
        let mut uses = leases.chain(self.waiting(now).map(|wait| (&wait.holder, &wait.principal)));
        let shared = uses.any(|(name, other)| name == holder && other != principal);
        assert!(!shared, "{holder} is the name of two principals at once");
    }

    fn lease(&mut self, fence: Fence) -> &mut Lease {
        let found = self.leases.iter_mut().find(|lease| lease.fence == fence);
        found.unwrap_or_else(|| panic!("{fence:?} is no live lease"))
    }

    fn end(&mut self, fence: Fence, at: Tick) -> Lease {
        let lease = self.lease(fence).clone();
        self.leases.retain(|other| other.fence != fence);
        let (holder, principal) = (lease.holder.clone(), lease.principal.clone());
        self.over.push(Over { lease: Some(lease.clone()), holder, principal, at });
        lease
    }

    fn leave(&mut self, ticket: Ticket, at: Tick) -> Option<Queued> {
        let index = self.waits.iter().position(|wait| wait.ticket == ticket)?;
        let wait = self.waits.remove(index);
        let (holder, principal) = (wait.holder.clone(), wait.principal.clone());
        self.over.push(Over { lease: None, holder, principal, at });
        Some(wait)
    }

    /// Whether every lease and wait that is over is known to be.
    pub fn all_announced(&self, now: Tick) -> bool {
        self.live(now).count() == self.leases.len() && self.waiting(now).count() == self.waits.len()
    }

    /// How many leases a principal has and waits for.
    pub fn used(&self, principal: &Principal, now: Tick) -> usize {
        let leases = self.live(now).filter(|lease| lease.principal == *principal).count();
        let waits = self.waiting(now).filter(|wait| wait.principal == *principal);
        leases + waits.map(|wait| wait.wants.len()).sum::<usize>()
    }

    /// What must hold between two commands.
    pub fn check(&mut self, limits: &Limits, now: Tick) {
        self.steps += 1;
        assert!(self.serving.is_none(), "a request was served in part: {:?}", self.serving);
        self.handed_over = None;
        if self.all_announced(now) {
            for wait in &self.waits {
                let free = self.served_with(&wait.wants, wait.ticket, now);
                assert!(free.is_none(), "{free:?} is free, and yet it waits: {wait:?}");
            }
        }
        let live: Vec<&Lease> = self.live(now).collect();
        for (index, one) in live.iter().enumerate() {
            let conflict =
                |other: &&&Lease| meet(&other.resource, &one.resource) && !together(other.mode, one.mode);
            let other = live[index + 1..].iter().find(conflict);
            assert!(other.is_none(), "two at once: {one:?} and {other:?}");
        }
        let most = limits.leases_per_principal.unwrap_or(usize::MAX);
        for principal in live.iter().map(|lease| &lease.principal) {
            assert!(self.used(principal, now) <= most, "{principal} is over its quota of {most}");
        }
    }
}
