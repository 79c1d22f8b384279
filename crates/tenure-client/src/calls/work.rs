//! Work: leases that say what their holder may do, and how much of it.

use tenure_api::{
    ClaimWork, DeriveWork, GrantedWork, Lease, OneLease, OneWork, ReleaseWork, RenewWork, Renewed, SpendWork,
    Spent,
};

use crate::client::Client;
use crate::connection::{Call, Query, Repeat};
use crate::error::Error;
use crate::key::IdempotencyKey;

const WORK: &str = "/v1/work";

impl Client {
    /// Claims a piece of work. If the answer is lost, [`Error::Unknown`] says so; with a key the same request finds the same
    /// lease again.
    pub async fn claim_work(
        &self,
        request: &ClaimWork,
        key: Option<&IdempotencyKey>,
    ) -> Result<GrantedWork, Error> {
        self.ask(&Call::post(path("claim"), request, Repeat::Never).with_key(key)).await
    }

    /// Gives a part of a lease to somebody else. Without a key, an answer that is lost may have cost what was given.
    pub async fn derive_work(
        &self,
        request: &DeriveWork,
        key: Option<&IdempotencyKey>,
    ) -> Result<GrantedWork, Error> {
        self.ask(&Call::post(path("derive"), request, Repeat::Never).with_key(key)).await
    }

    /// Uses something up. Without a key, nobody knows whether a request whose answer is lost has spent; with one, it may be
    /// repeated, and spends once.
    pub async fn spend_work(
        &self,
        request: &SpendWork,
        key: Option<&IdempotencyKey>,
    ) -> Result<Spent, Error> {
        self.ask(&Call::post(path("spend"), request, Repeat::Never).with_key(key)).await
    }

    /// Keeps a lease on work alive: one that was derived no longer than the one that it was derived from.
    pub async fn renew_work(&self, request: &RenewWork) -> Result<Renewed, Error> {
        self.ask(&Call::post(path("renew"), request, Repeat::Harmless)).await
    }

    /// Gives a lease on work back, and with it whatever was derived from it. What is over already is no error.
    pub async fn release_work(&self, request: &ReleaseWork) -> Result<Lease, Error> {
        let answer = self.ask::<OneLease>(&Call::post(path("release"), request, Repeat::Harmless)).await;
        answer.map(|answer| answer.lease)
    }

    /// One lease on work, alive or ended not long ago: what it allows, and what is left.
    pub async fn work(&self, lease_id: &str) -> Result<OneWork, Error> {
        self.ask(&Call::get(path(lease_id))).await
    }
}

fn path(last: &str) -> String {
    Query::path(WORK, &[last]).into_text()
}
