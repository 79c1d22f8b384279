//! Whose rights a request has: those of the token that came with it, and of nobody else.

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use tenure_api::{Code, Problem};
use tenure_client::{Client, Secret};

/// Turns a request's token into somebody who speaks to the Tenure server.
pub(super) struct Authenticator {
    client: Client,
    is_open: bool,
}

impl Authenticator {
    /// `client` speaks with the rights of this process: for callers without a token, if `is_open`.
    pub(super) fn new(client: Client, is_open: bool) -> Self {
        Self { client, is_open }
    }

    /// Who speaks to the Tenure server for this caller. Whether the token is any good is for that server to say.
    pub(super) fn client_for(&self, headers: &HeaderMap) -> Result<Client, Box<Problem>> {
        let refused = |detail: &str| Box::new(Problem::new(Code::Unauthorized, detail));
        let mut all = headers.get_all(AUTHORIZATION).iter();
        let value = match (all.next(), all.next()) {
            (None, _) if self.is_open => return Ok(self.client.clone()),
            (None, _) => {
                return Err(refused(
                    "send the header `Authorization: Bearer` with a token for the Tenure server; `tenure token create` \
                     makes one",
                ));
            }
            (Some(value), None) => value,
            _ => return Err(refused("the header Authorization must stand once")),
        };
        let token = value.to_str().ok().and_then(|value| value.split_once(' '));
        let token =
            token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| refused("the header Authorization must be `Bearer` and a token"))?;
        self.client.with_token(Secret::new(token)).map_err(|_| refused("this cannot be a token"))
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn code(is_open: bool, values: &[&'static str]) -> Option<Code> {
        let client = Client::builder().url("http://127.0.0.1:1").unwrap().build().unwrap();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        Authenticator::new(client, is_open).client_for(&headers).err().map(|problem| problem.code)
    }

    #[test]
    fn request_without_a_token_is_rejected_unless_anonymous_access_is_allowed() {
        assert_eq!(code(false, &[]), Some(Code::Unauthorized));
        assert_eq!(code(true, &[]), None);
        for wrong in ["Basic abc", "Bearer", "Bearer ", "abc", "Bearer a b"] {
            assert_eq!(code(true, &[wrong]), Some(Code::Unauthorized), "{wrong}");
        }
        assert_eq!(code(true, &["Bearer a", "Bearer b"]), Some(Code::Unauthorized));
        assert_eq!(code(false, &["bearer tnr_abc"]), None);
    }
}
