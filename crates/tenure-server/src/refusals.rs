//! The last requests that were refused, so that people can ask why. They are kept in memory: a refusal is no event, and
//! whoever asks again and again must not fill a disk.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_api::{Code, Problem};
use tenure_core::kernel::{Acquire, Declare, Fence, Holder, Principal, Resource, State, Tick};

const MOST: usize = 10_000;
/// A request may name many resources. It is found by so many of them.
const MOST_NAMES: usize = 16;

/// The last requests that were refused.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Oldest first.
    order: VecDeque<Arc<Refused>>,
    /// The newest for each resource.
    latest: HashMap<Resource, Arc<Refused>>,
}

pub(crate) struct Wanted {
    principal: Principal,
    holder: Holder,
    resources: Vec<Resource>,
}

pub(crate) struct Refused {
    pub(crate) at: Tick,
    pub(crate) code: Code,
    pub(crate) detail: String,
    pub(crate) holder: Holder,
    pub(crate) principal: Principal,
    resources: Vec<Resource>,
}

impl Wanted {
    pub(crate) fn by(acquire: &Acquire) -> Self {
        let names = acquire.wants.iter().flat_map(|want| want.resources());
        let resources = names.take(MOST_NAMES).cloned().collect();
        Self { principal: acquire.principal.clone(), holder: acquire.holder.clone(), resources }
    }

    /// An agent, and everything that it is about to touch.
    pub(crate) fn by_agent(declare: &Declare) -> Self {
        let resources = declare.wants.iter().take(MOST_NAMES).map(|want| want.resource.clone()).collect();
        Self { principal: declare.principal.clone(), holder: declare.agent.clone(), resources }
    }

    pub(crate) fn one(principal: Principal, holder: Holder, resource: Resource) -> Self {
        Self { principal, holder, resources: vec![resource] }
    }

    /// Who holds this lease, and wants it to go on in another way.
    pub(crate) fn by_holder(state: &State, lease: Fence) -> Option<Self> {
        let lease = state.lease(lease)?;
        let (principal, holder) = (lease.principal.clone(), lease.holder.clone());
        Some(Self { principal, holder, resources: vec![lease.resource.clone()] })
    }
}

impl Refusals {
    pub(crate) fn note(&self, wanted: Wanted, problem: &Problem, at: Tick) {
        let Wanted { principal, holder, mut resources } = wanted;
        // Where one of many is in the way, it was refused because of that one.
        if let Some(resource) = problem.resource.as_deref().and_then(|name| Resource::parse(name).ok()) {
            resources = vec![resource];
        }
        let (code, detail) = (problem.code, problem.detail.clone());
        let refused = Arc::new(Refused { at, code, detail, holder, principal, resources });
        let mut kept = self.0.lock();
        for resource in &refused.resources {
            kept.latest.insert(resource.clone(), refused.clone());
        }
        kept.order.push_back(refused);
        while kept.order.len() > MOST {
            let Some(oldest) = kept.order.pop_front() else { break };
            for resource in &oldest.resources {
                if kept.latest.get(resource).is_some_and(|latest| Arc::ptr_eq(latest, &oldest)) {
                    kept.latest.remove(resource);
                }
            }
        }
    }

    /// The last one about a resource, if it is still remembered.
    pub(crate) fn last(&self, resource: &Resource) -> Option<Arc<Refused>> {
        self.0.lock().latest.get(resource).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(refusals: &Refusals, resource: &str, holder: &str, at: u64) {
        let wanted = Wanted {
            principal: Principal::parse("p").unwrap(),
            holder: Holder::parse(holder).unwrap(),
            resources: vec![Resource::parse(resource).unwrap()],
        };
        refusals.note(wanted, &Problem::new(Code::Held, "held"), Tick(at));
    }

    #[test]
    fn the_latest_denial_of_a_resource_is_kept_until_it_is_evicted() {
        let refusals = Refusals::default();
        let find = |name: &str| refusals.last(&Resource::parse(name).unwrap()).map(|refused| refused.at.0);
        note(&refusals, "db:1", "a", 1);
        note(&refusals, "db:1", "b", 2);
        assert_eq!((find("db:1"), find("db:2")), (Some(2), None));
        for number in 0..MOST as u64 - 1 {
            note(&refusals, "busy:1", "c", 3 + number);
        }
        assert_eq!(find("db:1"), Some(2), "only the older one of the two is forgotten");
        note(&refusals, "busy:1", "c", 20_000);
        assert_eq!((find("db:1"), find("busy:1")), (None, Some(20_000)));
        assert_eq!(refusals.0.lock().latest.len(), 1, "what is forgotten takes no memory");
    }
}
