//! How a lease is shown to whoever was just given it: with its token, its passport, and how long it is good for.

use tenure_api::Granted;
use tenure_core::kernel::{Fence, Tick};
use tenure_registrar::shell::Response;

use super::show::find;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::refusal::unexpected;

/// A lease that was given to a request that came in at `stamp`.
pub(in crate::http) fn granted(
    app: &App,
    response: &Response,
    fence: Fence,
    stamp: Tick,
) -> Result<Granted, Failure> {
    let shown = app.registrar.read(|state| {
        let live = state.lease(fence).map(|lease| (lease.issued_at, lease.expires_at, lease.nonce));
        let ended = || state.ended(fence).map(|lease| (lease.issued_at, lease.expires_at, lease.nonce));
        let (issued_at, expires_at, nonce) = live.or_else(ended)?;
        // A request that waited came in long before its lease began.
        let lease = find(state, fence, stamp.max(issued_at))?;
        let token = app.tokens.lease_token(&lease.id, nonce).to_string();
        // A client counts from when it sent the request, which was before the stamp.
        Some((lease, token, expires_at.since(stamp).as_millis()))
    });
    let (lease, token, valid_for_ms) = shown.ok_or_else(unexpected)?;
    let passport = app.registrar.passport(response, fence);
    Ok(Granted { lease, token, passport, valid_for_ms })
}
