//! Leases, one request each.

use tenure_api::{
    AcquireRequest, BatchAcquireRequest, Lease, LeaseGrant, LeaseGrants, LeasePage, LeaseRenewal,
    LeaseResponse, LeaseState, ModeChangeRequest, ReleaseRequest, RenewalRequest, RevocationRequest,
    TransferRequest,
};

use crate::client::{Client, IdempotencyKey};
use crate::error::Error;
use crate::http::{ApiRequest, Idempotency, PathAndQuery};

const LEASES: &str = "/v1/leases";

/// Which leases to list.
#[derive(Debug, Clone, Default)]
pub struct LeaseFilter {
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
    /// If the answer is lost, [`Error::OutcomeUnknown`] says so; with a key the same request finds the same lease again. To
    /// have all this done, and the lease kept alive, use [`Client::hold`].
    pub async fn acquire(
        &self,
        request: &AcquireRequest,
        key: Option<&IdempotencyKey>,
    ) -> Result<LeaseGrant, Error> {
        self.send(&acquire_request(request, key)).await
    }

    /// Asks for several leases of one holder: all of them, or none.
    pub async fn acquire_all(
        &self,
        requests: &[AcquireRequest],
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<LeaseGrant>, Error> {
        self.send::<LeaseGrants>(&acquire_all_request(requests, key)).await.map(|all| all.leases)
    }

    /// Keeps a lease alive.
    pub async fn renew(&self, id: &str, request: &RenewalRequest) -> Result<LeaseRenewal, Error> {
        self.send(&ApiRequest::post(path(id, "renew"), request, Idempotency::Idempotent)).await
    }

    /// Gives a lease back. What is over already is no error.
    pub async fn release(&self, id: &str, request: &ReleaseRequest) -> Result<Lease, Error> {
        let answer = self
            .send::<LeaseResponse>(&ApiRequest::post(path(id, "release"), request, Idempotency::Idempotent))
            .await;
        answer.map(|answer| answer.lease)
    }

    /// Hands a lease on to another holder of the same principal, without a gap. It gets a new id, fence and token.
    pub async fn transfer(&self, id: &str, request: &TransferRequest) -> Result<LeaseGrant, Error> {
        self.send(&ApiRequest::post(path(id, "transfer"), request, Idempotency::NonIdempotent)).await
    }

    /// Makes a shared lease exclusive. It gets a new id, fence and token.
    pub async fn upgrade(&self, id: &str, request: &ModeChangeRequest) -> Result<LeaseGrant, Error> {
        self.send(&ApiRequest::post(path(id, "upgrade"), request, Idempotency::NonIdempotent)).await
    }

    /// Lets others share an exclusive lease. It gets a new id, fence and token.
    pub async fn downgrade(&self, id: &str, request: &ModeChangeRequest) -> Result<LeaseGrant, Error> {
        self.send(&ApiRequest::post(path(id, "downgrade"), request, Idempotency::NonIdempotent)).await
    }

    /// Takes a lease away from its holder. Needs the scope `admin`.
    pub async fn revoke(&self, id: &str, request: &RevocationRequest) -> Result<Lease, Error> {
        let answer = self
            .send::<LeaseResponse>(&ApiRequest::post(path(id, "revoke"), request, Idempotency::Idempotent))
            .await;
        answer.map(|answer| answer.lease)
    }

    /// One lease, alive or ended not long ago.
    pub async fn show(&self, id: &str) -> Result<Lease, Error> {
        let path = PathAndQuery::path(LEASES, &[id]).into_text();
        self.send::<LeaseResponse>(&ApiRequest::get(path)).await.map(|answer| answer.lease)
    }

    /// Part of a list of leases.
    pub async fn list(&self, filter: &LeaseFilter) -> Result<LeasePage, Error> {
        let LeaseFilter { resource, holder, state, limit, after } = filter;
        let query = PathAndQuery::new(LEASES)
            .with("resource", resource.as_deref())
            .with("holder", holder.as_deref())
            .with("state", state.map(|state| state.to_string()).as_deref())
            .with("limit", limit.map(|limit| limit.to_string()).as_deref())
            .with("after", after.as_deref());
        self.send(&ApiRequest::get(query.into_text()).with_list_limit()).await
    }
}

pub(crate) fn acquire_request(request: &AcquireRequest, key: Option<&IdempotencyKey>) -> ApiRequest {
    ApiRequest::post(LEASES.into(), request, Idempotency::NonIdempotent)
        .with_key(key)
        .with_wait(request.wait_ms)
}

pub(crate) fn acquire_all_request(requests: &[AcquireRequest], key: Option<&IdempotencyKey>) -> ApiRequest {
    let longest = requests.iter().map(|request| request.wait_ms).max().unwrap_or(0);
    let body = BatchAcquireRequest { leases: requests.to_vec() };
    ApiRequest::post(format!("{LEASES}/batch"), &body, Idempotency::NonIdempotent)
        .with_key(key)
        .with_wait(longest)
        .with_list_limit()
}

fn path(id: &str, verb: &str) -> String {
    PathAndQuery::path(LEASES, &[id, verb]).into_text()
}
