//! Assigns a resource to each lease request of a command: the first one it names that nothing blocks.
//!
//! The whole command is assigned before anything is granted. Where lease requests name the same resources, the first
//! one gets the first resource that still leaves one for each of the others, and so on. Whether a command fits does not
//! depend on the order of its lease requests.

use std::collections::BTreeMap;

use super::decision_builder::{Blocker, DecisionBuilder, QueuePosition};
use super::lease_request::{LeaseRequest, assign_resource_numbers};
use crate::value::Resource;

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

/// Gives each asker one of the things that will do for it, nothing twice: `will_do` lists them for each asker,
/// the one that it likes best first.
///
/// The first asker gets the first thing with which everybody can still get something, then the second does, and so
/// on: one answer, whatever else is in memory. If there is no such answer, the error names askers, in their order, who
/// together have too few things: one more for any of them would help.
pub(crate) fn find_matching(will_do: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let things = will_do.iter().flatten().max().map_or(0, |last| last + 1);
    let mut search =
        MatchingSearch { candidates: will_do, takers: vec![None; things], tried: vec![false; things] };
    for asker in 0..will_do.len() {
        search.tried.fill(false);
        if !search.assign_one(asker) {
            let tried = search.tried.iter().zip(&search.takers).filter(|(tried, _)| **tried);
            let mut short: Vec<usize> = tried.filter_map(|(_, taker)| *taker).chain([asker]).collect();
            short.sort_unstable();
            return Err(short);
        }
    }
    let mut settled: Vec<usize> = Vec::with_capacity(will_do.len());
    for (asker, things) in will_do.iter().enumerate() {
        // It gives back what it has and looks again, from the best on; those before it keep theirs.
        search.takers.iter_mut().filter(|taker| **taker == Some(asker)).for_each(|taker| *taker = None);
        search.tried.fill(false);
        settled.iter().for_each(|thing| search.tried[*thing] = true);
        search.assign_one(asker);
        let found = things.iter().find(|thing| search.takers[**thing] == Some(asker));
        settled.push(*found.expect("what it gave back is still there"));
    }
    Ok(settled)
}

struct MatchingSearch<'a> {
    candidates: &'a [Vec<usize>],
    /// Who has each thing.
    takers: Vec<Option<usize>>,
    /// What need not be tried again: whoever has it finds nothing else.
    tried: Vec<bool>,
}

impl MatchingSearch<'_> {
    /// Finds a thing for `asker`, and others for those who had to give theirs. Changes nothing if there is none.
    fn assign_one(&mut self, asker: usize) -> bool {
        let will_do = self.candidates;
        for thing in &will_do[asker] {
            if std::mem::replace(&mut self.tried[*thing], true) {
                continue;
            }
            if self.takers[*thing].is_none_or(|taker| self.assign_one(taker)) {
                self.takers[*thing] = Some(asker);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every answer there is, the one that the first asker likes best first.
    fn all(will_do: &[Vec<usize>], taken: &mut Vec<usize>) -> Vec<Vec<usize>> {
        let Some((first, rest)) = will_do.split_first() else { return vec![taken.clone()] };
        let mut answers = Vec::new();
        for thing in first {
            if !taken.contains(thing) {
                taken.push(*thing);
                answers.extend(all(rest, taken));
                taken.pop();
            }
        }
        answers
    }

    proptest! {
        #[test]
        fn matching_prefers_earlier_requests_and_reports_the_shortage(
            will_do in prop::collection::vec(Just((0..5_usize).collect::<Vec<_>>()).prop_shuffle(), 0..5),
            sizes in prop::collection::vec(0..5_usize, 5),
        ) {
            let will_do: Vec<Vec<usize>> =
                will_do.into_iter().zip(sizes).map(|(things, size)| things[..size].to_vec()).collect();
            let answers = all(&will_do, &mut Vec::new());
            match find_matching(&will_do) {
                Ok(found) => prop_assert_eq!(Some(&found), answers.first()),
                Err(short) => {
                    prop_assert!(answers.is_empty());
                    // One more thing for any of those named, and those up to the last of them all get one.
                    let last = *short.last().expect("at least the one who found nothing");
                    for asker in short {
                        let mut more = will_do[..=last].to_vec();
                        more[asker].push(9);
                        prop_assert!(!all(&more, &mut Vec::new()).is_empty(), "{} is not short", asker);
                    }
                }
            }
        }
    }
}
