//! Requests to the server, one file per API; those of control, the queue, `explain` and tokens are here.

mod agents;
mod events;
mod files;
mod intents;
mod leases;
mod work;

pub use events::{EventFilter, EventStartPosition, EventStream};
pub use leases::LeaseFilter;
pub(crate) use leases::{acquire_all_request, acquire_request};
use serde::Deserialize;
use tenure_api::{
    ApiTokenList, ApiTokenRequest, ApiTokenView, ControlStatus, CreatedApiToken, Explanation, Queue,
    RevokedApiToken,
};

use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, Idempotency, PathAndQuery};

/// What the device's addresses answer with.
#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

impl Client {
    /// Who has the device, and for how long. To take it, a WebSocket at `/ws` is needed.
    pub async fn control_status(&self) -> Result<ControlStatus, Error> {
        let call = ApiRequest::get("/api/v1/control/status".into());
        self.send::<Envelope<ControlStatus>>(&call).await.map(|answer| answer.data)
    }
}

#[derive(Deserialize)]
struct Withdrawn {}

impl Client {
    /// Who waits for a resource, in the order in which they will be served.
    pub async fn queue(&self, resource: &str) -> Result<Queue, Error> {
        let query = PathAndQuery::new("/v1/queue").with("resource", Some(resource));
        self.send(&ApiRequest::get(query.into_text()).with_list_limit()).await
    }

    /// Leaves a queue. A ticket that was served, withdrawn or never there is [`Code::NotFound`].
    ///
    /// [`Code::NotFound`]: tenure_api::Code::NotFound
    pub async fn withdraw(&self, ticket: u64) -> Result<(), Error> {
        let path = PathAndQuery::path("/v1/queue", &[&ticket.to_string()]);
        self.send::<Withdrawn>(&ApiRequest::delete(path.into_text())).await.map(|_| ())
    }

    /// Who holds a resource, who waits, what would free it, and why the last request was refused.
    pub async fn explain(&self, resource: &str) -> Result<Explanation, Error> {
        let query = PathAndQuery::new("/v1/explain").with("resource", Some(resource));
        self.send(&ApiRequest::get(query.into_text()).with_list_limit()).await
    }
}

const TOKENS: &str = "/v1/tokens";

impl Client {
    /// Makes a token. Its secret is in this answer and nowhere else.
    pub async fn create_token(&self, request: &ApiTokenRequest) -> Result<CreatedApiToken, Error> {
        self.send(&ApiRequest::post(TOKENS.into(), request, Idempotency::NonIdempotent)).await
    }

    /// Every token that is good.
    pub async fn tokens(&self) -> Result<Vec<ApiTokenView>, Error> {
        let answer = self.send::<ApiTokenList>(&ApiRequest::get(TOKENS.into()).with_list_limit()).await;
        answer.map(|answer| answer.tokens)
    }

    /// Makes a token worthless, and ends the leases of its principal.
    pub async fn revoke_token(&self, id: &str) -> Result<RevokedApiToken, Error> {
        self.send(&ApiRequest::delete(PathAndQuery::path(TOKENS, &[id]).into_text())).await
    }
}
