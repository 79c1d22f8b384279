//! API tokens.

use tenure_api::{ApiTokenList, ApiTokenRequest, ApiTokenView, CreatedApiToken, RevokedApiToken};

use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, Idempotency, PathAndQuery};

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
