//! Where the device is, and what is known of it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::Uri;
use thiserror::Error;

use crate::device_rules::Rules;

/// What a gateway needs to know.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    pub device: DeviceAddress,
    pub rules: Rules,
    /// How long it is waited for.
    pub timeouts: GatewayTimeouts,
}

/// How long a device is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayTimeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until its answer begins, from the last moment at which something of the request was sent.
    pub first_byte: Duration,
    /// Until more of its answer comes.
    pub next_byte: Duration,
    /// Until it takes a message of a WebSocket.
    pub write: Duration,
    /// Until a WebSocket that it closed is opened again.
    pub reopen: Duration,
}

impl Default for GatewayTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(10),
            next_byte: Duration::from_secs(30),
            write: Duration::from_secs(10),
            reopen: Duration::from_secs(2),
        }
    }
}

/// Where a device is: `http://HOST` or `http://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAddress {
    host: String,
    port: u16,
}

/// What does not say where a device is. A password in it is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidDeviceAddress {
    /// Not even a URL of the right kind.
    #[error("is not where a device is; write http://HOST or http://HOST:PORT")]
    NotHttp,
    #[error("begins with https, and Tenure speaks no TLS to a device: they have none; write http://HOST")]
    Tls,
    #[error(
        "has a name or password in it, which would not reach the device; write http://HOST or http://HOST:PORT"
    )]
    Password,
    #[error(
        "says more than where the device is: its paths are reached at the same paths here; write http://HOST or http://HOST:PORT"
    )]
    Path,
}

impl DeviceAddress {
    pub(super) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// What `Host` says.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 80 { host } else { format!("{host}:{}", self.port) }
    }
}

impl FromStr for DeviceAddress {
    type Err = InvalidDeviceAddress;

    fn from_str(url: &str) -> Result<Self, InvalidDeviceAddress> {
        if url.contains('@') {
            return Err(InvalidDeviceAddress::Password);
        }
        let uri: Uri = url.parse().map_err(|_| InvalidDeviceAddress::NotHttp)?;
        let authority = uri.authority().ok_or(InvalidDeviceAddress::NotHttp)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(InvalidDeviceAddress::Tls),
            _ => return Err(InvalidDeviceAddress::NotHttp),
        }
        // `http::Uri` forgets a fragment.
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || url.contains('#') {
            return Err(InvalidDeviceAddress::Path);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.as_str().rsplit_once(':') {
            Some((_, digits)) if !digits.ends_with(']') => {
                digits.parse().map_err(|_| InvalidDeviceAddress::NotHttp)?
            }
            _ => 80,
        };
        if host.is_empty() || port == 0 {
            return Err(InvalidDeviceAddress::NotHttp);
        }
        Ok(Self { host, port })
    }
}

impl fmt::Display for DeviceAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_address_has_a_host_and_an_optional_port() {
        for (url, shown) in [
            ("http://wled.local", "http://wled.local"),
            ("http://192.168.4.1:80/", "http://192.168.4.1"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:81", "http://[::1]:81"),
            ("http://[::1]", "http://[::1]"),
        ] {
            assert_eq!(url.parse::<DeviceAddress>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn an_invalid_device_address_is_rejected_without_repeating_its_password() {
        for (url, expected) in [
            ("", InvalidDeviceAddress::NotHttp),
            ("wled.local", InvalidDeviceAddress::NotHttp),
            ("ws://wled.local", InvalidDeviceAddress::NotHttp),
            ("http://", InvalidDeviceAddress::NotHttp),
            ("http://a:0", InvalidDeviceAddress::NotHttp),
            ("http://a:99999", InvalidDeviceAddress::NotHttp),
            ("https://wled.local", InvalidDeviceAddress::Tls),
            ("http://admin:hunter2@wled.local", InvalidDeviceAddress::Password),
            ("http://wled.local/json", InvalidDeviceAddress::Path),
            ("http://wled.local?a", InvalidDeviceAddress::Path),
            ("http://wled.local/#a", InvalidDeviceAddress::Path),
        ] {
            let refused = url.parse::<DeviceAddress>().unwrap_err();
            assert_eq!(refused, expected, "{url}");
            assert!(!refused.to_string().contains("hunter2"));
        }
    }
}
