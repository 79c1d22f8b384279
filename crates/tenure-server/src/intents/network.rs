//! Networks: an address, and how many of its bits count.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;

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
    use super::*;

    #[test]
    fn an_address_is_in_a_network_if_the_bits_that_count_are_the_same() {
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
    fn what_names_no_network_is_refused() {
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
