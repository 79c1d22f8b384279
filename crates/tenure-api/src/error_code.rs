//! Error codes: why a request failed, in one word that programs can rely on.

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! codes {
    ($($(#[$documentation:meta])* $code:ident = $text:literal, $status:literal, $title:literal;)*) => {
        /// The error code of a problem, explained on a page of `docs/errors`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$documentation])* #[serde(rename = $text)] $code,)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Code] = &[$(Code::$code,)*];

            /// The code as it goes over the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$code => $text,)* }
            }

            /// The HTTP status of the code.
            pub const fn status(self) -> u16 {
                match self { $(Code::$code => $status,)* }
            }

            /// What happened, in a few words for people.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$code => $title,)* }
            }
        }
    };
}

codes! {
    /// The request cannot be understood, or holds a value that cannot be accepted.
    Invalid = "INVALID", 400, "The request is not valid";
    /// A time to live outside of what is permitted. It is never clamped.
    TtlOutOfRange = "TTL_OUT_OF_RANGE", 400, "The time to live is out of range";
    /// No bearer token, or one that is not known here.
    Unauthorized = "UNAUTHORIZED", 401, "A valid bearer token is needed";
    /// The lease token is not the one returned by acquire.
    TokenInvalid = "TOKEN_INVALID", 403, "The lease token does not fit the lease";
    /// The token does not reach so far: a scope or a resource is missing.
    Forbidden = "FORBIDDEN", 403, "The token may not do this";
    /// The holder's name belongs to another principal.
    HolderTaken = "HOLDER_TAKEN", 403, "The holder belongs to another principal";
    /// The request comes from a web page of another origin.
    ForeignOrigin = "FOREIGN_ORIGIN", 403, "Web pages of other origins may not ask";
    /// The request comes from outside of the networks that may ask for this.
    LanOnly = "LAN_ONLY", 403, "Only the local network may ask for this";
    /// The request is for processes of this machine, which come by the local socket.
    LocalOnly = "LOCAL_ONLY", 403, "Only processes of this machine may ask for this";
    /// A process of a coding agent asks for what only a person may do.
    AgentForbidden = "AGENT_FORBIDDEN", 403, "A coding agent may not do this";
    /// A coding agent would run a command without `tenure guard` where the guard is required.
    Unguarded = "UNGUARDED", 403, "Commands of agents run only under a guard here";
    /// No such lease or no such address.
    NotFound = "NOT_FOUND", 404, "There is nothing here";
    /// The address exists, but not for this method.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "This address does not take this method";
    /// The header or the body did not arrive in time.
    TooSlow = "TOO_SLOW", 408, "The request did not arrive in time";
    /// Another holder has the resource.
    Held = "HELD", 409, "The resource is held";
    /// The idempotency key was used for another request.
    KeyReused = "KEY_REUSED", 409, "The idempotency key was used for another request";
    /// A living token has this name.
    NameTaken = "NAME_TAKEN", 409, "A living token has this name";
    /// Waiting would never end.
    Deadlock = "DEADLOCK", 409, "Waiting would close a circle";
    /// Another session shows the same.
    LeaseBusy = "LEASE_BUSY", 409, "Another session has it";
    /// The worker no longer holds the leader lock.
    GuardLost = "GUARD_LOST", 409, "Another worker holds the guard, or none does";
    /// The lease has no authority: nothing can be spent of it or derived from it.
    NoAuthority = "NO_AUTHORITY", 409, "The lease has no authority";
    /// A lease with authority stays with its holder and in its mode.
    AuthorityBound = "AUTHORITY_BOUND", 409, "A lease with authority cannot be handed on";
    /// The lease does not allow this.
    OutOfScope = "OUT_OF_SCOPE", 403, "The lease does not allow this";
    /// Less is left than this.
    BudgetExceeded = "BUDGET_EXCEEDED", 409, "There is not enough left of the budget";
    /// It would live longer than the lease that it is derived from.
    OutlivesParent = "OUTLIVES_PARENT", 409, "It would outlive the lease that it is derived from";
    /// Too much was derived from one lease.
    TreeFull = "TREE_FULL", 429, "Too much is derived from one lease";
    /// The agent has said how old it is, and cannot become older, or another in the middle of an attempt.
    PriorityFixed = "PRIORITY_FIXED", 409, "The agent's priority is fixed for its attempt";
    /// The agent touched what it has no lease for.
    ScopeViolation = "SCOPE_VIOLATION", 409, "The agent has no lease for this";
    /// What the agent remembers is too old to count.
    DigestStale = "DIGEST_STALE", 409, "The state digest is too old";
    /// The lease has ended.
    Expired = "EXPIRED", 410, "The lease is over";
    /// The requested events are older than the stored ones.
    Compacted = "COMPACTED", 410, "These events are no longer kept";
    /// The body exceeds the limit.
    TooLarge = "TOO_LARGE", 413, "The body is too large";
    /// The request line and the headers exceed the limit.
    HeaderTooLarge = "HEADER_TOO_LARGE", 431, "The headers are too large";
    /// The body is not JSON.
    UnsupportedType = "UNSUPPORTED_TYPE", 415, "The body must be JSON";
    /// The `Host` header names another host.
    ForeignHost = "FOREIGN_HOST", 421, "The request is meant for another host";
    /// Too many wait already.
    QueueFull = "QUEUE_FULL", 429, "Too many wait already";
    /// The principal holds as many leases as it may.
    QuotaExceeded = "QUOTA_EXCEEDED", 429, "The quota of leases is used up";
    /// The agent has held leases for as long as one of its age may.
    LeaseTimeUsed = "LEASE_TIME_USED", 429, "The agent has held leases for too long";
    /// The server made a mistake.
    Internal = "INTERNAL", 500, "The server made a mistake";
    /// As many connections are open as may be.
    TooManyConnections = "TOO_MANY_CONNECTIONS", 503, "Too many connections are open";
    /// Too much waits to be decided. Nothing happened.
    Busy = "BUSY", 503, "The server is busy";
    /// As many sessions go on as may. Nothing happened.
    TooManySessions = "TOO_MANY_SESSIONS", 503, "Too many sessions go on already";
    /// The write took so long that the granted lease expired.
    TooLate = "TOO_LATE", 503, "The answer came too late to be of use";
    /// Nothing happened, and nothing will until the server is back.
    Unavailable = "UNAVAILABLE", 503, "The server cannot answer now";
    /// It may have happened.
    OutcomeUnknown = "OUTCOME_UNKNOWN", 503, "Nobody knows whether it happened";
    /// The disk has no room for new leases. Nothing happened.
    NoSpace = "NO_SPACE", 503, "The disk has no room for new leases";
    /// The ledger was restored from a copy, and nothing is granted yet.
    HeldBack = "HELD_BACK", 503, "Nothing is granted yet after a restore";
    /// The ledger has no number or no time left.
    Exhausted = "EXHAUSTED", 503, "The ledger is used up";
}

impl Code {
    /// Whether the same request, sent again a little later, may well succeed.
    ///
    /// A resource that is [held](Code::Held) is not among them: how long to wait for it is the caller's to decide. What
    /// another session has [is](Code::LeaseBusy), because the callers of that API are told so; it is theirs to do.
    pub const fn is_retryable(self) -> bool {
        self.retry_after_seconds().is_some()
    }

    /// How long to wait before asking again, where that helps.
    pub const fn retry_after_seconds(self) -> Option<u32> {
        match self {
            Code::TooSlow
            | Code::TooManyConnections
            | Code::Busy
            | Code::TooLate
            | Code::Unavailable
            | Code::OutcomeUnknown
            | Code::LeaseBusy => Some(1),
            Code::QueueFull | Code::TooManySessions => Some(5),
            // An operator has to free disk space, or old leases have to expire, first.
            Code::NoSpace | Code::HeldBack => Some(30),
            _ => None,
        }
    }
}

// By hand: the derive does not see names that come out of a macro.
impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The error code of a problem, explained on a page of `docs/errors`."))
            .enum_values(Some(Code::ALL.iter().map(|code| code.as_str())))
            .into()
    }
}

impl ToSchema for Code {}
