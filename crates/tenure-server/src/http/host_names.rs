//! The names by which clients reach this server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::tls::ReloadableTls;

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
