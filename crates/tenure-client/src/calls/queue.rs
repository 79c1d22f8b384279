//! The queue, tokens, and control.

use serde::Deserialize;
use tenure_api::{ControlStatus, CreateToken, CreatedToken, Explanation, Queue, RevokedToken, Token, Tokens};

use crate::client::Client;
use crate::connection::{Call, Query, Repeat};
use crate::error::Error;

#[derive(Deserialize)]
struct Withdrawn {}

impl Client {
    /// Who waits for a resource, in the order in which they will be served.
    pub async fn queue(&self, resource: &str) -> Result<Queue, Error> {
        let query = Query::new("/v1/queue").with("resource", Some(resource));
        self.ask(&Call::get(query.into_text()).for_a_list()).await
    }

    /// Leaves a queue. A ticket that was served, withdrawn or never there is [`Code::NotFound`].
    ///
    /// [`Code::NotFound`]: tenure_api::Code::NotFound
    pub async fn withdraw(&self, ticket: u64) -> Result<(), Error> {
        let path = Query::path("/v1/queue", &[&ticket.to_string()]);
        self.ask::<Withdrawn>(&Call::delete(path.into_text())).await.map(|_| ())
    }

    /// Who holds a resource, who waits, what would free it, and why the last request was refused.
    pub async fn explain(&self, resource: &str) -> Result<Explanation, Error> {
        let query = Query::new("/v1/explain").with("resource", Some(resource));
        self.ask(&Call::get(query.into_text()).for_a_list()).await
    }
}

const TOKENS: &str = "/v1/tokens";

impl Client {
    /// Makes a token. Its secret is in this answer and nowhere else.
    pub async fn create_token(&self, request: &CreateToken) -> Result<CreatedToken, Error> {
        self.ask(&Call::post(TOKENS.into(), request, Repeat::Never)).await
    }

    /// Every token that is good.
    pub async fn tokens(&self) -> Result<Vec<Token>, Error> {
        let answer = self.ask::<Tokens>(&Call::get(TOKENS.into()).for_a_list()).await;
        answer.map(|answer| answer.tokens)
    }

    /// Makes a token worthless, and ends the leases of its principal.
    pub async fn revoke_token(&self, id: &str) -> Result<RevokedToken, Error> {
        self.ask(&Call::delete(Query::path(TOKENS, &[id]).into_text())).await
    }
}

/// What the device's addresses answer with.
#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

impl Client {
    /// Who has the device, and for how long. To take it, a WebSocket at `/ws` is needed.
    pub async fn control_status(&self) -> Result<ControlStatus, Error> {
        let call = Call::get("/api/v1/control/status".into());
        self.ask::<Envelope<ControlStatus>>(&call).await.map(|answer| answer.data)
    }
}
