//! Recent denials, for `explain`. They are kept in memory: a denial is no event, because polling must not fill a disk.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_api::{Code, Problem};
use tenure_core::kernel::{Acquire, DeclareManifest, Fence, Holder, KernelState, Principal, Resource, Tick};

const MAX_DENIALS: usize = 10_000;
/// A request may name many resources. It is found by so many of them.
const MAX_RESOURCES: usize = 16;

/// The last requests that were refused.
#[derive(Default)]
pub(crate) struct DenialLog(Mutex<DenialIndex>);

#[derive(Default)]
struct DenialIndex {
    /// Oldest first.
    order: VecDeque<Arc<Denial>>,
    /// The newest for each resource.
    latest: HashMap<Resource, Arc<Denial>>,
}

pub(crate) struct RequestSummary {
    principal: Principal,
    holder: Holder,
    resources: Vec<Resource>,
}

pub(crate) struct Denial {
    pub(crate) at: Tick,
    pub(crate) code: Code,
    pub(crate) detail: String,
    pub(crate) holder: Holder,
    pub(crate) principal: Principal,
    resources: Vec<Resource>,
}

impl RequestSummary {
    pub(crate) fn from_acquire(acquire: &Acquire) -> Self {
        let names = acquire.requests.iter().flat_map(|request| request.resources());
        let resources = names.take(MAX_RESOURCES).cloned().collect();
        Self { principal: acquire.principal.clone(), holder: acquire.holder.clone(), resources }
    }

    /// An agent, and everything that it is about to touch.
    pub(crate) fn from_manifest(declare: &DeclareManifest) -> Self {
        let resources =
            declare.requests.iter().take(MAX_RESOURCES).map(|request| request.resource.clone()).collect();
        Self { principal: declare.principal.clone(), holder: declare.agent.clone(), resources }
    }

    pub(crate) fn from_resource(principal: Principal, holder: Holder, resource: Resource) -> Self {
        Self { principal, holder, resources: vec![resource] }
    }

    /// Who holds this lease, and wants it to go on in another way.
    pub(crate) fn from_lease(state: &KernelState, lease: Fence) -> Option<Self> {
        let lease = state.lease(lease)?;
        let (principal, holder) = (lease.principal.clone(), lease.holder.clone());
        Some(Self { principal, holder, resources: vec![lease.resource.clone()] })
    }
}

impl DenialLog {
    pub(crate) fn record(&self, summary: RequestSummary, problem: &Problem, at: Tick) {
        let RequestSummary { principal, holder, mut resources } = summary;
        // Where one of many is in the way, it was refused because of that one.
        if let Some(resource) = problem.resource.as_deref().and_then(|name| Resource::parse(name).ok()) {
            resources = vec![resource];
        }
        let (code, detail) = (problem.code, problem.detail.clone());
        let denial = Arc::new(Denial { at, code, detail, holder, principal, resources });
        let mut index = self.0.lock();
        for resource in &denial.resources {
            index.latest.insert(resource.clone(), denial.clone());
        }
        index.order.push_back(denial);
        while index.order.len() > MAX_DENIALS {
            let Some(oldest) = index.order.pop_front() else { break };
            for resource in &oldest.resources {
                if index.latest.get(resource).is_some_and(|latest| Arc::ptr_eq(latest, &oldest)) {
                    index.latest.remove(resource);
                }
            }
        }
    }

    /// The last one about a resource, if it is still remembered.
    pub(crate) fn latest(&self, resource: &Resource) -> Option<Arc<Denial>> {
        self.0.lock().latest.get(resource).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(denials: &DenialLog, resource: &str, holder: &str, at: u64) {
        let summary = RequestSummary {
            principal: Principal::parse("p").unwrap(),
            holder: Holder::parse(holder).unwrap(),
            resources: vec![Resource::parse(resource).unwrap()],
        };
        denials.record(summary, &Problem::new(Code::Held, "held"), Tick(at));
    }

    #[test]
    fn the_latest_denial_of_a_resource_is_kept_until_it_is_evicted() {
        let denials = DenialLog::default();
        let find = |name: &str| denials.latest(&Resource::parse(name).unwrap()).map(|refused| refused.at.0);
        record(&denials, "db:1", "a", 1);
        record(&denials, "db:1", "b", 2);
        assert_eq!((find("db:1"), find("db:2")), (Some(2), None));
        for number in 0..MAX_DENIALS as u64 - 1 {
            record(&denials, "busy:1", "c", 3 + number);
        }
        assert_eq!(find("db:1"), Some(2), "only the older one of the two is forgotten");
        record(&denials, "busy:1", "c", 20_000);
        assert_eq!((find("db:1"), find("busy:1")), (None, Some(20_000)));
        assert_eq!(denials.0.lock().latest.len(), 1, "what is forgotten takes no memory");
    }
}
