//! `POST /v1/tokens`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Code, CreateToken, CreatedToken};
use tenure_core::kernel::{Principal, Resource};

use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::tokens::{CreateError, Now, Scope, Scopes, Wish};

/// The longest name, and the longest prefix: as long as a resource of the plain API.
const MOST_NAME_BYTES: usize = 128;
/// The most prefixes that one token is limited to.
const MOST_PREFIXES: usize = 64;
/// A hundred years: more is for ever, which is asked for by leaving it out.
const MOST_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

/// Make a token.
///
/// Its secret is shown once, in this answer.
#[utoipa::path(
    post,
    path = "/v1/tokens",
    tag = "tokens",
    operation_id = "createToken",
    request_body = tenure_api::CreateToken,
    responses((status = 201, description = "The token and its secret", body = tenure_api::CreatedToken)),
    extensions(("x-codes" = json!(["NAME_TAKEN", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    super::must_be_unlimited(&caller)?;
    let wish = wish(read(body.fields)?)?;
    // After the body, which may have taken its time.
    super::must_be_unlimited(&caller)?;
    let created = tokio::task::spawn_blocking(move || app.given.create(wish, Now::read())).await;
    let created = created.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    let (token, secret) = created.map_err(refused)?;
    let created = CreatedToken { token: super::shown(&token), secret: secret.to_string() };
    Ok(json(StatusCode::CREATED, &created))
}

fn read(mut fields: Fields) -> Result<CreateToken, Failure> {
    let asked = CreateToken {
        name: fields.text("name")?,
        scopes: fields.optional_list("scopes")?.ok_or_else(|| Failure::invalid("scopes", "is missing"))?,
        resources: fields.optional_list("resources")?.unwrap_or_default(),
        expires_in_ms: fields.optional_number("expiresInMs")?,
    };
    fields.finish()?;
    Ok(asked)
}

fn wish(asked: CreateToken) -> Result<Wish, Failure> {
    let principal = Principal::parse(&asked.name).map_err(|error| Failure::invalid("name", &error.reason))?;
    if asked.name.len() > MOST_NAME_BYTES {
        return Err(Failure::invalid("name", &format!("has more than {MOST_NAME_BYTES} bytes")));
    }
    let own = [crate::http::auth::LOCAL, crate::intents::DOMAIN];
    if asked.name == crate::http::auth::ADMIN || own.iter().any(|own| asked.name.starts_with(own)) {
        let reason =
            "`admin` and what begins with `local-` or `system:` are the server's own; choose another";
        return Err(Failure::invalid("name", reason));
    }
    let unknown = || {
        Failure::invalid("scopes", &format!("must be some of: {}", Scope::ALL.map(Scope::as_str).join(", ")))
    };
    let scopes: Option<Scopes> = asked.scopes.iter().map(|name| Scope::parse(name)).collect();
    let scopes = scopes.filter(|scopes| !scopes.is_empty()).ok_or_else(unknown)?;
    let is_prefix = |text: &String| text.len() <= MOST_NAME_BYTES && Resource::parse(text).is_ok();
    if asked.resources.len() > MOST_PREFIXES || !asked.resources.iter().all(is_prefix) {
        let reason = format!(
            "must be at most {MOST_PREFIXES} beginnings of resources, each with 1 to {MOST_NAME_BYTES} bytes and \
             without control characters"
        );
        return Err(Failure::invalid("resources", &reason));
    }
    if asked.expires_in_ms.is_some_and(|span| !(1..=MOST_MS).contains(&span)) {
        return Err(Failure::invalid("expiresInMs", &format!("must be from 1 to {MOST_MS}")));
    }
    Ok(Wish { principal, scopes, resources: asked.resources, expires_in_ms: asked.expires_in_ms })
}

fn refused(error: CreateError) -> Failure {
    match error {
        CreateError::NameTaken => Failure::new(
            Code::NameTaken,
            "a token with this name is good, or its leases are being ended; revoke it first (`tenure token revoke`), or \
             choose another name",
        ),
        CreateError::TooMany => {
            Failure::new(Code::QuotaExceeded, "there are as many tokens as may be; revoke some")
        }
        CreateError::File(error) => super::not_written(&error, "no token was made"),
    }
}
