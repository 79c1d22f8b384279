//! What goes along between a client and the device, and what does not.

use std::net::{IpAddr, Ipv4Addr};

use axum::http::header::{
    self, CONNECTION, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};

use super::settings::DeviceAddress;
use crate::http::accept::Peer;

/// About one connection, not about what is carried over it. `Expect` too: Tenure answers that.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "http2-settings",
];

/// What proves to Tenure who speaks: nothing that a device needs to know, and nothing that it could keep for itself.
const SECRETS: &[&str] = &["authorization", "x-api-key", "cookie"];
/// What all headers about the lease begin with.
const LEASE: &str = "x-control-lease";

/// Where a client says something about the way it came, or that it meant another method than the one that was judged.
const CLIENT_ASSERTIONS: &[&str] = &[
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-real-ip",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// What would speak in Tenure's name to a browser.
const ORIGIN_SCOPED: &[&str] = &[
    "set-cookie",
    "clear-site-data",
    "strict-transport-security",
    "service-worker-allowed",
    "access-control-allow-credentials",
    "alt-svc",
];

/// The headers of a request as the device gets them.
pub(super) fn to_device(headers: &mut HeaderMap, device: &DeviceAddress, peer: Option<Peer>) {
    remove_hop_by_hop(headers);
    remove(headers, |name| {
        let is_named = |names: &[&str]| names.contains(&name);
        let is_handshake = name.starts_with("sec-websocket-");
        is_named(SECRETS) || is_named(CLIENT_ASSERTIONS) || name.starts_with(LEASE) || is_handshake
    });
    let host = HeaderValue::from_str(&device.authority()).expect("a host that was parsed");
    headers.insert(HOST, host);
    // One connection for each request: so it can be cut without anything else on it.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let address = match peer {
        Some(Peer::Network { address: Some(address) }) => address,
        // On the local socket, or unknown.
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let address = HeaderValue::from_str(&address.to_string()).expect("an address is visible ASCII");
    headers.insert(HeaderName::from_static("x-forwarded-for"), address);
}

/// The headers of an answer as the client gets them.
pub(super) fn to_client(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    remove(headers, |name| ORIGIN_SCOPED.contains(&name));
    // A page of the device has our address, and must not be able to speak with our page's rights.
    headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// What `Connection` names is about one connection, too. A length stays: without it the body would be another one.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<_> =
        values.flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()).collect();
    for name in named {
        if !name.eq_ignore_ascii_case(header::CONTENT_LENGTH.as_str()) {
            headers.remove(name);
        }
    }
    remove(headers, |name| HOP_BY_HOP.contains(&name));
}

fn remove(headers: &mut HeaderMap, is_unwanted: impl Fn(&str) -> bool) {
    let unwanted: Vec<_> = headers.keys().filter(|name| is_unwanted(name.as_str())).cloned().collect();
    for name in unwanted {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    // S0-13: the token reaches nobody but its owner and Tenure.
    #[test]
    fn credentials_and_hop_by_hop_headers_are_not_sent_to_the_device() {
        let mut headers = map(&[
            ("authorization", "Bearer x"),
            ("x-api-key", "x"),
            ("cookie", "session=x"),
            ("x-control-lease", "x"),
            ("x-control-lease-id", "x"),
            ("x-control-lease-anything", "x"),
            ("proxy-authorization", "x"),
            ("connection", "keep-alive, x-private, content-length"),
            ("x-private", "x"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "x"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("x-http-method-override", "POST"),
            ("x-forwarded-for", "1.2.3.4"),
            ("forwarded", "for=1.2.3.4"),
            ("host", "tenure.example"),
            ("content-type", "application/json"),
            ("content-length", "5"),
            ("accept", "*/*"),
        ]);
        let device = "http://wled.local".parse().unwrap();
        to_device(&mut headers, &device, Some(Peer::Network { address: Some([10, 0, 0, 7].into()) }));
        let mut remaining: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        remaining.sort();
        let expected = [
            "accept: */*",
            "connection: close",
            "content-length: 5",
            "content-type: application/json",
            "host: wled.local",
            "x-forwarded-for: 10.0.0.7",
        ];
        assert_eq!(remaining, expected);
    }

    #[test]
    fn a_device_sets_no_cookie_and_its_pages_have_no_rights_of_ours() {
        let mut headers = map(&[
            ("set-cookie", "a=b"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("content-security-policy", "default-src *"),
            ("content-type", "text/html"),
        ]);
        to_client(&mut headers);
        assert!(!headers.contains_key("set-cookie") && !headers.contains_key("transfer-encoding"));
        let policies: Vec<_> = headers.get_all(CONTENT_SECURITY_POLICY).iter().collect();
        assert_eq!(policies, ["default-src *", "sandbox"], "of several policies each counts");
    }
}
