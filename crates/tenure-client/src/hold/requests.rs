//! What each of the keeper's calls asks of the server, and what its answer means.

use std::sync::Arc;

use tenure_api::{Code, Granted, GrantedAll, Release, Renew, Renewed};

use super::holding::Wish;
use crate::client::Client;
use crate::connection::Call;
use crate::error::Error;

/// What was heard.
pub(super) enum What {
    /// There is a connection, and the request is on its way.
    UnderWay,
    /// All of it is ours.
    Granted(Vec<Granted>),
    /// All of it is still ours.
    Renewed(Vec<Renewed>),
    /// It is over, and how.
    Over(String),
    /// It was given back.
    Released,
    /// Nothing will come of the wish any more.
    Withdrawn,
    /// What comes of it is said in answer to another request that is under way.
    Pending {
        /// Whether it may still be in a queue, which nobody can get it out of.
        is_in_line: bool,
    },
    /// Anything else.
    Failed(Error),
}

impl Wish {
    /// Asks for all of it.
    pub(super) async fn ask(
        &self,
        client: &Client,
        call: &Call,
        under_way: impl FnOnce(),
    ) -> Result<Vec<Granted>, Error> {
        let answer = client.exchange().ask_telling(call, under_way).await?;
        let granted = if self.is_batch {
            answer.read::<GrantedAll>(|| client.address())?.leases
        } else {
            vec![answer.read(|| client.address())?]
        };
        if granted.len() == self.wants.len() && !granted.is_empty() {
            return Ok(granted);
        }
        let detail = format!("{} leases for {} wishes", granted.len(), self.wants.len());
        Err(Error::Protocol { address: client.address(), detail })
    }
}

pub(super) async fn renew(client: &Client, leases: Arc<Vec<Granted>>) -> What {
    let mut renewed = Vec::with_capacity(leases.len());
    for granted in leases.iter() {
        let request = Renew { token: granted.token.clone(), ttl_ms: None };
        match client.renew(&granted.lease.id, &request).await {
            Ok(answer) => renewed.push(answer),
            Err(error) => return over(error),
        }
    }
    What::Renewed(renewed)
}

/// Whoever is not let in any more holds nothing any more: its leases end with its token.
fn over(error: Error) -> What {
    match &error {
        Error::Problem(problem) => match problem.code {
            Code::Expired | Code::NotFound | Code::TokenInvalid | Code::Unauthorized | Code::Forbidden => {
                What::Over(problem.end.clone().unwrap_or_else(|| problem.code.as_str().to_owned()))
            }
            _ => What::Failed(error),
        },
        _ => What::Failed(error),
    }
}

pub(super) async fn release(client: &Client, leases: Arc<Vec<Granted>>, reason: Option<String>) -> What {
    let mut failed = None;
    for granted in leases.iter() {
        let request = Release { token: granted.token.clone(), reason: reason.clone() };
        match client.release(&granted.lease.id, &request).await {
            Ok(_) => {}
            Err(error) if matches!(error.code(), Some(Code::Expired | Code::NotFound)) => {}
            // The others are given back all the same.
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(What::Released, What::Failed)
}
