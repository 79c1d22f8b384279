//! What an agent wants, each thing once.

use tenure_core::kernel::{LeaseMode, LeaseRequest, ModeSet, Resource, TickDuration};

use super::parse;
use crate::http::fields::Fields;
use crate::http::leases::nonce;
use crate::http::response::HttpError;

/// The most intents in one list.
pub(super) const MAX_INTENTS: usize = 256;
/// The longest remark, in bytes.
const MAX_SUBJECT_BYTES: usize = 4_096;

/// One thing that an agent wants.
#[derive(Debug, PartialEq)]
pub(super) struct ManifestIntent {
    pub(super) resource: Resource,
    pub(super) mode: LeaseMode,
    /// When it was intended, in milliseconds, as the agent says.
    pub(super) timestamp: Option<u64>,
}

/// The intents in `name`. Where one says in which session it is, that has to be `session`, if there is one.
pub(super) fn parse(
    fields: &mut Fields,
    name: &str,
    session: Option<&str>,
) -> Result<Vec<ManifestIntent>, HttpError> {
    fields.each(name, MAX_INTENTS, |fields| one(fields, session))
}

fn one(mut fields: Fields, session: Option<&str>) -> Result<ManifestIntent, HttpError> {
    parse::validate_ignored_text(&mut fields, "id", 256)?;
    parse::validate_ignored_text(&mut fields, "subject", MAX_SUBJECT_BYTES)?;
    let mode = parse::parse_lease_mode(&mut fields)?;
    let resource = fields.read_object("object", parse::object)?;
    let timestamp = fields.optional_number("timestamp")?;
    fields.optional_fraction("confidence")?;
    if let Some(own) = fields.optional_text("session_id")? {
        parse::check_id("session_id", &own)?;
        if session.is_some_and(|session| session != own) {
            return Err(HttpError::invalid(
                "session_id",
                "must be the session_id of the manifest; leave it out",
            ));
        }
    }
    fields.reject_remaining()?;
    Ok(ManifestIntent { resource, mode, timestamp })
}

/// Every resource once, in the order in which they are first named, in the strongest way in which one is named.
pub(super) fn merge(intents: &[ManifestIntent]) -> Vec<(Resource, LeaseMode)> {
    let mut merged: Vec<(Resource, LeaseMode)> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for intent in intents {
        let next = merged.len();
        let place = *places.entry(&intent.resource).or_insert(next);
        match merged.get_mut(place) {
            Some((_, mode)) => *mode = stronger(*mode, intent.mode),
            None => merged.push((intent.resource.clone(), intent.mode)),
        }
    }
    merged
}

/// The mode that keeps out what both keep out. Which of them was named first does not matter: the same things in another
/// order are the same manifest.
fn stronger(one: LeaseMode, other: LeaseMode) -> LeaseMode {
    let (first, second) = (one.min(other), one.max(other));
    let both = ModeSet::conflicting_with(first).union(ModeSet::conflicting_with(second));
    let covers = |mode: &LeaseMode| both.is_subset(ModeSet::conflicting_with(*mode));
    // Of the modes of agents, one always keeps out what the other does.
    [first, second].into_iter().find(covers).unwrap_or(LeaseMode::Mutates)
}

/// What the kernel is asked for.
pub(super) fn lease_requests(
    merged: Vec<(Resource, LeaseMode)>,
    ttl: TickDuration,
) -> Result<Vec<LeaseRequest>, HttpError> {
    merged.into_iter().map(|(resource, mode)| Ok(LeaseRequest::new(resource, mode, ttl, nonce()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_of_two_modes_covers_both() {
        use LeaseMode::{Consumes, Deletes, DependsOn, Mutates, Provides, Renames};
        let pairs = [
            ((Provides, Consumes), Provides),
            ((Consumes, DependsOn), Consumes),
            ((DependsOn, Mutates), Mutates),
            ((Provides, Deletes), Deletes),
            ((Mutates, Deletes), Mutates),
            ((Deletes, Renames), Deletes),
        ];
        for ((one, other), expected) in pairs {
            assert_eq!(
                (stronger(one, other), stronger(other, one)),
                (expected, expected),
                "{one:?} {other:?}"
            );
        }
        let modes = || LeaseMode::ALL.into_iter().filter(|mode| mode.is_agent_mode());
        for (one, other) in modes().flat_map(|one| modes().map(move |other| (one, other))) {
            let stronger = stronger(one, other);
            assert!(stronger.covers(one) && stronger.covers(other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn intents_on_the_same_resource_are_merged_into_the_stronger_mode() {
        let intent = |name: &str, mode| ManifestIntent {
            resource: Resource::parse(name).unwrap(),
            mode,
            timestamp: None,
        };
        let merged = merge(&[
            intent("FILE:b", LeaseMode::Consumes),
            intent("FILE:a", LeaseMode::Provides),
            intent("FILE:b", LeaseMode::Mutates),
        ]);
        let names: Vec<_> = merged.iter().map(|(resource, mode)| (resource.as_str(), *mode)).collect();
        assert_eq!(names, [("FILE:b", LeaseMode::Mutates), ("FILE:a", LeaseMode::Provides)]);
    }
}
