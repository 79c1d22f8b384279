//! Which resources are, in part, the same thing: a folder and what is below it, a pattern and what it may mean.
//!
//! Only resources of the kinds that agents name have such parts. Every other name means itself: who leases `deploy:a/`
//! does not lease `deploy:a/b`.

use std::cmp::Reverse;

/// The kinds of resources that have parts.
pub const HIERARCHICAL_KINDS: [&str; 5] =
    ["FILE:", "SYMBOL:", "API_ENDPOINT:", "DATABASE_TABLE:", "CONFIG_KEY:"];

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourcePattern<'a> {
    Exact(&'a str),
    /// Whatever begins like this: a folder, or a pattern, of which what stands before its first wildcard counts.
    Prefix(&'a str),
}

impl<'a> ResourcePattern<'a> {
    /// What `name` means.
    ///
    /// `FILE:src/` is everything below that folder, `FILE:src` is not. `*` and `?` make a pattern, and so do braces with a
    /// comma in them. A bracket alone does not: `[id].tsx` is a common name.
    pub fn from_name(name: &'a str) -> Self {
        if !is_hierarchical(name) {
            return ResourcePattern::Exact(name);
        }
        if let Some(end) = first_wildcard(name) {
            return ResourcePattern::Prefix(&name[..end]);
        }
        if name.ends_with('/') { ResourcePattern::Prefix(name) } else { ResourcePattern::Exact(name) }
    }

    /// What names begin with, or are.
    pub fn literal(self) -> &'a str {
        match self {
            ResourcePattern::Exact(text) | ResourcePattern::Prefix(text) => text,
        }
    }

    /// Whether all of the other is part of this one.
    pub fn covers(self, other: ResourcePattern<'_>) -> bool {
        match (self, other) {
            (ResourcePattern::Prefix(one), other) => other.literal().starts_with(one),
            (ResourcePattern::Exact(one), ResourcePattern::Exact(other)) => one == other,
            (ResourcePattern::Exact(_), ResourcePattern::Prefix(_)) => false,
        }
    }

    /// Whether the two have something in common.
    pub fn overlaps(self, other: ResourcePattern<'_>) -> bool {
        match (self, other) {
            (ResourcePattern::Exact(one), ResourcePattern::Exact(other)) => one == other,
            (ResourcePattern::Prefix(one), ResourcePattern::Exact(other)) => other.starts_with(one),
            (ResourcePattern::Exact(one), ResourcePattern::Prefix(other)) => one.starts_with(other),
            (ResourcePattern::Prefix(one), ResourcePattern::Prefix(other)) => {
                one.starts_with(other) || other.starts_with(one)
            }
        }
    }
}

/// Whether two resources have something in common.
///
/// ```
/// use tenure_core::rules::overlap::overlaps;
/// assert!(overlaps("FILE:src/", "FILE:src/lib.rs") && !overlaps("FILE:src", "FILE:src/lib.rs"));
/// assert!(overlaps("FILE:src/*.rs", "FILE:src/lib.rs"));
/// assert!(!overlaps("deploy:a/", "deploy:a/b"));
/// ```
pub fn overlaps(one: &str, other: &str) -> bool {
    one == other || ResourcePattern::from_name(one).overlaps(ResourcePattern::from_name(other))
}

/// The places of those of `names` that nothing else among them covers: that neither lie within another that is at least as
/// strong, nor mean the same as one before them. In their order.
///
/// Two that remain overlap only if the inner one is the stronger, so whoever walks over what is around each of them meets
/// nothing much more often than there are strengths.
pub fn uncovered_indices<'a>(names: impl IntoIterator<Item = (&'a str, u8)>) -> Vec<usize> {
    let names = names.into_iter().enumerate();
    let mut all: Vec<_> =
        names.map(|(place, (name, strength))| (ResourcePattern::from_name(name), strength, place)).collect();
    let is_folder = |reach: &ResourcePattern<'_>| matches!(reach, ResourcePattern::Prefix(_));
    if !all.iter().any(|(reach, ..)| is_folder(reach)) {
        return (0..all.len()).collect();
    }
    // Whatever is below a folder comes after it, and nothing else before that.
    all.sort_unstable_by_key(|(reach, strength, place)| {
        (reach.literal(), !is_folder(reach), Reverse(*strength), *place)
    });
    let mut above: Vec<(ResourcePattern<'_>, u8)> = Vec::new();
    all.retain(|(reach, strength, _)| {
        while above.pop_if(|(folder, _)| !folder.covers(*reach)).is_some() {}
        let remains = above.iter().all(|(_, stronger)| stronger < strength);
        if remains && is_folder(reach) {
            above.push((*reach, *strength));
        }
        remains
    });
    let mut places: Vec<usize> = all.into_iter().map(|(_, _, place)| place).collect();
    places.sort_unstable();
    places
}

/// Whether resources of this name's kind have parts.
pub fn is_hierarchical(name: &str) -> bool {
    // Nearly all other names begin with a small letter.
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && HIERARCHICAL_KINDS.iter().any(|kind| name.starts_with(kind))
}

/// Where the first wildcard stands, if there is one.
fn first_wildcard(name: &str) -> Option<usize> {
    let brace = name.find('{').filter(|start| {
        let inside = &name[*start..];
        inside.find('}').is_some_and(|end| inside[..end].contains(','))
    });
    let plain = name.find(['*', '?']);
    let first = plain.into_iter().chain(brace).min()?;
    // In a pattern a bracket is one too.
    name.find('[').into_iter().chain([first]).min()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn resource_names_parse_to_exact_or_prefix_patterns() {
        let below = ["FILE:src/", "FILE:src/*.rs", "FILE:src/?", "FILE:src/{a,b}.rs", "FILE:src/[ab]*"];
        for name in below {
            assert_eq!(ResourcePattern::from_name(name), ResourcePattern::Prefix("FILE:src/"), "{name}");
        }
        assert_eq!(ResourcePattern::from_name("FILE:*"), ResourcePattern::Prefix("FILE:"));
        assert_eq!(ResourcePattern::from_name("CONFIG_KEY:a.*"), ResourcePattern::Prefix("CONFIG_KEY:a."));
        for name in ["FILE:src", "FILE:app/[id].tsx", "FILE:a{b}", "work:a/", "file:src/", "deploy:*", "FILE"]
        {
            assert_eq!(ResourcePattern::from_name(name), ResourcePattern::Exact(name), "{name}");
        }
    }

    /// By trying every name that could be meant: no two that share one are told apart.
    #[test]
    fn overlaps_matches_an_exhaustive_comparison() {
        let names = [
            "FILE:a",
            "FILE:a/",
            "FILE:a/b",
            "FILE:a/b/",
            "FILE:a/b/c",
            "FILE:ab",
            "FILE:a*",
            "FILE:a/*/c",
            "FILE:b/",
        ];
        let means = |name: &str, thing: &str| match ResourcePattern::from_name(name) {
            ResourcePattern::Exact(own) => own == thing,
            ResourcePattern::Prefix(own) => thing.starts_with(own),
        };
        let things = [
            "FILE:a",
            "FILE:a/",
            "FILE:a/b",
            "FILE:a/b/",
            "FILE:a/b/c",
            "FILE:a/x/c",
            "FILE:ab",
            "FILE:abc",
            "FILE:b/",
            "FILE:b/x",
        ];
        for one in names {
            for other in names {
                let shared = things.iter().any(|thing| means(one, thing) && means(other, thing));
                assert_eq!(overlaps(one, other), shared, "{one} and {other}");
            }
        }
    }

    proptest! {
        /// Whatever overlaps one that does not remain overlaps one that does and is as strong; and of those that remain
        /// none is within another that is as strong.
        #[test]
        fn every_covered_name_is_covered_by_a_remaining_one(
            names in proptest::collection::vec(("(FILE:|work:)(a|b|/|\\*){0,4}", 0..3_u8), 1..16),
            other in "(FILE:|work:)(a|b|/|\\*){0,4}",
        ) {
            let remain = uncovered_indices(names.iter().map(|(name, strength)| (&name[..], *strength)));
            prop_assert!(remain.is_sorted_by(|one, other| one < other));
            for (place, (name, strength)) in names.iter().enumerate() {
                let alike = |at: &&usize| names[**at].1 >= *strength && overlaps(&names[**at].0, &other);
                prop_assert!(!overlaps(name, &other) || remain.iter().any(|at| alike(&at)), "{name}");
                let within = |at: &usize| {
                    let (outer, stronger) = &names[*at];
                    let is_folder = matches!(ResourcePattern::from_name(outer), ResourcePattern::Prefix(_));
                    is_folder && *at != place && stronger >= strength && ResourcePattern::from_name(outer).covers(ResourcePattern::from_name(name))
                };
                prop_assert!(!remain.contains(&place) || !remain.iter().any(within), "{name}");
            }
        }
    }
}
