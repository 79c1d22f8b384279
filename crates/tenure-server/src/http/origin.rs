//! No web page from elsewhere reaches a local server: `Host` and `Origin` are compared exactly.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::{Code, Problem};

use super::response::HttpError;
use crate::app::App;
use crate::net::Peer;
use crate::net::tls::ReloadableTls;

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

/// How this server is called on the network.
pub(crate) struct HostNames {
    scheme: &'static str,
    port: u16,
    /// Everything that is exactly right, in lower case.
    exact: Vec<String>,
    tls: Option<Arc<ReloadableTls>>,
}

impl HostNames {
    /// `hosts` is what else it is called, for instance by a proxy: with or without a port.
    pub(crate) fn new(address: SocketAddr, hosts: &[String], tls: Option<Arc<ReloadableTls>>) -> Self {
        let (port, scheme) = (address.port(), if tls.is_some() { "https" } else { "http" });
        let mut names = vec![address.ip().to_string(), "localhost".to_owned()];
        if let IpAddr::V6(ip) = address.ip() {
            names[0] = format!("[{ip}]");
        }
        if !address.ip().is_loopback() {
            names.extend(["127.0.0.1".to_owned(), "[::1]".to_owned()]);
        }
        let mut exact: Vec<_> = names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == default_port(scheme) {
            exact.extend(names);
        }
        for host in hosts {
            let host = host.to_ascii_lowercase();
            exact.push(format!("{host}:{port}"));
            exact.push(host);
        }
        Self { scheme, port, exact, tls }
    }

    /// Whether an authority, such as `localhost:7420`, means this server.
    pub(crate) fn contains(&self, authority: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        self.exact.contains(&authority) || self.certificate_is_for(&authority)
    }

    /// Whether an origin, such as `http://localhost:7420`, is this server's own.
    pub(crate) fn contains_origin(&self, origin: &str) -> bool {
        origin
            .strip_prefix(self.scheme)
            .and_then(|rest| rest.strip_prefix("://"))
            .is_some_and(|name| self.contains(name))
    }

    pub(crate) fn scheme(&self) -> &'static str {
        self.scheme
    }

    fn certificate_is_for(&self, authority: &str) -> bool {
        let Some(tls) = &self.tls else { return false };
        let port = format!(":{}", self.port);
        let name = match authority.strip_suffix(&port) {
            Some(name) => name,
            None if self.port == default_port(self.scheme) => authority,
            None => return false,
        };
        tls.is_valid_for_host(name.trim_start_matches('[').trim_end_matches(']'))
    }
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(address: &str, hosts: &[&str]) -> HostNames {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        HostNames::new(address.parse().unwrap(), &hosts, None)
    }

    #[test]
    fn a_name_is_compared_exactly() {
        let names = names("127.0.0.1:7420", &[]);
        assert!(names.contains("127.0.0.1:7420") && names.contains("LocalHost:7420"));
        for other in ["127.0.0.1", "localhost", "localhost:7421", "localhost:7420.evil.example", "x:7420", ""]
        {
            assert!(!names.contains(other), "{other}");
        }
        assert!(names.contains_origin("http://localhost:7420"));
        for other in
            ["https://localhost:7420", "http://localhost", "null", "http://localhost.evil.example:7420"]
        {
            assert!(!names.contains_origin(other), "{other}");
        }
    }

    #[test]
    fn the_default_port_may_be_omitted_and_configured_hosts_are_accepted() {
        assert!(names("127.0.0.1:80", &[]).contains("localhost"));
        assert!(names("[::1]:7420", &[]).contains("[::1]:7420"));
        let proxied = names("127.0.0.1:7420", &["Tenure.example"]);
        assert!(proxied.contains("tenure.example") && proxied.contains("tenure.example:7420"));
        assert!(!proxied.contains("tenure.example:1") && !proxied.contains("x.tenure.example"));
    }
}
