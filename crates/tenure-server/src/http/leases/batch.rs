//! `POST /v1/leases/batch`: several leases, all or nothing.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure_api::{Code, GrantedAll};
use tenure_core::kernel::{self, Holder, Want};

use super::delivery::deliver;
use super::granted::granted;
use super::obtain::obtain;
use super::wish::{Wish, contention, request_key};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::pools::Pools;

/// Acquire several leases, all or nothing.
///
/// One holder, and one wait for all of them.
#[utoipa::path(
    post,
    path = "/v1/leases/batch",
    tag = "leases",
    operation_id = "acquireAll",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters. The same request with the same key gets the same leases, until 60 s after they end")),
    request_body = tenure_api::AcquireAll,
    responses((status = 201, description = "All of them are yours", body = tenure_api::GrantedAll)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "HELD", "KEY_REUSED", "DEADLOCK", "EXPIRED", "QUEUE_FULL", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn acquire_all(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Failure> {
    let key = request_key(&headers, body.digest)?;
    let Together { holder, wants, wait_ms } = read(body.fields, &app.pools)?;
    let contention = contention(wait_ms);
    let principal = caller.principal.clone();
    let command = kernel::Acquire { principal, holder, wants, contention, key };
    let given = obtain(&app, &caller, command).await?;
    let leases = given.leases.iter().map(|fence| granted(&app, &given.response, *fence, given.stamp));
    let granted = GrantedAll { leases: leases.collect::<Result<_, _>>()? };
    Ok(deliver(json(StatusCode::CREATED, &granted), given.undelivered))
}

/// What is wanted together: one holder waits once for all of it.
struct Together {
    holder: Holder,
    wants: Vec<Want>,
    wait_ms: u64,
}

fn read(mut fields: Fields, pools: &Pools) -> Result<Together, Failure> {
    let entries = fields.objects("leases")?;
    fields.finish()?;
    let read = |(index, fields)| Wish::read(fields, pools).map_err(|failure| in_entry(index, failure));
    let wishes = entries.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = wishes.first() else {
        return Err(Failure::invalid("leases", "is empty; ask for at least one resource"));
    };
    let (holder, wait_ms) = (first.holder.clone(), first.wait_ms);
    for (index, wish) in wishes.iter().enumerate() {
        let differs = [("holder", wish.holder != holder), ("waitMs", wish.wait_ms != wait_ms)];
        if let Some((field, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            let reason = "must be the same in every entry; ask for the others in another request";
            return Err(in_entry(index, Failure::invalid(field, reason)));
        }
    }
    let wants = wishes.into_iter().map(|wish| wish.want).collect();
    Ok(Together { holder, wants, wait_ms })
}

/// Says in which entry a field is wrong.
fn in_entry(index: usize, mut failure: Failure) -> Failure {
    if failure.0.code == Code::Invalid {
        failure.0.detail = format!("leases[{index}].{}", failure.0.detail);
    }
    failure
}
