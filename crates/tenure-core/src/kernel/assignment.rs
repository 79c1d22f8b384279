//! Assigns a resource to each lease request of a command: the first one it names that nothing blocks.
//!
//! The whole command is assigned before anything is granted. Where lease requests name the same resources, the first
//! one gets the first resource that still leaves one for each of the others, and so on. Whether a command fits does not
//! depend on the order of its lease requests.

use std::collections::BTreeMap;

use super::bipartite::find_matching;
use super::decision_builder::{Blocker, DecisionBuilder, QueuePosition};
use super::lease_request::{LeaseRequest, assign_resource_numbers};
use super::name::Resource;

/// One resource for each lease request, no resource twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// No alternatives: each lease request names one resource.
    AsRequested,
    /// These, in the order of the lease requests.
    Chosen(Vec<Resource>),
}

/// Wants for which together too few resources are free, as places in their list. One more for any of them would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortage(pub(crate) Vec<usize>);

impl Assignment {
    /// The lease requests, each with its resource.
    pub(crate) fn pairs<'w>(
        &'w self,
        requests: &'w [LeaseRequest],
    ) -> impl Iterator<Item = (&'w LeaseRequest, &'w Resource)> {
        requests.iter().enumerate().map(move |(index, request)| match self {
            Assignment::AsRequested => (request, &request.resource),
            Assignment::Chosen(resources) => (request, &resources[index]),
        })
    }
}

impl DecisionBuilder<'_> {
    /// A resource for each of `requests`, seen from `place` in the queue. `has` says what the requesting holder has
    /// already, where that counts: it is taken first.
    pub(crate) fn assign_resources(
        &self,
        requests: &[LeaseRequest],
        place: QueuePosition,
        has: impl Fn(&LeaseRequest, &Resource) -> bool,
    ) -> Result<Assignment, Shortage> {
        let is_free = |request: &LeaseRequest, resource: &Resource| {
            self.blockers(resource, request.mode, place).next().is_none()
        };
        if requests.iter().all(|request| request.alternatives.is_empty()) {
            let fits = |request: &LeaseRequest| {
                has(request, &request.resource) || is_free(request, &request.resource)
            };
            let short = requests.iter().position(|request| !fits(request));
            return short.map_or(Ok(Assignment::AsRequested), |index| Err(Shortage(vec![index])));
        }
        // The first is enough for one who asks for nothing else.
        let max = if requests.len() == 1 { 1 } else { usize::MAX };
        let numbers = assign_resource_numbers(requests);
        let will_do = requests.iter().map(|request| {
            let (own, rest): (Vec<_>, Vec<_>) =
                request.resources().partition(|resource| has(request, resource));
            let free = rest.into_iter().filter(|resource| is_free(request, resource));
            own.into_iter().chain(free).map(|resource| numbers[resource]).take(max).collect()
        });
        let chosen = find_matching(&will_do.collect::<Vec<Vec<usize>>>()).map_err(Shortage)?;
        let names: BTreeMap<usize, &Resource> =
            numbers.into_iter().map(|(name, number)| (number, name)).collect();
        Ok(Assignment::Chosen(chosen.into_iter().map(|number| names[&number].clone()).collect()))
    }

    /// What keeps `short` from being granted for the shortest time: of each resource that would help the first thing
    /// in its way, and of those the one that is over first.
    pub(crate) fn blocker_ending_first<'b>(
        &'b self,
        requests: &'b [LeaseRequest],
        short: &Shortage,
        has: impl Fn(&LeaseRequest, &Resource) -> bool,
    ) -> Option<(&'b Resource, Blocker<'b>)> {
        let requests = short.0.iter().map(|index| &requests[*index]);
        let resources =
            requests.flat_map(|request| request.resources().map(move |resource| (request, resource)));
        let missing = resources.filter(|(request, resource)| !has(request, resource));
        let held = missing.filter_map(|(request, resource)| {
            let first = self.blockers(resource, request.mode, QueuePosition::default()).next()?;
            Some((resource, first))
        });
        held.min_by_key(|(_, blocker)| blocker.until)
    }
}
