//! Which resources are, in part, the same thing: a folder and what is below it, a pattern and what it may mean.
//!
//! Only resources of the kinds that agents name have such parts. Every other name means itself: who leases `deploy:a/`
//! does not lease `deploy:a/b`.

/// The kinds of resources that have parts.
pub const KINDS: [&str; 5] = ["FILE:", "SYMBOL:", "API_ENDPOINT:", "DATABASE_TABLE:", "CONFIG_KEY:"];

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// Itself.
    Itself(&'a str),
    /// Whatever begins like this: a folder, or a pattern, of which what stands before its first wildcard counts.
    Below(&'a str),
}

impl<'a> Reach<'a> {
    /// What `name` means.
    ///
    /// `FILE:src/` is everything below that folder, `FILE:src` is not. `*` and `?` make a pattern, and so do braces with a
    /// comma in them. A bracket alone does not: `[id].tsx` is a common name.
    pub fn of(name: &'a str) -> Self {
        if !has_parts(name) {
            return Reach::Itself(name);
        }
        if let Some(end) = first_wildcard(name) {
            return Reach::Below(&name[..end]);
        }
        if name.ends_with('/') { Reach::Below(name) } else { Reach::Itself(name) }
    }

    /// What names begin with, or are.
    pub fn literal(self) -> &'a str {
        match self {
            Reach::Itself(text) | Reach::Below(text) => text,
        }
    }

    /// Whether all of the other is part of this one.
    pub fn covers(self, other: Reach<'_>) -> bool {
        match (self, other) {
            (Reach::Below(one), other) => other.literal().starts_with(one),
            (Reach::Itself(one), Reach::Itself(other)) => one == other,
            (Reach::Itself(_), Reach::Below(_)) => false,
        }
    }

    /// Whether the two have something in common.
    pub fn meets(self, other: Reach<'_>) -> bool {
        match (self, other) {
            (Reach::Itself(one), Reach::Itself(other)) => one == other,
            (Reach::Below(one), Reach::Itself(other)) => other.starts_with(one),
            (Reach::Itself(one), Reach::Below(other)) => one.starts_with(other),
            (Reach::Below(one), Reach::Below(other)) => one.starts_with(other) || other.starts_with(one),
        }
    }
}

/// Whether two resources have something in common.
///
/// ```
/// use tenure_core::rules::overlap::overlap;
/// assert!(overlap("FILE:src/", "FILE:src/lib.rs") && !overlap("FILE:src", "FILE:src/lib.rs"));
/// assert!(overlap("FILE:src/*.rs", "FILE:src/lib.rs"));
/// assert!(!overlap("deploy:a/", "deploy:a/b"));
/// ```
pub fn overlap(one: &str, other: &str) -> bool {
    one == other || Reach::of(one).meets(Reach::of(other))
}

/// Whether resources of this name's kind have parts.
pub fn has_parts(name: &str) -> bool {
    // Nearly all other names begin with a small letter.
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && KINDS.iter().any(|kind| name.starts_with(kind))
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
    use super::*;

    #[test]
    fn what_a_name_means() {
        let below = ["FILE:src/", "FILE:src/*.rs", "FILE:src/?", "FILE:src/{a,b}.rs", "FILE:src/[ab]*"];
        for name in below {
            assert_eq!(Reach::of(name), Reach::Below("FILE:src/"), "{name}");
        }
        assert_eq!(Reach::of("FILE:*"), Reach::Below("FILE:"));
        assert_eq!(Reach::of("CONFIG_KEY:a.*"), Reach::Below("CONFIG_KEY:a."));
        for name in ["FILE:src", "FILE:app/[id].tsx", "FILE:a{b}", "work:a/", "file:src/", "deploy:*", "FILE"]
        {
            assert_eq!(Reach::of(name), Reach::Itself(name), "{name}");
        }
    }

    /// By trying every name that could be meant: no two that share one are told apart.
    #[test]
    fn names_with_something_in_common_overlap() {
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
        let means = |name: &str, thing: &str| match Reach::of(name) {
            Reach::Itself(own) => own == thing,
            Reach::Below(own) => thing.starts_with(own),
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
                assert_eq!(overlap(one, other), shared, "{one} and {other}");
            }
        }
    }
}
