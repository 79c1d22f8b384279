//! Finds the resources that have something in common with one: see [`crate::rules::overlap`].

use std::collections::BTreeMap;
use std::ops::Bound;

use super::slab::Slot;
use super::{KernelState, LeaseEntry, ensure};
use crate::rules::overlap::{ResourcePattern, is_hierarchical};
use crate::value::Resource;

/// Resources that have parts, in the order of their names, and something about each. All others are not in here, and cost nothing.
#[derive(Debug, Clone)]
pub(crate) struct OverlapIndex<V> {
    names: BTreeMap<Resource, V>,
    /// Folders and patterns, by what names below them begin with, and then by their names: where they lie in memory must
    /// not show in an answer.
    below: BTreeMap<Box<str>, BTreeMap<Resource, V>>,
}

impl<V> Default for OverlapIndex<V> {
    fn default() -> Self {
        Self { names: BTreeMap::new(), below: BTreeMap::new() }
    }
}

impl<V: Copy> OverlapIndex<V> {
    pub(crate) fn insert(&mut self, name: &Resource, value: V) {
        if !is_hierarchical(name.as_str()) {
            return;
        }
        self.names.insert(name.clone(), value);
        if let ResourcePattern::Prefix(literal) = ResourcePattern::from_name(name.as_str()) {
            self.below.entry(literal.into()).or_default().insert(name.clone(), value);
        }
    }

    pub(crate) fn remove(&mut self, name: &Resource) {
        if self.names.remove(name).is_none() {
            return;
        }
        if let ResourcePattern::Prefix(literal) = ResourcePattern::from_name(name.as_str())
            && let Some(alike) = self.below.get_mut(literal)
        {
            alike.remove(name);
            if alike.is_empty() {
                self.below.remove(literal);
            }
        }
    }

    /// Every other resource that has something in common with `name`, whether that is in here or not.
    pub(crate) fn overlapping<'a>(
        &'a self,
        name: &'a Resource,
    ) -> impl Iterator<Item = (&'a Resource, V)> + 'a {
        let reach = (!self.names.is_empty() && is_hierarchical(name.as_str()))
            .then(|| ResourcePattern::from_name(name.as_str()));
        let above = reach.map(|reach| self.above(reach)).unwrap_or_default();
        let literal = match reach {
            Some(ResourcePattern::Prefix(literal)) => Some(literal),
            _ => None,
        };
        let below = literal.into_iter().flat_map(move |literal| {
            let from = self.names.range::<str, _>((Bound::Included(literal), Bound::Unbounded));
            let inside = from.take_while(move |(inside, _)| inside.as_str().starts_with(literal));
            inside.filter(move |(inside, _)| *inside != name).map(|(inside, value)| (inside, *value))
        });
        above.into_iter().chain(below)
    }

    /// Folders and patterns that begin as `reach` does, the longest beginning first. What begins like a folder or a pattern
    /// itself is not among them: it is found below.
    fn above(&self, reach: ResourcePattern<'_>) -> Vec<(&Resource, V)> {
        let mut text = match reach {
            ResourcePattern::Exact(text) => Some(text),
            ResourcePattern::Prefix(text) => shorter(text),
        };
        let mut found = Vec::new();
        while let Some(rest) = text {
            let up_to = (Bound::Unbounded, Bound::Included(rest));
            let Some((literal, alike)) = self.below.range::<str, _>(up_to).next_back() else { break };
            if rest.starts_with(&**literal) {
                found.extend(alike.iter().map(|(name, value)| (name, *value)));
                text = shorter(literal).and_then(|shorter| rest.get(..shorter.len()));
            } else {
                // What is no beginning shows how much of the text the next can share.
                text = Some(common(rest, literal));
            }
        }
        found
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Every resource that has parts, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Resource, V)> {
        self.names.iter().map(|(name, value)| (name, *value))
    }
}

/// The text without its last letter.
fn shorter(text: &str) -> Option<&str> {
    let (end, _) = text.char_indices().next_back()?;
    Some(&text[..end])
}

/// How both begin.
fn common<'a>(text: &'a str, other: &str) -> &'a str {
    let alike = text.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    &text[..alike.map(|(letter, _)| letter.len_utf8()).sum()]
}

impl KernelState {
    /// The leases that have something in common with `resource`, its own first, those that are over but not announced
    /// among them.
    pub(crate) fn leases_overlapping<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'a LeaseEntry> {
        self.slots_overlapping(resource).flat_map(|slot| self.leases_on(slot))
    }

    /// Where `resource` stands, if it is known, and then every other that has something in common with it.
    pub(crate) fn slots_overlapping<'a>(&'a self, resource: &'a Resource) -> impl Iterator<Item = Slot> + 'a {
        self.slots_overlapping_at(self.find_resource(resource), resource)
    }

    /// The same, for who knows where it stands: looking for a name takes longer than everything else here.
    pub(crate) fn slots_overlapping_at<'a>(
        &'a self,
        slot: Option<Slot>,
        resource: &'a Resource,
    ) -> impl Iterator<Item = Slot> + 'a {
        slot.into_iter().chain(self.overlaps.overlapping(resource).map(|(_, slot)| slot))
    }

    /// Every two leases that have something in common go together, or are one holder's; and whatever has parts is found.
    pub(in crate::kernel) fn invariant_overlapping_leases_are_compatible(&self) -> Result<(), String> {
        let with_parts =
            self.resources.iter().filter(|(_, entry)| is_hierarchical(entry.name.as_str())).count();
        ensure(with_parts == self.overlaps.len(), || "resources with parts are not all found".into())?;
        for (name, slot) in self.overlaps.iter() {
            let same = self.find_resource(name) == Some(slot);
            ensure(same, || format!("{name} is found in a wrong place"))?;
            for (_, other) in self.overlaps.overlapping(name) {
                for lease in self.leases_on(slot) {
                    let conflicts = |one: &&LeaseEntry| {
                        !one.terms.mode.is_compatible(lease.terms.mode) && one.holder != lease.holder
                    };
                    let found = self.leases_on(other).find(conflicts);
                    ensure(found.is_none(), || {
                        format!("{name} and {} are both held", self.resource_name(other))
                    })?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::kernel::state::slab::Slab;
    use crate::rules::overlap::overlaps;

    proptest! {
        /// As asking of each one after the other.
        #[test]
        fn overlap_index_matches_a_linear_search(
            names in proptest::collection::btree_set("(FILE:|SYMBOL:|work:)(a|b|/|\\*|ä){0,5}", 1..24),
            query in "(FILE:|work:)(a|b|/|\\*|ä){0,5}",
        ) {
            let names: Vec<Resource> = names.iter().map(|name| Resource::parse(name).unwrap()).collect();
            let (mut slab, mut reaches) = (Slab::default(), OverlapIndex::default());
            let slots: Vec<Slot> = names.iter().map(|name| slab.insert(name.clone())).collect();
            names.iter().zip(&slots).for_each(|(name, slot)| reaches.insert(name, *slot));
            for query in names.iter().chain([&Resource::parse(&query).unwrap()]) {
                let has = |other: &Resource| other != query && overlaps(query.as_str(), other.as_str());
                let expected: BTreeSet<&Resource> = names.iter().filter(|name| has(name)).collect();
                let found: Vec<&Resource> = reaches.overlapping(query).map(|(_, slot)| slab.get(slot)).collect();
                prop_assert_eq!(found.len(), expected.len(), "{} of {:?}", query, found);
                prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
            }
            names.iter().for_each(|name| reaches.remove(name));
            prop_assert!(reaches.names.is_empty() && reaches.below.is_empty());
        }
    }
}
