//! The scope of a work lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::rules::{InvalidInput, check_name};

/// What a lease allows its holder: everything, or what it names and nothing else.
///
/// A namespace allows itself and what is below it at `/`. Whatever has `..` as one of its parts is never allowed, not even
/// where everything is: nobody knows where it leads.
///
/// ```
/// use tenure_core::authority::LeaseScope;
/// let scope = LeaseScope::limited(["T-17"], ["search"], ["src/web"]).unwrap();
/// assert!(scope.allows_namespace("src/web") && scope.allows_namespace("src/web/page.rs"));
/// assert!(!scope.allows_namespace("src/website") && !scope.allows_namespace("src"));
/// assert!(!LeaseScope::Unlimited.allows_namespace("src/../etc"));
/// let part = LeaseScope::limited([], ["search"], ["src/web/page.rs"]).unwrap();
/// assert!(part.is_within(&scope) && !scope.is_within(&part));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeaseScope {
    /// Everything.
    Unlimited,
    /// What is named. Shared, because a lease, its events and its children may all name the same.
    Limited(Arc<ScopeNames>),
}

/// What a limited scope names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ScopeNames {
    work_ids: BTreeSet<Box<str>>,
    tools: BTreeSet<Box<str>>,
    namespaces: BTreeSet<Box<str>>,
}

/// What something is spent for. What is not named is not asked about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Purpose {
    /// On which work.
    pub work_id: Option<Arc<str>>,
    /// With which tool.
    pub tool: Option<Arc<str>>,
    /// In which namespace.
    pub namespace: Option<Arc<str>>,
}

impl Purpose {
    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        *self == Purpose::default()
    }

    /// Checks what it names as a scope's names are checked, but for `..`, which is for the scope to refuse.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let named = [("workId", &self.work_id), ("tool", &self.tool), ("namespace", &self.namespace)];
        named.into_iter().try_for_each(|(field, name)| match name {
            Some(name) => check_entry(field, name),
            None => Ok(()),
        })
    }
}

impl LeaseScope {
    /// The most names of one kind.
    pub const MAX_NAMES: usize = 64;
    /// The longest name, in bytes.
    pub const MAX_NAME_BYTES: usize = 256;
    /// The most bytes of all names together.
    pub const MAX_BYTES: usize = 8 << 10;

    /// What is named, and nothing else. A name that stands twice stands once.
    pub fn limited<'a>(
        work_ids: impl IntoIterator<Item = &'a str>,
        tools: impl IntoIterator<Item = &'a str>,
        namespaces: impl IntoIterator<Item = &'a str>,
    ) -> Result<LeaseScope, InvalidInput> {
        let named = ScopeNames {
            work_ids: parse_names("scope.workIds", work_ids)?,
            tools: parse_names("scope.tools", tools)?,
            namespaces: parse_names("scope.namespaces", namespaces)?,
        };
        for name in &named.namespaces {
            // The first part of an absolute one is empty.
            if name.split('/').skip(1).any(str::is_empty) {
                let reason = "has a part that is empty; write a namespace without a slash at its end";
                return Err(InvalidInput::new("scope.namespaces", reason));
            }
        }
        let bytes: usize = named.sets().into_iter().flatten().map(|name| name.len()).sum();
        if bytes > Self::MAX_BYTES {
            let reason = format!("its names have {bytes} bytes; at most {} are allowed", Self::MAX_BYTES);
            return Err(InvalidInput::new("scope", reason));
        }
        Ok(LeaseScope::Limited(Arc::new(named)))
    }

    /// Whether work on this may be done.
    pub fn allows_work(&self, work_id: &str) -> bool {
        !has_parent_component(work_id)
            && self.limited_names().is_none_or(|named| named.work_ids.contains(work_id))
    }

    /// Whether this tool may be used.
    pub fn allows_tool(&self, tool: &str) -> bool {
        !has_parent_component(tool) && self.limited_names().is_none_or(|named| named.tools.contains(tool))
    }

    /// Whether something may be done in this namespace.
    pub fn allows_namespace(&self, namespace: &str) -> bool {
        let above = |named: &ScopeNames| {
            let itself = std::iter::once(namespace);
            let slashes = namespace.match_indices('/').map(|(at, _)| &namespace[..at]);
            itself.chain(slashes).any(|above| named.namespaces.contains(above))
        };
        !has_parent_component(namespace) && self.limited_names().is_none_or(above)
    }

    /// Whether everything that it is for is allowed.
    pub fn allows(&self, purpose: &Purpose) -> bool {
        purpose.work_id.as_deref().is_none_or(|name| self.allows_work(name))
            && purpose.tool.as_deref().is_none_or(|name| self.allows_tool(name))
            && purpose.namespace.as_deref().is_none_or(|name| self.allows_namespace(name))
    }

    /// Whether `parent` allows everything that this does.
    pub fn is_within(&self, parent: &LeaseScope) -> bool {
        match (self, parent) {
            (_, LeaseScope::Unlimited) => true,
            (LeaseScope::Unlimited, LeaseScope::Limited(_)) => false,
            (LeaseScope::Limited(own), LeaseScope::Limited(_)) => {
                own.work_ids.iter().all(|name| parent.allows_work(name))
                    && own.tools.iter().all(|name| parent.allows_tool(name))
                    && own.namespaces.iter().all(|name| parent.allows_namespace(name))
            }
        }
    }

    /// What it names: work ids, tools and namespaces, each sorted. Nothing where everything is allowed.
    pub fn names(&self) -> Option<[Vec<&str>; 3]> {
        let named = self.limited_names()?;
        Some(named.sets().map(|set| set.iter().map(AsRef::as_ref).collect()))
    }

    /// About how many bytes it takes.
    pub fn byte_size(&self) -> usize {
        self.limited_names()
            .map_or(0, |named| named.sets().into_iter().flatten().map(|name| name.len() + 4).sum())
    }

    /// The bytes that are signed: 0 for everything; else 1, and for work ids, tools and namespaces how many there are, in 4
    /// bytes, and each with its length before it, in 4 bytes. They are sorted, so that one scope has one form.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let Some(named) = self.limited_names() else { return vec![0] };
        let mut bytes = vec![1];
        let number = |bytes: &mut Vec<u8>, count: usize| {
            let count = u32::try_from(count).expect("a scope is small");
            bytes.extend_from_slice(&count.to_be_bytes());
        };
        for set in named.sets() {
            number(&mut bytes, set.len());
            for name in set {
                number(&mut bytes, name.len());
                bytes.extend_from_slice(name.as_bytes());
            }
        }
        bytes
    }

    /// Reads what [`Self::canonical_bytes`] writes, and nothing else.
    pub fn from_canonical_bytes(bytes: &[u8]) -> Result<LeaseScope, InvalidInput> {
        let wrong = || InvalidInput::new("scope", "is not in its one form");
        let (kind, mut rest) = bytes.split_first().ok_or_else(wrong)?;
        let number = |rest: &mut &[u8]| {
            let (count, after) = rest.split_first_chunk().ok_or_else(wrong)?;
            *rest = after;
            usize::try_from(u32::from_be_bytes(*count)).map_err(|_| wrong())
        };
        let scope = match kind {
            0 => LeaseScope::Unlimited,
            1 => {
                let mut sets: [Vec<&str>; 3] = Default::default();
                for set in &mut sets {
                    let count = number(&mut rest)?;
                    for _ in 0..count {
                        let length = number(&mut rest)?;
                        let (name, after) = rest.split_at_checked(length).ok_or_else(wrong)?;
                        set.push(std::str::from_utf8(name).map_err(|_| wrong())?);
                        rest = after;
                    }
                }
                let [work_ids, tools, namespaces] = sets;
                LeaseScope::limited(work_ids, tools, namespaces)?
            }
            _ => return Err(wrong()),
        };
        if scope.canonical_bytes() == bytes { Ok(scope) } else { Err(wrong()) }
    }

    fn limited_names(&self) -> Option<&ScopeNames> {
        match self {
            LeaseScope::Unlimited => None,
            LeaseScope::Limited(named) => Some(named),
        }
    }
}

impl ScopeNames {
    fn sets(&self) -> [&BTreeSet<Box<str>>; 3] {
        [&self.work_ids, &self.tools, &self.namespaces]
    }
}

/// Whether a part of a name is `..`.
pub(crate) fn has_parent_component(name: &str) -> bool {
    name.split('/').any(|part| part == "..")
}

fn check_entry(field: &'static str, name: &str) -> Result<(), InvalidInput> {
    check_name(field, name)?;
    if name.len() > LeaseScope::MAX_NAME_BYTES {
        let reason = format!("a name has over {} bytes", LeaseScope::MAX_NAME_BYTES);
        return Err(InvalidInput::new(field, reason));
    }
    Ok(())
}

fn parse_names<'a>(
    field: &'static str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeSet<Box<str>>, InvalidInput> {
    let mut set = BTreeSet::new();
    for name in names {
        check_entry(field, name)?;
        if has_parent_component(name) {
            return Err(InvalidInput::new(field, "has a part that is `..`, which is never allowed"));
        }
        set.insert(name.into());
        if set.len() > LeaseScope::MAX_NAMES {
            let reason = format!("has over {} names", LeaseScope::MAX_NAMES);
            return Err(InvalidInput::new(field, reason));
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests;
