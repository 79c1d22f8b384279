//! `POST /v1/leases/{id}/upgrade`: a stronger mode, if nobody is in the way.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_core::kernel::{Command, Mode};

use super::LeaseId;
use super::change_mode::Asked;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::body::JsonBody;

pub(super) async fn upgrade(
    State(app): State<Arc<App>>,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    let asked = Asked::read(body.fields, Mode::Exclusive)?;
    asked.change(&app, &id, "upgrade", Command::Upgrade).await
}
