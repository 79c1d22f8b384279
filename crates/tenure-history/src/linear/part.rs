//! What an operation means to one resource.

use std::collections::HashMap;

use crate::history::History;
use crate::operation::{Action, Answer, Life, Mode, Operation, Request, Seen};

/// A name as a small number.
pub(super) type Number = u32;

/// Times of leases are milliseconds; those of a history are microseconds.
pub(super) const MILLISECOND: u64 = 1_000;

/// An operation as far as it is about one resource.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) operation: usize,
    pub(super) invoked: u64,
    /// `u64::MAX` where there is no end.
    pub(super) ended: u64,
    pub(super) what: What,
}

/// What was answered, with lengths in microseconds. Nothing in place of an answer: nobody knows.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// `told` is the lease that its key stands for, as any answer says.
    Acquire {
        holder: Number,
        mode: Mode,
        ttl: u64,
        key: Option<Number>,
        told: Option<u64>,
        got: Option<Got>,
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
        holder: Number,
        mode: Mode,
        key: Number,
        told: Option<u64>,
        got: Option<Got>,
    },
    Over {
        fence: u64,
    },
    /// What was asked for under this key is over.
    KeyOver {
        key: Number,
    },
    /// Refused: by whom, as far as it was said; not by the lease `own`; perhaps by somebody who waited.
    Held {
        mode: Mode,
        own: Option<u64>,
        by: Option<Number>,
        waited_for: bool,
    },
    Show {
        fence: u64,
        seen: Option<Glance>,
    },
    List {
        seen: Vec<Glance>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Got {
    pub(super) fence: u64,
    pub(super) valid: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Glance {
    pub(super) fence: u64,
    pub(super) holder: Number,
    pub(super) mode: Mode,
    pub(super) state: Life,
    pub(super) remaining: u64,
}

impl Part {
    /// Whether it need not have happened.
    pub(super) fn is_unknown(&self, history: &History) -> bool {
        history.operations[self.operation].answer.is_none()
    }

    /// Whether the same request may have been sent before.
    pub(super) fn has_key(&self) -> bool {
        matches!(self.what, What::Acquire { key: Some(_), .. } | What::Continue { .. })
    }

    pub(super) fn names(&self) -> Vec<u64> {
        match &self.what {
            What::Renew { fence, .. } | What::End { fence } | What::Over { fence } => vec![*fence],
            What::Continue { fence, .. } | What::Show { fence, .. } => vec![*fence],
            What::List { seen } => seen.iter().map(|seen| seen.fence).collect(),
            What::Acquire { got, .. } => got.iter().map(|got| got.fence).collect(),
            What::KeyOver { .. } | What::Held { .. } => Vec::new(),
        }
    }

    /// The holders and keys of which its answer says something.
    pub(super) fn mentions(&self) -> Vec<Number> {
        match &self.what {
            What::Held { by, .. } => vec![by.unwrap_or(super::search::ANYBODY)],
            What::Acquire { key, .. } => key.iter().copied().collect(),
            What::KeyOver { key } | What::Continue { key, .. } => vec![*key],
            _ => self.seen().iter().map(|seen| seen.holder).collect(),
        }
    }

    /// The leases that it was shown.
    pub(super) fn seen(&self) -> &[Glance] {
        match &self.what {
            What::Show { seen, .. } => seen.as_slice(),
            What::List { seen } => seen,
            _ => &[],
        }
    }

    /// The fence that it was granted.
    pub(super) fn got(&self) -> Option<u64> {
        match &self.what {
            What::Acquire { got, .. } | What::Continue { got, .. } => got.map(|got| got.fence),
            _ => None,
        }
    }
}

/// The parts of a history on one resource, in the order in which they were asked.
pub(super) fn parts_of(history: &History, resource: &str) -> Vec<Part> {
    let on_it: Vec<(usize, &Operation)> = history
        .operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| operation.resources().contains(&resource))
        .collect();
    let mut reading =
        Reading { resource, names: HashMap::new(), fences: fences_of_keys(&on_it, resource), on_it: &on_it };
    let mut parts: Vec<Part> = Vec::new();
    for (index, operation) in &on_it {
        let Some(what) = reading.what(operation) else { continue };
        let (invoked, ended) = (operation.invoked, operation.latest());
        parts.push(Part { operation: *index, invoked, ended, what });
    }
    parts.sort_by_key(|part| (part.invoked, part.ended));
    parts
}

/// Which lease a key stands for, where any answer said so.
fn fences_of_keys<'a>(on_it: &[(usize, &'a Operation)], resource: &str) -> HashMap<Request<'a>, u64> {
    let place = |operation: &Operation| operation.resources().iter().position(|name| *name == resource);
    let fence = |operation: &Operation| Some(operation.granted().get(place(operation)?)?.fence);
    on_it.iter().filter_map(|(_, operation)| Some((operation.request()?, fence(operation)?))).collect()
}

#[derive(PartialEq, Eq, Hash)]
enum Naming<'a> {
    Holder(&'a str),
    Request(Request<'a>),
}

struct Reading<'a> {
    resource: &'a str,
    names: HashMap<Naming<'a>, Number>,
    fences: HashMap<Request<'a>, u64>,
    on_it: &'a [(usize, &'a Operation)],
}

impl<'a> Reading<'a> {
    fn number(&mut self, name: Naming<'a>) -> Number {
        let next = Number::try_from(self.names.len()).expect("a history has fewer than 2^32 names");
        *self.names.entry(name).or_insert(next)
    }

    fn what(&mut self, operation: &'a Operation) -> Option<What> {
        let (resource, answer) = (self.resource, operation.answer.as_ref());
        if matches!(answer, Some(Answer::Refused { .. })) {
            return None;
        }
        let got = |place: usize| {
            let grant = operation.granted().get(place)?;
            Some(Got { fence: grant.fence, valid: grant.valid_for_ms * MILLISECOND })
        };
        Some(match &operation.action {
            Action::Acquire { wants, holder, .. } => {
                let place = wants.iter().position(|want| want.resource == resource)?;
                let want = &wants[place];
                match answer {
                    Some(Answer::Held { resource: held, by }) => {
                        if held != resource {
                            return None;
                        }
                        self.held(operation, want.mode, None, by.as_deref())
                    }
                    Some(Answer::Over) => {
                        let request = operation.request()?;
                        match self.fences.get(&request) {
                            Some(fence) => What::Over { fence: *fence },
                            None => What::KeyOver { key: self.number(Naming::Request(request)) },
                        }
                    }
                    _ => What::Acquire {
                        holder: self.number(Naming::Holder(holder)),
                        mode: want.mode,
                        ttl: want.ttl_ms * MILLISECOND,
                        key: operation.request().map(|request| self.number(Naming::Request(request))),
                        told: operation.request().and_then(|request| self.fences.get(&request).copied()),
                        got: got(place),
                    },
                }
            }
            Action::Renew { fence, ttl_ms, .. } => match answer {
                Some(Answer::Over | Answer::Unknown) => What::Over { fence: *fence },
                Some(Answer::Renewed { valid_for_ms }) => What::Renew {
                    fence: *fence,
                    ttl: ttl_ms.map(|ttl| ttl * MILLISECOND),
                    valid: Some(valid_for_ms * MILLISECOND),
                },
                _ => What::Renew { fence: *fence, ttl: ttl_ms.map(|ttl| ttl * MILLISECOND), valid: None },
            },
            Action::Release { fence, .. } | Action::Revoke { fence, .. } => match answer {
                Some(Answer::Over | Answer::Unknown) => What::Over { fence: *fence },
                _ => What::End { fence: *fence },
            },
            Action::Transfer { fence, to: holder, mode, .. } | Action::Change { fence, holder, mode, .. } => {
                match answer {
                    Some(Answer::Over | Answer::Unknown) => What::Over { fence: *fence },
                    Some(Answer::Held { by, .. }) => self.held(operation, *mode, Some(*fence), by.as_deref()),
                    _ => What::Continue {
                        key: self.number(Naming::Request(operation.request()?)),
                        told: operation.request().and_then(|request| self.fences.get(&request).copied()),
                        fence: *fence,
                        holder: self.number(Naming::Holder(holder)),
                        mode: *mode,
                        got: got(0),
                    },
                }
            }
            Action::Show { fence, .. } => match answer? {
                Answer::Seen { leases } => {
                    What::Show { fence: *fence, seen: leases.first().map(|seen| self.glance(seen)) }
                }
                Answer::Unknown => What::Show { fence: *fence, seen: None },
                _ => return None,
            },
            Action::List { .. } => match answer? {
                Answer::Seen { leases } => {
                    What::List { seen: leases.iter().map(|seen| self.glance(seen)).collect() }
                }
                _ => return None,
            },
        })
    }

    fn glance(&mut self, seen: &'a Seen) -> Glance {
        Glance {
            fence: seen.fence,
            holder: self.number(Naming::Holder(&seen.holder)),
            mode: seen.mode,
            state: seen.state,
            remaining: seen.remaining_ms * MILLISECOND,
        }
    }

    fn held(&mut self, operation: &Operation, mode: Mode, own: Option<u64>, by: Option<&'a str>) -> What {
        let may_be_in_the_way = |other: &Operation| match &other.action {
            Action::Acquire { wants, holder, wait_ms, .. } => {
                let wants_it = |want: &crate::operation::Want| {
                    want.resource == self.resource && !want.mode.goes_with(mode)
                };
                *wait_ms > 0 && by.is_none_or(|by| by == holder) && wants.iter().any(wants_it)
            }
            _ => false,
        };
        let at_once =
            |other: &Operation| other.invoked <= operation.latest() && operation.invoked <= other.latest();
        let is_other = |other: &Operation| !std::ptr::eq(other, operation);
        let waited_for =
            self.on_it.iter().any(|(_, other)| is_other(other) && at_once(other) && may_be_in_the_way(other));
        What::Held { mode, own, by: by.map(|by| self.number(Naming::Holder(by))), waited_for }
    }
}
