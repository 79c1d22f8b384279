//! What each of the keeper's calls asks of the server, and what its answer means.

use std::sync::Arc;

use tenure_api::{Code, LeaseGrant, LeaseGrants, LeaseRenewal, ReleaseRequest, RenewalRequest};

use super::hold_request::LeaseRequest;
use crate::client::Client;
use crate::error::Error;
use crate::http::ApiRequest;

/// What was heard.
pub(super) enum RequestOutcome {
    /// There is a connection, and the request is on its way.
    Sent,
    /// All of it is ours.
    Granted(Vec<LeaseGrant>),
    /// All of it is still ours.
    Renewed(Vec<LeaseRenewal>),
    /// It is over, and how.
    Ended(String),
    /// It was given back.
    Released,
    /// Nothing will come of the wish any more.
    Withdrawn,
    /// What comes of it is said in answer to another request that is under way.
    Pending {
        /// Whether it may still be in a queue, which nobody can get it out of.
        is_queued: bool,
    },
    /// Anything else.
    Failed(Error),
}

impl LeaseRequest {
    /// Asks for all of it.
    pub(super) async fn send(
        &self,
        client: &Client,
        call: &ApiRequest,
        on_sent: impl FnOnce(),
    ) -> Result<Vec<LeaseGrant>, Error> {
        let answer = client.transport().send_with_callback(call, on_sent).await?;
        let granted = if self.is_batch {
            answer.read::<LeaseGrants>(|| client.address())?.leases
        } else {
            vec![answer.read(|| client.address())?]
        };
        if granted.len() == self.leases.len() && !granted.is_empty() {
            return Ok(granted);
        }
        let detail = format!("{} leases for {} wishes", granted.len(), self.leases.len());
        Err(Error::Protocol { address: client.address(), detail })
    }
}

pub(super) async fn renew(client: &Client, leases: Arc<Vec<LeaseGrant>>) -> RequestOutcome {
    let mut renewed = Vec::with_capacity(leases.len());
    for granted in leases.iter() {
        let request = RenewalRequest { token: granted.token.clone(), ttl_ms: None };
        match client.renew(&granted.lease.id, &request).await {
            Ok(answer) => renewed.push(answer),
            Err(error) => return ended_or_failed(error),
        }
    }
    RequestOutcome::Renewed(renewed)
}

/// Whoever is not let in any more holds nothing any more: its leases end with its token.
fn ended_or_failed(error: Error) -> RequestOutcome {
    match &error {
        Error::Problem(problem) => match problem.code {
            Code::Expired | Code::NotFound | Code::TokenInvalid | Code::Unauthorized | Code::Forbidden => {
                RequestOutcome::Ended(problem.end.clone().unwrap_or_else(|| problem.code.as_str().to_owned()))
            }
            _ => RequestOutcome::Failed(error),
        },
        _ => RequestOutcome::Failed(error),
    }
}

pub(super) async fn release(
    client: &Client,
    leases: Arc<Vec<LeaseGrant>>,
    reason: Option<String>,
) -> RequestOutcome {
    let mut failed = None;
    for granted in leases.iter() {
        let request = ReleaseRequest { token: granted.token.clone(), reason: reason.clone() };
        match client.release(&granted.lease.id, &request).await {
            Ok(_) => {}
            Err(error) if matches!(error.code(), Some(Code::Expired | Code::NotFound)) => {}
            // The others are given back all the same.
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(RequestOutcome::Released, RequestOutcome::Failed)
}
