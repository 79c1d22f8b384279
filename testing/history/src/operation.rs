//! One request of one client, and what came of it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a lease shares its resource. The table of the whole program has more; histories are about these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseMode {
    Exclusive,
    Shared,
}

impl LeaseMode {
    /// Whether two leases on one resource may live at once.
    pub fn is_compatible(self, other: LeaseMode) -> bool {
        self == LeaseMode::Shared && other == LeaseMode::Shared
    }
}

/// A request and its answer. Times are microseconds of one clock for the whole history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    pub client: String,
    /// When, at the latest: read before the request was sent.
    pub invoked: u64,
    /// When the answer was there. Where none came: from when on nothing more can come of the request, because the
    /// process that got it is gone. Nothing, where it may take effect at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    pub action: Action,
    /// What was answered. Nothing: nobody knows whether it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<OperationResponse>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "do", rename_all_fields = "camelCase")]
pub enum Action {
    /// All of these, or none.
    Acquire {
        /// What is wanted: several is a batch.
        wants: Vec<LeaseRequest>,
        holder: String,
        #[serde(default)]
        wait_ms: u64,
        /// The same key and client is the same request, sent again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    Renew {
        fence: u64,
        resource: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
    },
    Release {
        fence: u64,
        resource: String,
    },
    /// To hand it on: a new lease in place of this one.
    Transfer {
        fence: u64,
        resource: String,
        to: String,
        mode: LeaseMode,
    },
    /// To hold it in another mode: a new lease in place of this one.
    Change {
        fence: u64,
        resource: String,
        holder: String,
        mode: LeaseMode,
    },
    /// To take it away from its holder.
    Revoke {
        fence: u64,
        resource: String,
    },
    /// To look at one lease, dead or alive.
    Show {
        fence: u64,
        resource: String,
    },
    /// To look at all that live on a resource.
    List {
        resource: String,
    },
}

/// One resource that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRequest {
    pub resource: String,
    pub mode: LeaseMode,
    pub ttl_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "said", rename_all_fields = "camelCase")]
pub enum OperationResponse {
    /// These are yours, in the order asked for. Also the answer to a transfer and to another mode.
    Granted {
        leases: Vec<Grant>,
    },
    Renewed {
        /// How long it lives from when the request arrived, rounded down.
        valid_for_ms: u64,
    },
    /// It was given back, or taken away; or that was so already.
    Released,
    /// Nothing to release, renew or transfer: the lease has expired, or ended otherwise.
    #[serde(rename = "over")]
    Ended,
    Unknown,
    Held {
        /// Which resource of those asked for.
        resource: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// What was seen: one lease, or all that live on a resource.
    Seen {
        leases: Vec<ObservedLease>,
    },
    /// Refused for another reason. Nothing happened.
    Refused {
        code: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub fence: u64,
    /// Its name in requests, where it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How long it lives from when the request arrived, rounded down.
    pub valid_for_ms: u64,
    pub ttl_ms: u64,
}

/// A lease that a reader was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedLease {
    pub fence: u64,
    pub holder: String,
    pub mode: LeaseMode,
    pub state: ObservedState,
    /// How long it still lives, rounded down.
    pub remaining_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservedState {
    Active,
    Expired,
    /// It was given back or taken away.
    Released,
}

/// What tells one request from another, however often it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestIdentity<'a> {
    /// By the key that its client chose.
    Keyed { client: &'a str, key: &'a str },
    /// By what it asks: a lease is handed on to somebody once.
    Transfer { fence: u64, to: &'a str },
    /// By what it asks: a lease gets another mode once.
    Change { fence: u64, mode: LeaseMode },
}

impl Operation {
    /// The last moment at which it can have taken effect.
    pub fn latest_effect_time(&self) -> u64 {
        self.ended.unwrap_or(u64::MAX)
    }

    /// The resources that it is about.
    pub fn resources(&self) -> Vec<&str> {
        match &self.action {
            Action::Acquire { wants, .. } => wants.iter().map(|request| request.resource.as_str()).collect(),
            Action::Renew { resource, .. }
            | Action::Release { resource, .. }
            | Action::Transfer { resource, .. }
            | Action::Change { resource, .. }
            | Action::Revoke { resource, .. }
            | Action::Show { resource, .. }
            | Action::List { resource } => vec![resource],
        }
    }

    /// Which request this is, where the same request may be sent again and finds what came of it.
    pub fn request_identity(&self) -> Option<RequestIdentity<'_>> {
        match &self.action {
            Action::Acquire { key, .. } => {
                key.as_deref().map(|key| RequestIdentity::Keyed { client: &self.client, key })
            }
            Action::Transfer { fence, to, .. } => Some(RequestIdentity::Transfer { fence: *fence, to }),
            Action::Change { fence, mode, .. } => {
                Some(RequestIdentity::Change { fence: *fence, mode: *mode })
            }
            _ => None,
        }
    }

    /// The leases that it was granted.
    pub fn grants(&self) -> &[Grant] {
        match &self.answer {
            Some(OperationResponse::Granted { leases }) => leases,
            _ => &[],
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:>12} .. ", milliseconds(self.invoked))?;
        match self.ended {
            Some(ended) => write!(formatter, "{:>12} ms  ", milliseconds(ended))?,
            None => write!(formatter, "{:>12} ms  ", "?")?,
        }
        write!(formatter, "{}: {} -> ", self.client, self.action)?;
        match &self.answer {
            Some(answer) => write!(formatter, "{answer}"),
            None => formatter.write_str("no answer"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Acquire { wants, holder, wait_ms, key } => {
                let each = |request: &LeaseRequest| {
                    format!("{} {} for {} ms", request.resource, request.mode, request.ttl_ms)
                };
                let requests: Vec<_> = wants.iter().map(each).collect();
                write!(formatter, "acquire {} as {holder}", requests.join(" and "))?;
                if *wait_ms > 0 {
                    write!(formatter, ", waiting {wait_ms} ms")?;
                }
                key.as_ref().map_or(Ok(()), |key| write!(formatter, ", key {key}"))
            }
            Action::Renew { fence, resource, .. } => write!(formatter, "renew {fence} on {resource}"),
            Action::Release { fence, resource } => write!(formatter, "release {fence} on {resource}"),
            Action::Transfer { fence, resource, to, .. } => {
                write!(formatter, "transfer {fence} on {resource} to {to}")
            }
            Action::Change { fence, resource, mode, .. } => {
                write!(formatter, "make {fence} on {resource} {mode}")
            }
            Action::Revoke { fence, resource } => write!(formatter, "revoke {fence} on {resource}"),
            Action::Show { fence, resource } => write!(formatter, "show {fence} on {resource}"),
            Action::List { resource } => write!(formatter, "list {resource}"),
        }
    }
}

impl fmt::Display for OperationResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationResponse::Granted { leases } => {
                let each = |grant: &Grant| format!("{} for {} ms", grant.fence, grant.valid_for_ms);
                write!(formatter, "granted {}", leases.iter().map(each).collect::<Vec<_>>().join(", "))
            }
            OperationResponse::Renewed { valid_for_ms } => write!(formatter, "renewed for {valid_for_ms} ms"),
            OperationResponse::Released => formatter.write_str("released"),
            OperationResponse::Ended => formatter.write_str("over"),
            OperationResponse::Unknown => formatter.write_str("no such lease"),
            OperationResponse::Held { resource, by } => {
                write!(formatter, "{resource} is held by {}", by.as_deref().unwrap_or("somebody"))
            }
            OperationResponse::Seen { leases } if leases.is_empty() => formatter.write_str("nothing lives"),
            OperationResponse::Seen { leases } => {
                let each = |seen: &ObservedLease| {
                    let state = format!("{:?}", seen.state).to_lowercase();
                    format!("{} of {} {state} for {} ms", seen.fence, seen.holder, seen.remaining_ms)
                };
                write!(formatter, "{}", leases.iter().map(each).collect::<Vec<_>>().join(", "))
            }
            OperationResponse::Refused { code } => formatter.write_str(code),
        }
    }
}

impl fmt::Display for LeaseMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            LeaseMode::Exclusive => "exclusive",
            LeaseMode::Shared => "shared",
        })
    }
}

/// Microseconds as people read them.
fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:03}", microseconds / 1_000, microseconds % 1_000)
}
