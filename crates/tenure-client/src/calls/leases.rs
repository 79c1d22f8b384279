//! Leases, one request each.

use tenure_api::{
    Acquire, AcquireAll, ChangeMode, Granted, GrantedAll, Lease, LeaseState, OneLease, Page, Release, Renew,
    Renewed, Revoke, Transfer,
};

use crate::client::Client;
use crate::connection::{Call, Query, Repeat};
use crate::error::Error;
use crate::key::IdempotencyKey;

const LEASES: &str = "/v1/leases";

/// Which leases to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// On this resource.
    pub resource: Option<String>,
    /// Of this holder.
    pub holder: Option<String>,
    /// In this state; nothing is those that live.
    pub state: Option<LeaseState>,
    /// At most so many in one part.
    pub limit: Option<usize>,
    /// The `next` of the part before.
    pub after: Option<String>,
}

impl Client {
    /// Asks for a lease, and waits for it as long as the request says.
    ///
    /// If the answer is lost, [`Error::Unknown`] says so; with a key the same request finds the same lease again. To
    /// have all this done, and the lease kept alive, use [`Client::hold`].
    pub async fn acquire(&self, request: &Acquire, key: Option<&IdempotencyKey>) -> Result<Granted, Error> {
        self.ask(&acquire(request, key)).await
    }

    /// Asks for several leases of one holder: all of them, or none.
    pub async fn acquire_all(
        &self,
        requests: &[Acquire],
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Granted>, Error> {
        self.ask::<GrantedAll>(&acquire_all(requests, key)).await.map(|all| all.leases)
    }

    /// Keeps a lease alive.
    pub async fn renew(&self, id: &str, request: &Renew) -> Result<Renewed, Error> {
        self.ask(&Call::post(path(id, "renew"), request, Repeat::Harmless)).await
    }

    /// Gives a lease back. What is over already is no error.
    pub async fn release(&self, id: &str, request: &Release) -> Result<Lease, Error> {
        let answer = self.ask::<OneLease>(&Call::post(path(id, "release"), request, Repeat::Harmless)).await;
        answer.map(|answer| answer.lease)
    }

    /// Hands a lease on to another holder of the same principal, without a gap. It gets a new id, fence and token.
    pub async fn transfer(&self, id: &str, request: &Transfer) -> Result<Granted, Error> {
        self.ask(&Call::post(path(id, "transfer"), request, Repeat::Never)).await
    }

    /// Makes a shared lease exclusive. It gets a new id, fence and token.
    pub async fn upgrade(&self, id: &str, request: &ChangeMode) -> Result<Granted, Error> {
        self.ask(&Call::post(path(id, "upgrade"), request, Repeat::Never)).await
    }

    /// Lets others share an exclusive lease. It gets a new id, fence and token.
    pub async fn downgrade(&self, id: &str, request: &ChangeMode) -> Result<Granted, Error> {
        self.ask(&Call::post(path(id, "downgrade"), request, Repeat::Never)).await
    }

    /// Takes a lease away from its holder. Needs the scope `admin`.
    pub async fn revoke(&self, id: &str, request: &Revoke) -> Result<Lease, Error> {
        let answer = self.ask::<OneLease>(&Call::post(path(id, "revoke"), request, Repeat::Harmless)).await;
        answer.map(|answer| answer.lease)
    }

    /// One lease, alive or ended not long ago.
    pub async fn show(&self, id: &str) -> Result<Lease, Error> {
        let path = Query::path(LEASES, &[id]).into_text();
        self.ask::<OneLease>(&Call::get(path)).await.map(|answer| answer.lease)
    }

    /// Part of a list of leases.
    pub async fn list(&self, filter: &Filter) -> Result<Page, Error> {
        let Filter { resource, holder, state, limit, after } = filter;
        let query = Query::new(LEASES)
            .with("resource", resource.as_deref())
            .with("holder", holder.as_deref())
            .with("state", state.map(|state| state.to_string()).as_deref())
            .with("limit", limit.map(|limit| limit.to_string()).as_deref())
            .with("after", after.as_deref());
        self.ask(&Call::get(query.into_text()).for_a_list()).await
    }
}

pub(crate) fn acquire(request: &Acquire, key: Option<&IdempotencyKey>) -> Call {
    Call::post(LEASES.into(), request, Repeat::Never).with_key(key).waiting(request.wait_ms)
}

pub(crate) fn acquire_all(requests: &[Acquire], key: Option<&IdempotencyKey>) -> Call {
    let longest = requests.iter().map(|request| request.wait_ms).max().unwrap_or(0);
    let body = AcquireAll { leases: requests.to_vec() };
    Call::post(format!("{LEASES}/batch"), &body, Repeat::Never).with_key(key).waiting(longest).for_a_list()
}

fn path(id: &str, verb: &str) -> String {
    Query::path(LEASES, &[id, verb]).into_text()
}
