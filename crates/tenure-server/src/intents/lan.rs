//! Networks from which intents are accepted.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;
use tenure_api::Code;
use thiserror::Error;

use super::IntentSettings;
use crate::app::App;
use crate::http::response::HttpError;
use crate::net::Peer;

/// Lets a request on that is for intents only if it comes from a network that may ask. It is asked before anybody looks
/// at tokens.
pub(crate) async fn lan_only(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    if request.uri().path().starts_with(super::BELOW) {
        let peer = request.extensions().get().copied().unwrap_or(Peer::Network { address: None });
        check(&app.intents.settings, peer, request.headers())?;
    }
    Ok(next.run(request).await)
}

fn check(settings: &IntentSettings, peer: Peer, headers: &HeaderMap) -> Result<(), HttpError> {
    let refused = |why: &str| {
        let remedy = "docs/errors/LAN_ONLY.md says how networks and proxies are let in";
        Err(HttpError::new(Code::LanOnly, format!("{why}; {remedy}")))
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
    if any_contains(&settings.lan_allowed, caller) {
        return Ok(());
    }
    refused("this may be asked for from the local network only, and the request comes from elsewhere")
}

/// Who asks: the one who connected or, behind trusted proxies, whom the first of them saw. Nothing if the one who
/// connected is trusted, and what it says cannot be read.
fn caller(peer: IpAddr, lines: Option<&[&str]>, trusted: &[Network]) -> Option<IpAddr> {
    let peer = peer.to_canonical();
    if !any_contains(trusted, peer) {
        // Anybody can write this header.
        return Some(peer);
    }
    let mut caller = peer;
    // All lines are one list; each proxy adds whom it saw at its end.
    for hop in lines?.iter().rev().flat_map(|line| line.rsplit(',')) {
        caller = hop.trim_matches([' ', '\t']).parse::<IpAddr>().ok()?.to_canonical();
        if !any_contains(trusted, caller) {
            break;
        }
    }
    Some(caller)
}

fn any_contains(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// A network, such as `192.168.0.0/16`, `fd00::/8` or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(
    /// Never an IPv4 address in the form of IPv6.
    IpNet,
);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this is no network; write an address, or one with how many bits of it count: 192.168.0.0/16")]
pub struct InvalidNetwork;

impl Network {
    /// The networks that nobody reaches from the internet, and this machine.
    pub fn private_and_loopback() -> Vec<Self> {
        let networks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "fc00::/7", "::1"];
        networks.map(|network| network.parse().expect("a network")).into()
    }

    /// Whether an address is in it. An IPv4 address is the same in either form.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(first, bits)| (first, Some(bits)));
        let written = IpNet::from(address.parse::<IpAddr>().map_err(|_| InvalidNetwork)?);
        let is_number = |bits: &str| !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u8 = match bits {
            None => written.prefix_len(),
            Some(bits) if is_number(bits) => bits.parse().map_err(|_| InvalidNetwork)?,
            Some(_) => return Err(InvalidNetwork),
        };
        let canonical = IpNet::from(written.addr().to_canonical());
        // In the form of IPv6, the first 96 bits only say that it is an IPv4 address.
        let bits = bits.checked_sub(written.max_prefix_len() - canonical.max_prefix_len());
        let network =
            IpNet::new(canonical.addr(), bits.ok_or(InvalidNetwork)?).map_err(|_| InvalidNetwork)?;
        // What has more bits than count is a slip: nobody knows which of both was meant.
        if network == network.trunc() { Ok(Self(network)) } else { Err(InvalidNetwork) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
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
    fn forwarded_headers_of_untrusted_peers_are_ignored() {
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
    fn behind_trusted_proxies_the_last_untrusted_address_is_checked() {
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
    fn a_local_socket_is_accepted_and_an_unknown_address_is_rejected() {
        let (settings, none) = (behind(&[]), HeaderMap::new());
        assert!(check(&settings, Peer::Local { uid: 7, pid: None }, &none).is_ok());
        let refused = check(&settings, Peer::Network { address: None }, &none).unwrap_err();
        assert_eq!(refused.0.code, Code::LanOnly);
        let open = IntentSettings { lan_guard: false, ..settings };
        assert!(passes(&open, "8.8.8.8", &[b"nonsense"]));
    }

    #[test]
    fn a_network_contains_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("172.16.0.0/12", "172.31.255.255", "172.32.0.0"),
            ("192.168.7.9", "192.168.7.9", "192.168.7.8"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
            ("::/0", "2001:db8::1", "127.0.0.1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.0.0.1"),
            ("::ffff:10.0.0.0/104", "10.1.2.3", "11.1.2.3"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{inside} in {network}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{outside} in {network}");
        }
    }

    #[test]
    fn an_invalid_network_is_rejected() {
        for text in [
            "",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "10.0.0.1/8",
            "::/129",
            "ten/8",
            "10.0.0.0/8/8",
            "::ffff:10.0.0.0/8",
            " 10.0.0.0/8",
            "010.0.0.0/8",
            "fe80::1%eth0",
        ] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork), "{text}");
        }
    }
}
