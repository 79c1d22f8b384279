//! Pools: a name for any one of several resources.

use std::collections::BTreeMap;

use tenure_core::kernel::{Alternatives, Resource};
use tenure_core::rules::InvalidInput;
use thiserror::Error;

/// The most members of a pool: as many as the kernel looks at for one lease.
pub const MAX_MEMBERS: usize = 64;

/// What a request for any one of a pool ends with.
const ANY: &str = ":*";

/// The pools that there are. `tuner:*` is any free one of the pool `tuner`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePools(BTreeMap<String, Vec<Resource>>);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResourcePoolError {
    /// It has no members, or more than are looked at.
    #[error("the pool `{pool}` has {members} members; give it 1 to {MAX_MEMBERS}")]
    Size { pool: String, members: usize },
    #[error("the pool `{pool}` has `{member}` twice")]
    Twice { pool: String, member: String },
    /// A name that no resource can have.
    #[error("the pool `{pool}` has `{member}`, which cannot be a resource: {reason}")]
    Name { pool: String, member: String, reason: String },
}

impl ResourcePools {
    /// Adds the pool `domain`, with these names in it: `tuner` with `0` and `1` has `tuner:0` and `tuner:1`, which are
    /// tried in this order.
    pub fn add<'a>(
        &mut self,
        domain: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ResourcePoolError> {
        let pool = || domain.to_owned();
        let mut members = Vec::new();
        for name in names {
            let member = format!("{domain}:{name}");
            let wrong = |reason| ResourcePoolError::Name { pool: pool(), member: member.clone(), reason };
            if name == "*" || name.is_empty() || domain.contains(':') {
                return Err(wrong("a member has a name of its own, and a domain no colon".to_owned()));
            }
            let resource = Resource::parse(&member).map_err(|invalid| wrong(invalid.reason))?;
            if members.contains(&resource) {
                return Err(ResourcePoolError::Twice { pool: pool(), member });
            }
            members.push(resource);
        }
        if !(1..=MAX_MEMBERS).contains(&members.len()) {
            return Err(ResourcePoolError::Size { pool: pool(), members: members.len() });
        }
        self.0.insert(pool(), members);
        Ok(())
    }

    /// What a request for `name` may be granted: that resource, or any one of the pool that it names.
    pub(crate) fn resolve(&self, name: &str) -> Result<(Resource, Alternatives), InvalidInput> {
        let Some(domain) = name.strip_suffix(ANY) else {
            return Ok((Resource::parse(name)?, Alternatives::default()));
        };
        let Some([first, alternatives @ ..]) = self.0.get(domain).map(Vec::as_slice) else {
            let reason = "names a pool that is not configured; `[pools]` in the server's configuration says which there are";
            return Err(InvalidInput::new("resource", reason));
        };
        Ok((first.clone(), Alternatives::new(alternatives.iter().cloned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools() -> ResourcePools {
        let mut pools = ResourcePools::default();
        pools.add("tuner", ["0", "1"]).unwrap();
        pools
    }

    #[test]
    fn a_pool_resolves_to_its_members_in_order() {
        let (first, alternatives) = pools().resolve("tuner:*").unwrap();
        assert_eq!(first.as_str(), "tuner:0");
        assert_eq!(alternatives.iter().map(Resource::as_str).collect::<Vec<_>>(), ["tuner:1"]);
        let (only, alternatives) = pools().resolve("tuner:1").unwrap();
        assert!(only.as_str() == "tuner:1" && alternatives.is_empty());
        assert!(pools().resolve("door:*").is_err(), "nobody waits for a pool that is not there");
    }

    #[test]
    fn an_invalid_pool_is_rejected() {
        let many: Vec<String> = (0..=MAX_MEMBERS).map(|number| number.to_string()).collect();
        for names in [&[][..], &["a", "a"], &["*"], &[""], &["a\n"]] {
            assert!(ResourcePools::default().add("door", names.iter().copied()).is_err(), "{names:?}");
        }
        assert!(ResourcePools::default().add("door", many.iter().map(String::as_str)).is_err());
        assert!(ResourcePools::default().add("door", many[1..].iter().map(String::as_str)).is_ok());
        assert!(ResourcePools::default().add("a:b", ["c"]).is_err());
    }
}
