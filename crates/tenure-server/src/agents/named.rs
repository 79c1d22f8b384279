//! The leases that an agent names, in the order in which it does.

use tenure_core::kernel::{Fence, Holder};

use super::names;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::fields::Fields;
use crate::tokens::Scope;

/// The most leases in one request.
const MOST: usize = 1_024;

/// An agent, and leases that it takes for its own.
pub(super) struct Named {
    pub(super) agent: Holder,
    /// Each as it was written, and its number if it can be one of this ledger.
    pub(super) leases: Vec<(String, Option<Fence>)>,
}

impl Named {
    /// Reads a body, and refuses a caller whose token does not reach what these leases are on.
    pub(super) fn read(mut fields: Fields, app: &App, caller: &Caller) -> Result<Self, Failure> {
        let agent = names::agent(&mut fields)?;
        let missing = || Failure::invalid("lease_ids", "is missing");
        let lease_ids = fields.optional_list("lease_ids")?.ok_or_else(missing)?;
        fields.finish()?;
        if lease_ids.len() > MOST {
            let reason = format!("has {} entries; at most {MOST} are allowed", lease_ids.len());
            return Err(Failure::invalid("lease_ids", &reason));
        }
        caller.require(Scope::LeasesWrite)?;
        let leases = app.registrar.read(|state| {
            let tag = state.tag();
            let named = lease_ids.into_iter().map(|id| {
                let fence = tag.fence_of(&id);
                // Of what is somebody else's, nothing is said here: it is unknown to this agent.
                let living =
                    fence.and_then(|fence| state.lease(fence)).map(|lease| (lease.holder, lease.resource));
                let over = || {
                    fence.and_then(|fence| state.ended(fence)).map(|lease| (&lease.holder, &lease.resource))
                };
                let own = living.or_else(over).filter(|(holder, _)| **holder == agent);
                own.map_or(Ok(()), |(_, resource)| caller.require_resource(resource.as_str()))?;
                Ok((id, fence))
            });
            named.collect::<Result<_, Failure>>()
        })?;
        Ok(Self { agent, leases })
    }

    /// The numbers of those that have one.
    pub(super) fn fences(&self) -> Vec<Fence> {
        self.leases.iter().filter_map(|(_, fence)| *fence).collect()
    }
}
