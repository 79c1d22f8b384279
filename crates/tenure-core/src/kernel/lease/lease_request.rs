//! A lease request: one lease, on one resource or on any one of several.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assignment::find_matching;
use crate::rules::overlap::{is_hierarchical, overlaps, uncovered_indices};
use crate::value::{Labels, LeaseMode, ModeSet, Nonce, Resource, TickDuration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    pub resource: Resource,
    /// What would do as well.
    pub alternatives: Alternatives,
    pub mode: LeaseMode,
    /// For how long, unless it is renewed.
    pub ttl: TickDuration,
    pub nonce: Nonce,
    /// For people and programs of the caller's.
    pub labels: Labels,
}

/// Further resources, any one of which does as well as the first, in the order in which they are tried.
///
/// Nearly always there are none. A pool has a name at the edge only: here, and in the ledger, stands what is in
/// it, so that a replay never asks the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternatives(Option<Arc<[Resource]>>);

impl LeaseRequest {
    /// A lease on `resource` and nothing else.
    pub fn new(resource: Resource, mode: LeaseMode, ttl: TickDuration, nonce: Nonce) -> LeaseRequest {
        LeaseRequest {
            resource,
            alternatives: Alternatives::default(),
            mode,
            ttl,
            nonce,
            labels: Labels::default(),
        }
    }

    /// The same, but one of `alternatives` does as well.
    pub fn with_alternatives(self, alternatives: impl IntoIterator<Item = Resource>) -> LeaseRequest {
        LeaseRequest { alternatives: Alternatives::new(alternatives), ..self }
    }

    pub fn with_labels(self, labels: Labels) -> LeaseRequest {
        LeaseRequest { labels, ..self }
    }

    /// Every resource that will do, in the order in which they are tried.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> + Clone {
        std::iter::once(&self.resource).chain(self.alternatives.iter())
    }
}

impl Alternatives {
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> Alternatives {
        let resources: Arc<[Resource]> = resources.into_iter().collect();
        Alternatives((!resources.is_empty()).then_some(resources))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |resources| resources.len())
    }

    /// In the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> + Clone {
        self.0.as_deref().unwrap_or_default().iter()
    }
}

/// Whether no request names a resource twice, and each could get one of its own if everything were free.
pub(crate) fn can_be_assigned(requests: &[LeaseRequest]) -> bool {
    if let [only] = requests
        && only.alternatives.is_empty()
    {
        return true;
    }
    if requests.iter().all(|request| request.alternatives.is_empty()) {
        return are_distinct(requests.iter().map(|request| &request.resource));
    }
    let numbers = assign_resource_numbers(requests);
    let every: Vec<Vec<usize>> = requests
        .iter()
        .map(|request| request.resources().map(|resource| numbers[resource]).collect())
        .collect();
    requests.iter().all(|request| are_distinct(request.resources())) && find_matching(&every).is_ok()
}

/// Two resources of different requests that overlap, are not the same, and are requested in incompatible modes.
pub(crate) fn conflicting_overlap(requests: &[LeaseRequest]) -> Option<(&Resource, &Resource)> {
    let with_parts =
        |request: &&LeaseRequest| request.resources().any(|resource| is_hierarchical(resource.as_str()));
    let requests: Vec<&LeaseRequest> = requests.iter().filter(with_parts).collect();
    let pairs = requests
        .iter()
        .enumerate()
        .flat_map(|(index, one)| requests[..index].iter().map(move |other| (*other, *one)));
    let conflicting = pairs.filter(|(one, other)| !one.mode.is_compatible(other.mode));
    let mut names = conflicting.flat_map(|(one, other)| {
        one.resources().flat_map(move |name| other.resources().map(move |beside| (name, beside)))
    });
    names.find(|(one, other)| one != other && overlaps(one.as_str(), other.as_str()))
}

/// Those of `requests` that no other request covers: what blocks a covered request also blocks one of these. Each request
/// has to name one resource.
pub(crate) fn drop_covered_requests(
    requests: &[LeaseRequest],
) -> impl Iterator<Item = &LeaseRequest> + Clone {
    let named = requests
        .iter()
        .map(|request| (request.resource.as_str(), ModeSet::conflicting_with(request.mode).count()));
    uncovered_indices(named).into_iter().map(|place| &requests[place])
}

/// A number for each resource that is named, as [`find_matching`] expects it.
pub(crate) fn assign_resource_numbers(requests: &[LeaseRequest]) -> BTreeMap<&Resource, usize> {
    let mut numbers = BTreeMap::new();
    for resource in requests.iter().flat_map(LeaseRequest::resources) {
        let next = numbers.len();
        numbers.entry(resource).or_insert(next);
    }
    numbers
}

fn are_distinct<'a>(resources: impl Iterator<Item = &'a Resource>) -> bool {
    let mut resources: Vec<_> = resources.collect();
    resources.sort_unstable();
    resources.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(names: &str) -> LeaseRequest {
        let mut names = names.split('|').map(|name| Resource::parse(name).expect("a resource"));
        let first = names.next().expect("at least one");
        LeaseRequest::new(first, LeaseMode::Exclusive, TickDuration(1), Nonce::default())
            .with_alternatives(names)
    }

    #[test]
    fn lease_request_without_alternatives_stays_small() {
        assert_eq!(size_of::<LeaseRequest>(), 80);
        assert_eq!(request("a").with_alternatives([]), request("a"));
        assert_eq!(request("a|b").alternatives.len(), 1);
    }

    #[test]
    fn each_lease_request_requires_a_distinct_resource() {
        let fits = |requests: &[&str]| {
            can_be_assigned(&requests.iter().map(|names| request(names)).collect::<Vec<_>>())
        };
        assert!(fits(&["a", "b"]) && !fits(&["a", "a"]));
        assert!(fits(&["a|b", "a|b"]) && !fits(&["a|b", "b|a", "a|b"]));
        assert!(fits(&["a|b", "a"]) && fits(&["a|b", "b|c", "a|c"]));
        assert!(!fits(&["a|b", "a", "b"]), "two are left with nothing");
        assert!(!fits(&["a|a"]) && !fits(&["c", "a|b|a"]), "one stands twice in one want");
    }
}
