//! No web page from elsewhere reaches a local server: `Host` and `Origin` are compared exactly.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, header};
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::Code;

use super::answer::Failure;
use crate::app::App;

/// Lets a request on only if it is meant for this server, and not sent by a page of another.
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let host = only(request.headers(), &header::HOST);
    let target = request.uri().authority().map(|authority| authority.as_str());
    let is_ours = |host: &str| names(app.address).iter().any(|name| name == host);
    if !host.is_ok_and(|host| host.is_some_and(is_ours)) || !target.is_none_or(is_ours) {
        let detail = format!("this is http://{}; the Host header must say so", app.address);
        return Err(Failure::new(Code::ForeignHost, detail));
    }
    let own_page = |origin: &str| origin.strip_prefix("http://").is_some_and(is_ours);
    if !only(request.headers(), &header::ORIGIN).is_ok_and(|origin| origin.is_none_or(own_page)) {
        return Err(Failure::new(Code::ForeignOrigin, "programs leave the Origin header out"));
    }
    Ok(next.run(request).await)
}

/// How this server is called.
fn names(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut names = vec![address.to_string(), format!("localhost:{port}")];
    if port == 80 {
        names.extend([address.ip().to_string(), "localhost".to_owned()]);
    }
    names
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
