//! What an agent wants, each thing once.

use tenure_core::kernel::{Mode, Modes, Resource, Span, Want};

use super::names;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::http::leases::nonce;

/// The most intents in one list.
pub(super) const MOST: usize = 256;
/// The longest remark, in bytes.
const MOST_REMARK_BYTES: usize = 4_096;

/// One thing that an agent wants.
#[derive(Debug, PartialEq)]
pub(super) struct Intent {
    pub(super) resource: Resource,
    pub(super) mode: Mode,
    /// When it was intended, in milliseconds, as the agent says.
    pub(super) timestamp: Option<u64>,
}

/// The intents in `name`. Where one says in which session it is, that has to be `session`, if there is one.
pub(super) fn list(fields: &mut Fields, name: &str, session: Option<&str>) -> Result<Vec<Intent>, Failure> {
    fields.each(name, MOST, |fields| one(fields, session))
}

fn one(mut fields: Fields, session: Option<&str>) -> Result<Intent, Failure> {
    names::remark(&mut fields, "id", 256)?;
    names::remark(&mut fields, "subject", MOST_REMARK_BYTES)?;
    let mode = names::predicate(&mut fields)?;
    let resource = fields.within("object", names::object)?;
    let timestamp = fields.optional_number("timestamp")?;
    fields.optional_fraction("confidence")?;
    if let Some(own) = fields.optional_text("session_id")? {
        names::check_id("session_id", &own)?;
        if session.is_some_and(|session| session != own) {
            return Err(Failure::invalid(
                "session_id",
                "must be the session_id of the manifest; leave it out",
            ));
        }
    }
    fields.finish()?;
    Ok(Intent { resource, mode, timestamp })
}

/// Every resource once, in the order in which they are first named, in the strongest way in which one is named.
pub(super) fn merge(intents: &[Intent]) -> Vec<(Resource, Mode)> {
    let mut merged: Vec<(Resource, Mode)> = Vec::new();
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
fn stronger(one: Mode, other: Mode) -> Mode {
    let (first, second) = (one.min(other), one.max(other));
    let both = Modes::kept_out_by(first).union(Modes::kept_out_by(second));
    let covers = |mode: &Mode| both.is_within(Modes::kept_out_by(*mode));
    // Of the modes of agents, one always keeps out what the other does.
    [first, second].into_iter().find(covers).unwrap_or(Mode::Mutates)
}

/// What the kernel is asked for.
pub(super) fn wants(merged: Vec<(Resource, Mode)>, ttl: Span) -> Result<Vec<Want>, Failure> {
    merged.into_iter().map(|(resource, mode)| Ok(Want::new(resource, mode, ttl, nonce()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_of_two_modes_covers_both() {
        use Mode::{Consumes, Deletes, DependsOn, Mutates, Provides, Renames};
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
        let modes = || Mode::ALL.into_iter().filter(|mode| mode.is_of_agents());
        for (one, other) in modes().flat_map(|one| modes().map(move |other| (one, other))) {
            let stronger = stronger(one, other);
            assert!(stronger.covers(one) && stronger.covers(other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn intents_on_the_same_resource_are_merged_into_the_stronger_mode() {
        let intent =
            |name: &str, mode| Intent { resource: Resource::parse(name).unwrap(), mode, timestamp: None };
        let merged = merge(&[
            intent("FILE:b", Mode::Consumes),
            intent("FILE:a", Mode::Provides),
            intent("FILE:b", Mode::Mutates),
        ]);
        let names: Vec<_> = merged.iter().map(|(resource, mode)| (resource.as_str(), *mode)).collect();
        assert_eq!(names, [("FILE:b", Mode::Mutates), ("FILE:a", Mode::Provides)]);
    }
}
