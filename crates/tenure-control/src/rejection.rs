//! Error for a command that the lease blocks, in the one shape that every client of the device knows.

use serde::Serialize;

use crate::problem::Problem;

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ControlRejectionCode {
        ControlLocked = "CONTROL_LOCKED",
        /// There is a lease, or one is needed, and none was shown.
        LeaseRequired = "LEASE_REQUIRED",
        /// What was shown is not this lease's.
        LeaseInvalid = "LEASE_INVALID",
        /// The lease that was shown is over.
        LeaseExpired = "LEASE_EXPIRED",
    }
}

impl ControlRejectionCode {
    /// What REST answers with. Never 423: that belongs to WebDAV.
    pub const fn status(self) -> u16 {
        match self {
            Self::LeaseRequired => 428,
            Self::LeaseInvalid => 403,
            Self::ControlLocked | Self::LeaseExpired => 409,
        }
    }
}

/// The lease keeps a command out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRejection {
    pub code: ControlRejectionCode,
    pub message: &'static str,
    /// Who has the lease; empty if nobody.
    pub owner_client_name: String,
    /// How long it lasts, if nobody extends it.
    pub remaining_ms: u32,
}

/// To acquire what another client has.
pub const HELD: &str = "Control lease is held by another client";
/// To move a device that another client has.
pub const BLOCKED: &str = "Command blocked by active control lease";
pub const STREAM_REQUIRES_LEASE: &str = "A render stream needs the control lease; acquire it first";
/// To move a device over REST without showing the lease.
pub const REQUIRED: &str = "Control lease is active; send its token in X-Control-Lease";
/// A token or an id that does not fit.
pub const INVALID: &str = "Lease token or id does not match the active control lease";
pub const EXPIRED: &str = "Control lease has expired; acquire it again";

/// What v1 leases are about.
pub const SCOPE: &str = "global";
pub const REQUIRED_HEADER: &str = "X-Control-Lease";
pub const VERSION: &str = "2.0";

/// The error in a response, with its fields in the order in which seed 000 has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(flatten)]
    lease: Option<BlockingLease<'a>>,
}

/// The lease that blocks a command.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockingLease<'a> {
    owner_client_name: &'a str,
    remaining_ms: u32,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    required_header: Option<&'a str>,
}

/// Why a command was not carried out: the lease kept it out, or it makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    Rejected(ControlRejection),
    /// It makes no sense, or the device cannot do it.
    Problem(Problem),
}

impl From<ControlRejection> for CommandError {
    fn from(rejection: ControlRejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<Problem> for CommandError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl CommandError {
    pub fn status(&self) -> u16 {
        match self {
            Self::Rejected(rejection) => rejection.code.status(),
            Self::Problem(problem) => problem.code.status(),
        }
    }

    /// The error in a response over a WebSocket or a serial port.
    pub fn body(&self) -> ErrorBody<'_> {
        self.with_required_header(None)
    }

    /// The error in a response over REST: with the header that would have permitted the command.
    pub fn rest_body(&self) -> ErrorBody<'_> {
        self.with_required_header(Some(REQUIRED_HEADER))
    }

    fn with_required_header<'a>(&'a self, required_header: Option<&'a str>) -> ErrorBody<'a> {
        match self {
            Self::Rejected(ControlRejection { code, message, owner_client_name, remaining_ms }) => {
                let (remaining_ms, scope) = (*remaining_ms, SCOPE);
                let lease = BlockingLease { owner_client_name, remaining_ms, scope, required_header };
                ErrorBody { code: code.as_str(), message, field: None, lease: Some(lease) }
            }
            Self::Problem(Problem { code, message, field }) => {
                ErrorBody { code: code.as_str(), message, field: field.as_deref(), lease: None }
            }
        }
    }
}
