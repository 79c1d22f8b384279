//! What is asked for: one lease, on one resource or on any one of several.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assign::assign;
use super::mode::{Mode, Modes};
use super::name::{Labels, Resource};
use super::value::{Nonce, Span};
use crate::rules::overlap::{has_parts, overlap, uncovered};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    pub resource: Resource,
    /// What would do as well.
    pub others: Others,
    pub mode: Mode,
    /// For how long, unless it is renewed.
    pub ttl: Span,
    pub nonce: Nonce,
    /// For people and programs of the caller's.
    pub labels: Labels,
}

/// Further resources, any one of which does as well as the first, in the order in which they are tried.
///
/// Nearly always there are none. A pool has a name at the edge only: here, and in the ledger, stands what is in
/// it, so that a replay never asks the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Others(Option<Arc<[Resource]>>);

impl Want {
    /// A lease on `resource` and nothing else.
    pub fn new(resource: Resource, mode: Mode, ttl: Span, nonce: Nonce) -> Want {
        Want { resource, others: Others::default(), mode, ttl, nonce, labels: Labels::default() }
    }

    /// The same, but one of `others` does as well.
    pub fn or(self, others: impl IntoIterator<Item = Resource>) -> Want {
        Want { others: Others::new(others), ..self }
    }

    pub fn labelled(self, labels: Labels) -> Want {
        Want { labels, ..self }
    }

    /// Every resource that will do, in the order in which they are tried.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> + Clone {
        std::iter::once(&self.resource).chain(self.others.iter())
    }
}

impl Others {
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> Others {
        let resources: Arc<[Resource]> = resources.into_iter().collect();
        Others((!resources.is_empty()).then_some(resources))
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

/// Whether no want names a resource twice, and each could get one of its own if everything were free.
pub(crate) fn each_can_have_its_own(wants: &[Want]) -> bool {
    if let [only] = wants
        && only.others.is_empty()
    {
        return true;
    }
    if wants.iter().all(|want| want.others.is_empty()) {
        return is_each_once(wants.iter().map(|want| &want.resource));
    }
    let numbers = number_resources(wants);
    let every: Vec<Vec<usize>> =
        wants.iter().map(|want| want.resources().map(|resource| numbers[resource]).collect()).collect();
    wants.iter().all(|want| is_each_once(want.resources())) && assign(&every).is_ok()
}

/// Two resources of different wants that overlap, though they are not the same, and do not go together as they are wanted.
pub(crate) fn overlapping(wants: &[Want]) -> Option<(&Resource, &Resource)> {
    let with_parts = |want: &&Want| want.resources().any(|resource| has_parts(resource.as_str()));
    let wants: Vec<&Want> = wants.iter().filter(with_parts).collect();
    let pairs = wants
        .iter()
        .enumerate()
        .flat_map(|(index, one)| wants[..index].iter().map(move |other| (*other, *one)));
    let apart = pairs.filter(|(one, other)| !one.mode.goes_with(other.mode));
    let mut names = apart.flat_map(|(one, other)| {
        one.resources().flat_map(move |name| other.resources().map(move |beside| (name, beside)))
    });
    names.find(|(one, other)| one != other && overlap(one.as_str(), other.as_str()))
}

/// Those of `wants` that no other covers: whoever is in the way of one of the others is in the way of one of these too. Each
/// has to name one resource.
pub(crate) fn widest(wants: &[Want]) -> impl Iterator<Item = &Want> + Clone {
    let named = wants.iter().map(|want| (want.resource.as_str(), Modes::kept_out_by(want.mode).count()));
    uncovered(named).into_iter().map(|place| &wants[place])
}

/// A number for each resource that is named, as [`assign`] wants it.
pub(crate) fn number_resources(wants: &[Want]) -> BTreeMap<&Resource, usize> {
    let mut numbers = BTreeMap::new();
    for resource in wants.iter().flat_map(Want::resources) {
        let next = numbers.len();
        numbers.entry(resource).or_insert(next);
    }
    numbers
}

fn is_each_once<'a>(resources: impl Iterator<Item = &'a Resource>) -> bool {
    let mut resources: Vec<_> = resources.collect();
    resources.sort_unstable();
    resources.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(names: &str) -> Want {
        let mut names = names.split('|').map(|name| Resource::parse(name).expect("a resource"));
        let first = names.next().expect("at least one");
        Want::new(first, Mode::Exclusive, Span(1), Nonce::default()).or(names)
    }

    #[test]
    fn lease_request_without_alternatives_stays_small() {
        assert_eq!(size_of::<Want>(), 80);
        assert_eq!(want("a").or([]), want("a"));
        assert_eq!(want("a|b").others.len(), 1);
    }

    #[test]
    fn each_lease_request_requires_a_distinct_resource() {
        let fits = |wants: &[&str]| {
            each_can_have_its_own(&wants.iter().map(|names| want(names)).collect::<Vec<_>>())
        };
        assert!(fits(&["a", "b"]) && !fits(&["a", "a"]));
        assert!(fits(&["a|b", "a|b"]) && !fits(&["a|b", "b|a", "a|b"]));
        assert!(fits(&["a|b", "a"]) && fits(&["a|b", "b|c", "a|c"]));
        assert!(!fits(&["a|b", "a", "b"]), "two are left with nothing");
        assert!(!fits(&["a|a"]) && !fits(&["c", "a|b|a"]), "one stands twice in one want");
    }
}
