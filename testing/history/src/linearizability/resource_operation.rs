//! What an operation means to one resource.

use std::collections::HashMap;

use crate::history::History;
use crate::operation::{
    Action, LeaseMode, ObservedLease, ObservedState, Operation, OperationResponse, RequestIdentity,
};

/// A name as a small number.
pub(super) type NameId = u32;

/// Times of leases are milliseconds; those of a history are microseconds.
pub(super) const MILLISECOND: u64 = 1_000;

/// An operation as far as it is about one resource.
#[derive(Debug, Clone)]
pub(super) struct ResourceOperation {
    pub(super) operation: usize,
    pub(super) invoked: u64,
    /// `u64::MAX` where there is no end.
    pub(super) ended: u64,
    pub(super) action: ResourceAction,
}

/// What was answered, with lengths in microseconds. Nothing in place of an answer: nobody knows.
#[derive(Debug, Clone)]
pub(super) enum ResourceAction {
    /// `told` is the lease that its key stands for, as any answer says.
    Acquire {
        holder: NameId,
        mode: LeaseMode,
        ttl: u64,
        key: Option<NameId>,
        known_fence: Option<u64>,
        granted: Option<GrantResult>,
    },
    Renew {
        fence: u64,
        ttl: Option<u64>,
        valid: Option<u64>,
    },
    End {
        fence: u64,
    },
    /// A new lease in place of this one.
    Continue {
        fence: u64,
        holder: NameId,
        mode: LeaseMode,
        key: NameId,
        known_fence: Option<u64>,
        got: Option<GrantResult>,
    },
    AlreadyEnded {
        fence: u64,
    },
    /// What was asked for under this key is over.
    KeyEnded {
        key: NameId,
    },
    /// Refused: by whom, as far as it was said; not by the lease `own`; perhaps by somebody who waited.
    Held {
        mode: LeaseMode,
        own: Option<u64>,
        by: Option<NameId>,
        waited_for: bool,
    },
    Show {
        fence: u64,
        seen: Option<Observation>,
    },
    List {
        seen: Vec<Observation>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct GrantResult {
    pub(super) fence: u64,
    pub(super) valid: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub(super) fence: u64,
    pub(super) holder: NameId,
    pub(super) mode: LeaseMode,
    pub(super) state: ObservedState,
    pub(super) remaining: u64,
}

impl ResourceOperation {
    /// Whether it need not have happened.
    pub(super) fn is_unknown(&self, history: &History) -> bool {
        history.operations[self.operation].answer.is_none()
    }

    /// Whether the same request may have been sent before.
    pub(super) fn has_key(&self) -> bool {
        matches!(self.action, ResourceAction::Acquire { key: Some(_), .. } | ResourceAction::Continue { .. })
    }

    pub(super) fn mentioned_fences(&self) -> Vec<u64> {
        match &self.action {
            ResourceAction::Renew { fence, .. }
            | ResourceAction::End { fence }
            | ResourceAction::AlreadyEnded { fence } => vec![*fence],
            ResourceAction::Continue { fence, .. } | ResourceAction::Show { fence, .. } => vec![*fence],
            ResourceAction::List { seen } => seen.iter().map(|seen| seen.fence).collect(),
            ResourceAction::Acquire { granted: got, .. } => got.iter().map(|got| got.fence).collect(),
            ResourceAction::KeyEnded { .. } | ResourceAction::Held { .. } => Vec::new(),
        }
    }

    /// The holders and keys of which its answer says something.
    pub(super) fn mentioned_names(&self) -> Vec<NameId> {
        match &self.action {
            ResourceAction::Held { by, .. } => vec![by.unwrap_or(super::search::ANY_HOLDER)],
            ResourceAction::Acquire { key, .. } => key.iter().copied().collect(),
            ResourceAction::KeyEnded { key } | ResourceAction::Continue { key, .. } => vec![*key],
            _ => self.observations().iter().map(|seen| seen.holder).collect(),
        }
    }

    /// The leases that it was shown.
    pub(super) fn observations(&self) -> &[Observation] {
        match &self.action {
            ResourceAction::Show { seen, .. } => seen.as_slice(),
            ResourceAction::List { seen } => seen,
            _ => &[],
        }
    }

    /// The fence that it was granted.
    pub(super) fn granted_fence(&self) -> Option<u64> {
        match &self.action {
            ResourceAction::Acquire { granted: got, .. } | ResourceAction::Continue { got, .. } => {
                got.map(|got| got.fence)
            }
            _ => None,
        }
    }
}

/// The parts of a history on one resource, in the order in which they were asked.
pub(super) fn operations_on(history: &History, resource: &str) -> Vec<ResourceOperation> {
    let on_it: Vec<(usize, &Operation)> = history
        .operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| operation.resources().contains(&resource))
        .collect();
    let mut reader = OperationReader {
        resource,
        names: HashMap::new(),
        fences: fences_by_request(&on_it, resource),
        on_it: &on_it,
    };
    let mut parts: Vec<ResourceOperation> = Vec::new();
    for (index, operation) in &on_it {
        let Some(what) = reader.convert(operation) else { continue };
        let (invoked, ended) = (operation.invoked, operation.latest_effect_time());
        parts.push(ResourceOperation { operation: *index, invoked, ended, action: what });
    }
    parts.sort_by_key(|part| (part.invoked, part.ended));
    parts
}

/// Which lease a key stands for, where any answer said so.
fn fences_by_request<'a>(
    on_it: &[(usize, &'a Operation)],
    resource: &str,
) -> HashMap<RequestIdentity<'a>, u64> {
    let place = |operation: &Operation| operation.resources().iter().position(|name| *name == resource);
    let fence = |operation: &Operation| Some(operation.grants().get(place(operation)?)?.fence);
    on_it
        .iter()
        .filter_map(|(_, operation)| Some((operation.request_identity()?, fence(operation)?)))
        .collect()
}

#[derive(PartialEq, Eq, Hash)]
enum InternedName<'a> {
    Holder(&'a str),
    Request(RequestIdentity<'a>),
}

struct OperationReader<'a> {
    resource: &'a str,
    names: HashMap<InternedName<'a>, NameId>,
    fences: HashMap<RequestIdentity<'a>, u64>,
    on_it: &'a [(usize, &'a Operation)],
}

impl<'a> OperationReader<'a> {
    fn number(&mut self, name: InternedName<'a>) -> NameId {
        let next = NameId::try_from(self.names.len()).expect("a history has fewer than 2^32 names");
        *self.names.entry(name).or_insert(next)
    }

    fn convert(&mut self, operation: &'a Operation) -> Option<ResourceAction> {
        let (resource, answer) = (self.resource, operation.answer.as_ref());
        if matches!(answer, Some(OperationResponse::Refused { .. })) {
            return None;
        }
        let got = |place: usize| {
            let grant = operation.grants().get(place)?;
            Some(GrantResult { fence: grant.fence, valid: grant.valid_for_ms * MILLISECOND })
        };
        Some(match &operation.action {
            Action::Acquire { wants, holder, .. } => {
                let place = wants.iter().position(|request| request.resource == resource)?;
                let request = &wants[place];
                match answer {
                    Some(OperationResponse::Held { resource: held, by }) => {
                        if held != resource {
                            return None;
                        }
                        self.held(operation, request.mode, None, by.as_deref())
                    }
                    Some(OperationResponse::Ended) => {
                        let request = operation.request_identity()?;
                        match self.fences.get(&request) {
                            Some(fence) => ResourceAction::AlreadyEnded { fence: *fence },
                            None => {
                                ResourceAction::KeyEnded { key: self.number(InternedName::Request(request)) }
                            }
                        }
                    }
                    _ => ResourceAction::Acquire {
                        holder: self.number(InternedName::Holder(holder)),
                        mode: request.mode,
                        ttl: request.ttl_ms * MILLISECOND,
                        key: operation
                            .request_identity()
                            .map(|request| self.number(InternedName::Request(request))),
                        known_fence: operation
                            .request_identity()
                            .and_then(|request| self.fences.get(&request).copied()),
                        granted: got(place),
                    },
                }
            }
            Action::Renew { fence, ttl_ms, .. } => match answer {
                Some(OperationResponse::Ended | OperationResponse::Unknown) => {
                    ResourceAction::AlreadyEnded { fence: *fence }
                }
                Some(OperationResponse::Renewed { valid_for_ms }) => ResourceAction::Renew {
                    fence: *fence,
                    ttl: ttl_ms.map(|ttl| ttl * MILLISECOND),
                    valid: Some(valid_for_ms * MILLISECOND),
                },
                _ => ResourceAction::Renew {
                    fence: *fence,
                    ttl: ttl_ms.map(|ttl| ttl * MILLISECOND),
                    valid: None,
                },
            },
            Action::Release { fence, .. } | Action::Revoke { fence, .. } => match answer {
                Some(OperationResponse::Ended | OperationResponse::Unknown) => {
                    ResourceAction::AlreadyEnded { fence: *fence }
                }
                _ => ResourceAction::End { fence: *fence },
            },
            Action::Transfer { fence, to: holder, mode, .. } | Action::Change { fence, holder, mode, .. } => {
                match answer {
                    Some(OperationResponse::Ended | OperationResponse::Unknown) => {
                        ResourceAction::AlreadyEnded { fence: *fence }
                    }
                    Some(OperationResponse::Held { by, .. }) => {
                        self.held(operation, *mode, Some(*fence), by.as_deref())
                    }
                    _ => ResourceAction::Continue {
                        key: self.number(InternedName::Request(operation.request_identity()?)),
                        known_fence: operation
                            .request_identity()
                            .and_then(|request| self.fences.get(&request).copied()),
                        fence: *fence,
                        holder: self.number(InternedName::Holder(holder)),
                        mode: *mode,
                        got: got(0),
                    },
                }
            }
            Action::Show { fence, .. } => match answer? {
                OperationResponse::Seen { leases } => ResourceAction::Show {
                    fence: *fence,
                    seen: leases.first().map(|seen| self.observe(seen)),
                },
                OperationResponse::Unknown => ResourceAction::Show { fence: *fence, seen: None },
                _ => return None,
            },
            Action::List { .. } => match answer? {
                OperationResponse::Seen { leases } => {
                    ResourceAction::List { seen: leases.iter().map(|seen| self.observe(seen)).collect() }
                }
                _ => return None,
            },
        })
    }

    fn observe(&mut self, seen: &'a ObservedLease) -> Observation {
        Observation {
            fence: seen.fence,
            holder: self.number(InternedName::Holder(&seen.holder)),
            mode: seen.mode,
            state: seen.state,
            remaining: seen.remaining_ms * MILLISECOND,
        }
    }

    fn held(
        &mut self,
        operation: &Operation,
        mode: LeaseMode,
        own: Option<u64>,
        by: Option<&'a str>,
    ) -> ResourceAction {
        let may_be_in_the_way = |other: &Operation| match &other.action {
            Action::Acquire { wants: requests, holder, wait_ms, .. } => {
                let conflicts = |request: &crate::operation::LeaseRequest| {
                    request.resource == self.resource && !request.mode.is_compatible(mode)
                };
                *wait_ms > 0 && by.is_none_or(|by| by == holder) && requests.iter().any(conflicts)
            }
            _ => false,
        };
        let at_once = |other: &Operation| {
            other.invoked <= operation.latest_effect_time() && operation.invoked <= other.latest_effect_time()
        };
        let is_other = |other: &Operation| !std::ptr::eq(other, operation);
        let waited_for =
            self.on_it.iter().any(|(_, other)| is_other(other) && at_once(other) && may_be_in_the_way(other));
        ResourceAction::Held { mode, own, by: by.map(|by| self.number(InternedName::Holder(by))), waited_for }
    }
}
