//! Work: leases that say what their holder may do, and how much of it.

use tenure_api::{
    Lease, LeaseRenewal, LeaseResponse, SpendResult, WorkClaimRequest, WorkDerivationRequest, WorkGrant,
    WorkReleaseRequest, WorkRenewalRequest, WorkResponse, WorkSpendRequest,
};

use crate::client::{Client, IdempotencyKey};
use crate::error::Error;
use crate::http::{ApiRequest, Idempotency, PathAndQuery};

const WORK: &str = "/v1/work";

impl Client {
    /// Claims a piece of work. If the answer is lost, [`Error::OutcomeUnknown`] says so; with a key the same request finds the same
    /// lease again.
    pub async fn claim_work(
        &self,
        request: &WorkClaimRequest,
        key: Option<&IdempotencyKey>,
    ) -> Result<WorkGrant, Error> {
        self.send(&ApiRequest::post(path("claim"), request, Idempotency::NonIdempotent).with_key(key)).await
    }

    /// Gives a part of a lease to somebody else. Without a key, an answer that is lost may have cost what was given.
    pub async fn derive_work(
        &self,
        request: &WorkDerivationRequest,
        key: Option<&IdempotencyKey>,
    ) -> Result<WorkGrant, Error> {
        self.send(&ApiRequest::post(path("derive"), request, Idempotency::NonIdempotent).with_key(key)).await
    }

    /// Uses something up. Without a key, nobody knows whether a request whose answer is lost has spent; with one, it may be
    /// repeated, and spends once.
    pub async fn spend_work(
        &self,
        request: &WorkSpendRequest,
        key: Option<&IdempotencyKey>,
    ) -> Result<SpendResult, Error> {
        self.send(&ApiRequest::post(path("spend"), request, Idempotency::NonIdempotent).with_key(key)).await
    }

    /// Keeps a lease on work alive: one that was derived no longer than the one that it was derived from.
    pub async fn renew_work(&self, request: &WorkRenewalRequest) -> Result<LeaseRenewal, Error> {
        self.send(&ApiRequest::post(path("renew"), request, Idempotency::Idempotent)).await
    }

    /// Gives a lease on work back, and with it whatever was derived from it. What is over already is no error.
    pub async fn release_work(&self, request: &WorkReleaseRequest) -> Result<Lease, Error> {
        let answer = self
            .send::<LeaseResponse>(&ApiRequest::post(path("release"), request, Idempotency::Idempotent))
            .await;
        answer.map(|answer| answer.lease)
    }

    /// One lease on work, alive or ended not long ago: what it allows, and what is left.
    pub async fn work(&self, lease_id: &str) -> Result<WorkResponse, Error> {
        self.send(&ApiRequest::get(path(lease_id))).await
    }
}

fn path(last: &str) -> String {
    PathAndQuery::path(WORK, &[last]).into_text()
}
