//! Only the local network may ask: by the address of a connection, and by what a trusted proxy says of it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::Code;

use super::network::Network;
use super::settings::IntentSettings;
use crate::app::App;
use crate::http::accept::Peer;
use crate::http::answer::Failure;

/// Lets a request on that is for intents only if it comes from a network that may ask. It is asked before anybody looks
/// at tokens.
pub(crate) async fn lan_only(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    if request.uri().path().starts_with(super::BELOW) {
        let peer = request.extensions().get().copied().unwrap_or(Peer::Network { address: None });
        check(&app.intents.settings, peer, request.headers())?;
    }
    Ok(next.run(request).await)
}

fn check(settings: &IntentSettings, peer: Peer, headers: &HeaderMap) -> Result<(), Failure> {
    let refused = |why: &str| {
        let remedy = "docs/errors/LAN_ONLY.md says how networks and proxies are let in";
        Err(Failure::new(Code::LanOnly, format!("{why}; {remedy}")))
    };
    let peer = match peer {
        Peer::Local { .. } => return Ok(()),
        _ if !settings.lan_guard => return Ok(()),
        Peer::Network { address } => address,
    };
    let Some(peer) = peer else { return refused("nobody knows where this connection comes from") };
    let forwarded = headers.get_all("x-forwarded-for").iter();
    let lines: Option<Vec<&str>> = forwarded.map(|line| line.to_str().ok()).collect();
    let Some(caller) = caller(peer, lines.as_deref(), &settings.trusted_proxies) else {
        return refused("the header X-Forwarded-For of a trusted proxy cannot be read");
    };
    if contain(&settings.lan_allowed, caller) {
        return Ok(());
    }
    refused("this may be asked for from the local network only, and the request comes from elsewhere")
}

/// Who asks: the one who connected or, behind trusted proxies, whom the first of them saw. Nothing if the one who
/// connected is trusted, and what it says cannot be read.
fn caller(peer: IpAddr, lines: Option<&[&str]>, trusted: &[Network]) -> Option<IpAddr> {
    let peer = peer.to_canonical();
    if !contain(trusted, peer) {
        // Anybody can write this header.
        return Some(peer);
    }
    let mut caller = peer;
    // All lines are one list; each proxy adds whom it saw at its end.
    for hop in lines?.iter().rev().flat_map(|line| line.rsplit(',')) {
        caller = hop.trim_matches([' ', '\t']).parse::<IpAddr>().ok()?.to_canonical();
        if !contain(trusted, caller) {
            break;
        }
    }
    Some(caller)
}

fn contain(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn passes(settings: &IntentSettings, peer: &str, lines: &[&[u8]]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
        }
        check(settings, Peer::Network { address: Some(peer.parse().unwrap()) }, &headers).is_ok()
    }

    fn behind(proxies: &[&str]) -> IntentSettings {
        let trusted_proxies = proxies.iter().map(|text| text.parse().unwrap()).collect();
        IntentSettings { trusted_proxies, ..IntentSettings::default() }
    }

    // S1-46
    #[test]
    fn whoever_connects_from_elsewhere_is_refused_whatever_its_header_says() {
        let settings = behind(&[]);
        for peer in
            ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:10.0.0.1"]
        {
            assert!(passes(&settings, peer, &[]), "{peer}");
            assert!(passes(&settings, peer, &[b"8.8.8.8"]), "{peer} is no trusted proxy");
            assert!(passes(&settings, peer, &[b"nonsense"]), "{peer} is no trusted proxy");
        }
        for peer in ["8.8.8.8", "172.32.0.1", "192.169.0.1", "2001:db8::1", "::ffff:8.8.8.8", "169.254.1.1"] {
            assert!(!passes(&settings, peer, &[]), "{peer}");
            assert!(!passes(&settings, peer, &[b"127.0.0.1"]), "{peer} is no trusted proxy");
        }
    }

    // S1-46
    #[test]
    fn behind_trusted_proxies_the_last_address_counts_that_is_none_of_them() {
        let settings = behind(&["203.0.113.7", "10.0.0.0/24"]);
        for (peer, lines, may) in [
            ("203.0.113.7", &[&b"192.168.1.9"[..]][..], true),
            ("203.0.113.7", &[b"8.8.8.8"], false),
            ("::ffff:203.0.113.7", &[b"::ffff:192.168.1.9"], true),
            // What the caller wrote itself stands to the left.
            ("203.0.113.7", &[b"192.168.1.9, 8.8.8.8"], false),
            ("203.0.113.7", &[b"8.8.8.8, 192.168.1.9"], true),
            ("203.0.113.7", &[b"192.168.1.9", b"8.8.8.8"], false),
            ("203.0.113.7", &[b"192.168.1.9, 8.8.8.8", b"10.0.0.5"], false),
            ("203.0.113.7", &[b"8.8.8.8", b"192.168.1.9,10.0.0.5 ,\t10.0.0.6"], true),
            ("203.0.113.7", &[b"nonsense, 192.168.1.9"], true),
            // A hop that cannot be read.
            ("203.0.113.7", &[b"192.168.1.9, nonsense"], false),
            ("203.0.113.7", &[b"192.168.1.9,"], false),
            ("203.0.113.7", &[b""], false),
            ("203.0.113.7", &[b"192.168.1.9,,10.0.0.5"], false),
            ("203.0.113.7", &[b"192.168.1.9:1234"], false),
            ("203.0.113.7", &[b"[::1]"], false),
            ("203.0.113.7", &[b"127.1"], false),
            ("203.0.113.7", &[b"0177.0.0.1"], false),
            ("203.0.113.7", &[b"unknown"], false),
            ("203.0.113.7", &[b"\"192.168.1.9\""], false),
            ("203.0.113.7", &[b"192.168.1.9\xff"], false),
            ("203.0.113.7", &[b"192.168.1.9; 10.0.0.5"], false),
            // Nobody is named but proxies, or nobody at all: the outermost that is known asks.
            ("203.0.113.7", &[b"10.0.0.5"], true),
            ("10.0.0.5", &[b"203.0.113.7"], false),
            ("10.0.0.5", &[], true),
            ("203.0.113.7", &[], false),
        ] {
            assert_eq!(passes(&settings, peer, lines), may, "{peer} {lines:?}");
        }
    }

    #[test]
    fn a_local_socket_is_local_an_unknown_place_is_not_and_without_a_guard_all_may() {
        let (settings, none) = (behind(&[]), HeaderMap::new());
        assert!(check(&settings, Peer::Local { uid: 7, pid: None }, &none).is_ok());
        let refused = check(&settings, Peer::Network { address: None }, &none).unwrap_err();
        assert_eq!(refused.0.code, Code::LanOnly);
        let open = IntentSettings { lan_guard: false, ..settings };
        assert!(passes(&open, "8.8.8.8", &[b"nonsense"]));
    }
}
