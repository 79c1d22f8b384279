//! Which resource each want of a request gets: the first of those that it names with nothing in the way.
//!
//! The whole request is settled before anything of it is granted. Where wants name the same resources, the first
//! want gets the first one with which the others can still get theirs, and so on: a request that fits fits, in
//! whatever order its wants stand.

use std::collections::BTreeMap;

use super::decision_builder::{Blocker, DecisionBuilder, QueuePosition};
use super::lease_request::{LeaseRequest, assign_resource_numbers};
use super::matching::find_matching;
use super::name::Resource;

/// One resource for each want, no resource twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// There was none to make: each want names one resource.
    AsRequested,
    /// These, in the order of the wants.
    Chosen(Vec<Resource>),
}

/// Wants for which together too few resources are free, as places in their list. One more for any of them would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortage(pub(crate) Vec<usize>);

impl Assignment {
    /// The wants, each with its resource.
    pub(crate) fn pairs<'w>(
        &'w self,
        wants: &'w [LeaseRequest],
    ) -> impl Iterator<Item = (&'w LeaseRequest, &'w Resource)> {
        wants.iter().enumerate().map(move |(index, want)| match self {
            Assignment::AsRequested => (want, &want.resource),
            Assignment::Chosen(resources) => (want, &resources[index]),
        })
    }
}

impl DecisionBuilder<'_> {
    /// A resource for each of `wants`, seen from `place` in the queue. `has` says what the asking holder has
    /// already, where that counts: it is taken first.
    pub(crate) fn assign_resources(
        &self,
        wants: &[LeaseRequest],
        place: QueuePosition,
        has: impl Fn(&LeaseRequest, &Resource) -> bool,
    ) -> Result<Assignment, Shortage> {
        let is_free = |want: &LeaseRequest, resource: &Resource| {
            self.blockers(resource, want.mode, place).next().is_none()
        };
        if wants.iter().all(|want| want.alternatives.is_empty()) {
            let fits = |want: &LeaseRequest| has(want, &want.resource) || is_free(want, &want.resource);
            let short = wants.iter().position(|want| !fits(want));
            return short.map_or(Ok(Assignment::AsRequested), |want| Err(Shortage(vec![want])));
        }
        // The first is enough for one who asks for nothing else.
        let most = if wants.len() == 1 { 1 } else { usize::MAX };
        let numbers = assign_resource_numbers(wants);
        let will_do = wants.iter().map(|want| {
            let (own, others): (Vec<_>, Vec<_>) = want.resources().partition(|resource| has(want, resource));
            let free = others.into_iter().filter(|resource| is_free(want, resource));
            own.into_iter().chain(free).map(|resource| numbers[resource]).take(most).collect()
        });
        let chosen = find_matching(&will_do.collect::<Vec<Vec<usize>>>()).map_err(Shortage)?;
        let names: BTreeMap<usize, &Resource> =
            numbers.into_iter().map(|(name, number)| (number, name)).collect();
        Ok(Assignment::Chosen(chosen.into_iter().map(|number| names[&number].clone()).collect()))
    }

    /// What keeps `short` from being granted for the shortest time: of each resource that would help the first thing
    /// in its way, and of those the one that is over first.
    pub(crate) fn earliest_blocker<'b>(
        &'b self,
        wants: &'b [LeaseRequest],
        short: &Shortage,
        has: impl Fn(&LeaseRequest, &Resource) -> bool,
    ) -> Option<(&'b Resource, Blocker<'b>)> {
        let wants = short.0.iter().map(|index| &wants[*index]);
        let resources = wants.flat_map(|want| want.resources().map(move |resource| (want, resource)));
        let missing = resources.filter(|(want, resource)| !has(want, resource));
        let held = missing.filter_map(|(want, resource)| {
            let first = self.blockers(resource, want.mode, QueuePosition::default()).next()?;
            Some((resource, first))
        });
        held.min_by_key(|(_, blocker)| blocker.until)
    }
}
