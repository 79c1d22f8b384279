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

/// The inner part of both shapes, in the order in which clients are shown it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlRejectionBody<'a> {
    code: &'a str,
    message: &'a str,
    owner_client_name: &'a str,
    remaining_ms: u32,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    required_header: Option<&'a str>,
}

impl ControlRejection {
    pub fn websocket_body(&self) -> ControlRejectionBody<'_> {
        ControlRejectionBody {
            code: self.code.as_str(),
            message: self.message,
            owner_client_name: &self.owner_client_name,
            remaining_ms: self.remaining_ms,
            scope: SCOPE,
            required_header: None,
        }
    }

    /// As REST is told: with the header that would have helped.
    pub fn rest_body(&self) -> ControlRejectionBody<'_> {
        ControlRejectionBody { required_header: Some(REQUIRED_HEADER), ..self.websocket_body() }
    }
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
}
