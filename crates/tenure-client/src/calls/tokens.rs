//! API tokens. All of it needs the scope `admin`.

use tenure_api::{CreateToken, CreatedToken, RevokedToken, Token, Tokens};

use crate::client::Client;
use crate::connection::{Call, Query, Repeat};
use crate::error::Error;

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
