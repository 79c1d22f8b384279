//! Which events somebody wants to hear of, and may.

use tenure_core::kernel::{Event, Principal, Resource};

use super::encoded_event::{EncodedEvent, EventSubject};
use crate::http::auth::Caller;
use crate::http::response::HttpError;

pub(super) struct Filter {
    caller: Caller,
    resource: Option<Pattern>,
    kinds: Kinds,
}

#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    Exactly(String),
    BeginsWith(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Kinds {
    /// What most want: leases and who waits for them.
    Usual,
    Every,
    Only(Pattern),
}

impl Filter {
    pub(super) fn new(caller: Caller, resource: Option<&str>, kind: Option<&str>) -> Result<Self, HttpError> {
        let resource = match resource {
            None => None,
            Some("*") => Some(Pattern::BeginsWith(String::new())),
            Some(text) => {
                Resource::parse(text)?;
                Some(match text.strip_suffix('*') {
                    Some(beginning) => Pattern::BeginsWith(beginning.to_owned()),
                    None if text.ends_with(':') => Pattern::BeginsWith(text.to_owned()),
                    None => Pattern::Exactly(text.to_owned()),
                })
            }
        };
        Ok(Self { caller, resource, kinds: kinds(kind)? })
    }

    pub(super) fn is_valid(&self) -> bool {
        self.caller.is_valid()
    }

    pub(super) fn matches(&self, event: &EncodedEvent) -> bool {
        let is_selected = match &self.kinds {
            Kinds::Usual => event.kind.starts_with("lease.") || event.kind.starts_with("wait."),
            Kinds::Every => true,
            Kinds::Only(pattern) => pattern.fits(event.kind),
        };
        is_selected && self.passes_resource(&event.subject)
    }

    fn passes_resource(&self, about: &EventSubject) -> bool {
        let fits = |resource: &Resource| {
            self.resource.as_ref().is_none_or(|pattern| pattern.fits(resource.as_str()))
        };
        let is_seen = |resource: &Resource| self.caller.can_see(resource.as_str());
        match about {
            EventSubject::Nothing => self.resource.is_none(),
            EventSubject::Lease(facts) => match &facts.names {
                Some((resource, _)) => fits(resource) && is_seen(resource),
                // Nobody knows any more what it was about, so only who may see everything is told.
                None => self.resource.is_none() && self.caller.can_see(""),
            },
            EventSubject::IntentSession(Some(then)) => fits(&then.resource) && is_seen(&then.resource),
            EventSubject::IntentSession(None) => self.resource.is_none() && self.caller.can_see(""),
            EventSubject::Agent(then) => {
                let mut names = then.resources();
                match names.clone().next() {
                    Some(_) => names.clone().any(fits) && names.all(is_seen),
                    // It names nothing that a token could be limited to, so it is told to whom the agent belongs.
                    None => self.resource.is_none() && self.is_for(then.principal.as_ref()),
                }
            }
            EventSubject::File(then) => match &then.resource {
                Some(resource) => fits(resource) && is_seen(resource),
                None => self.resource.is_none() && self.caller.can_see(""),
            },
            EventSubject::Wait(wait) => match &wait.request {
                Some(request) => {
                    let mut names = request.requested.iter().map(|(resource, _)| resource);
                    names.clone().any(fits) && names.all(is_seen)
                }
                None => self.resource.is_none() && self.caller.can_see(""),
            },
        }
    }
}

impl Filter {
    fn is_for(&self, principal: Option<&Principal>) -> bool {
        self.caller.can_see("") || self.caller.is_valid() && principal == Some(&self.caller.principal)
    }
}

fn kinds(requested: Option<&str>) -> Result<Kinds, HttpError> {
    let pattern = match requested {
        None => return Ok(Kinds::Usual),
        Some("*") => return Ok(Kinds::Every),
        Some(text) => match text.strip_suffix('*') {
            Some(beginning) if beginning.ends_with('.') => Pattern::BeginsWith(beginning.to_owned()),
            _ => Pattern::Exactly(text.to_owned()),
        },
    };
    if Event::TYPE_NAMES.iter().any(|name| pattern.fits(name)) {
        return Ok(Kinds::Only(pattern));
    }
    let reason =
        format!("must be `*`, a beginning such as `lease.*`, or one of {}", Event::TYPE_NAMES.join(", "));
    Err(HttpError::invalid("type", &reason))
}

impl Pattern {
    fn fits(&self, name: &str) -> bool {
        match self {
            Pattern::Exactly(text) => text == name,
            Pattern::BeginsWith(text) => name.starts_with(text.as_str()),
        }
    }
}
