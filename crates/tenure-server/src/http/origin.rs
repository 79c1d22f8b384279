//! No web page from elsewhere reaches a local server: `Host` and `Origin` are compared exactly.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::{Code, Problem};

use super::accept::Peer;
use super::host_names::HostNames;
use super::response::HttpError;
use crate::app::App;

/// Lets a request on only if it is meant for this server, and not sent by a page of another.
pub(crate) async fn check_host_and_origin(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    let is_local = matches!(request.extensions().get(), Some(Peer::Local { .. }));
    // Whoever reached the local socket meant it: it has no name. But no page reaches it by itself.
    let names = app.host_names.as_ref().filter(|_| !is_local);
    judge(request.headers(), request.uri(), names, is_local)?;
    Ok(next.run(request).await)
}

/// The same check for another server on this machine, which speaks plain HTTP.
pub struct HostCheck(HostNames);

impl HostCheck {
    /// `hosts` is what else that server is called than by its address, with or without a port.
    pub fn new(address: SocketAddr, hosts: &[String]) -> Self {
        Self(HostNames::new(address, hosts, None))
    }

    /// Whether a request is meant for that server, and not sent by a page of another.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Box<Problem>> {
        judge(headers, uri, Some(&self.0), false).map_err(|failure| failure.0)
    }
}

fn judge(headers: &HeaderMap, uri: &Uri, names: Option<&HostNames>, is_local: bool) -> Result<(), HttpError> {
    let is_ours = |host: &str| names.is_none_or(|names| names.contains(host));
    let host = only(headers, &header::HOST);
    let target = uri.authority().map(|authority| authority.as_str());
    if !host.is_ok_and(|host| host.map_or(is_local, is_ours)) || !target.is_none_or(is_ours) {
        let detail =
            "the Host header must name this server as it was configured; docs/guides/access.md says how";
        return Err(HttpError::new(Code::ForeignHost, detail));
    }
    let own_page = |origin: &str| names.is_some_and(|names| names.contains_origin(origin));
    if !only(headers, &header::ORIGIN).is_ok_and(|origin| origin.is_none_or(own_page)) {
        return Err(HttpError::new(Code::ForeignOrigin, "programs leave the Origin header out"));
    }
    Ok(())
}

/// The value of a header that may stand once at the most.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        _ => Err(()),
    }
}
