//! The client: cheap to copy, and everything goes through it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt};

use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::http::{ApiRequest, Endpoint, HttpTransport, InvalidUrl, ServerAddress, TlsError, TrustRoots};

/// Speaks to one server. Copies share their connections.
#[derive(Clone)]
pub struct Client {
    transport: Arc<HttpTransport>,
    tasks: TaskTracker,
}

impl Client {
    pub(crate) fn from_transport(transport: Arc<HttpTransport>) -> Self {
        Self { transport, tasks: TaskTracker::default() }
    }

    /// Where the server is, for messages. No secret is in it.
    pub fn address(&self) -> String {
        self.transport.address()
    }

    /// Waits until nothing goes on in the background any more: releases of guards that were dropped, and withdrawals
    /// of waits that were cancelled. A program that ends without it leaves those leases to their expiry.
    ///
    /// It waits for guards that are still held, too: give them back first. While the server is away, it takes as long
    /// as the releases are tried, which is some seconds.
    pub async fn drain(&self) {
        self.tasks.wait().await;
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    pub(crate) fn transport(&self) -> &HttpTransport {
        &self.transport
    }

    pub(crate) async fn send<T: DeserializeOwned>(&self, call: &ApiRequest) -> Result<T, Error> {
        let answer = self.transport.send(call).await?;
        answer.read(|| self.address())
    }
}

/// Makes a [`Client`]. Without an address it speaks to the socket on this machine.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    address: Option<ServerAddress>,
    token: Option<Secret>,
    authority: Option<PathBuf>,
}

/// Settings with which nobody can be asked. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The address names no server.
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    /// No certificate could be checked.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token cannot be one.
    #[error("the API token holds characters that no token has; look at TENURE_TOKEN")]
    Token,
    /// A variable is not text.
    #[error("the environment variable {0} is not text; set it anew")]
    NotText(&'static str),
}

impl ClientBuilder {
    /// The server's address: `http://…`, `https://…` or `unix:/path`.
    ///
    /// Over `http` tokens go in the clear: it is for this machine, or a network that nobody else listens to.
    pub fn url(mut self, url: &str) -> Result<Self, SettingsError> {
        self.address = Some(ServerAddress::parse(url)?);
        Ok(self)
    }

    /// The server's socket on this machine.
    #[must_use]
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.address = Some(ServerAddress::Unix(path.into()));
        self
    }

    /// Who speaks. It is not sent to a socket: there the system says who speaks.
    #[must_use]
    pub fn token(mut self, token: Secret) -> Self {
        self.token = Some(token);
        self
    }

    /// A PEM file with the certificate authority to trust, instead of those that the system trusts.
    #[must_use]
    pub fn certificate_authority(mut self, path: impl Into<PathBuf>) -> Self {
        self.authority = Some(path.into());
        self
    }

    /// The client. It connects when it is first asked for something.
    pub fn build(self) -> Result<Client, SettingsError> {
        if !self.token.as_ref().is_none_or(is_valid_token) {
            return Err(SettingsError::Token);
        }
        let place =
            self.address.unwrap_or_else(|| ServerAddress::Unix(default_socket(|name| env::var_os(name))));
        let trust = self.authority.as_deref().map_or(TrustRoots::System, TrustRoots::Authority);
        Ok(Client::new(HttpTransport::new(Endpoint::new(place, &trust)?, self.token)))
    }

    /// What `TENURE_URL`, `TENURE_TOKEN`, `TENURE_CA` and `TENURE_SOCKET` say.
    pub(crate) fn from_environment_lookup(
        get: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let set = |name| get(name).filter(|value| !value.is_empty());
        let text = |name| match set(name).map(OsString::into_string) {
            Some(Err(_)) => Err(SettingsError::NotText(name)),
            Some(Ok(value)) => Ok(Some(value)),
            None => Ok(None),
        };
        let place = match text("TENURE_URL")? {
            Some(url) => ServerAddress::parse(&url)?,
            None => ServerAddress::Unix(default_socket(&get)),
        };
        let token = text("TENURE_TOKEN")?.map(|token| Secret::new(token.trim()));
        Ok(Self { address: Some(place), token, authority: set("TENURE_CA").map(PathBuf::from) })
    }
}

fn is_valid_token(token: &Secret) -> bool {
    token.expose().bytes().all(|byte| byte.is_ascii_graphic())
}

/// Where the server on this machine listens, unless somebody says otherwise.
fn default_socket(get: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set("TENURE_SOCKET") {
        return path;
    }
    let folder = set("XDG_RUNTIME_DIR").map(|folder| folder.join("tenure"));
    let user = || rustix::process::getuid().as_raw();
    folder.unwrap_or_else(|| Path::new("/tmp").join(format!("tenure-{}", user()))).join("tenure.sock")
}

impl Client {
    /// Says where the server is and who speaks.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// The server that `TENURE_URL` names, spoken to with `TENURE_TOKEN`; else the socket on this machine:
    /// `TENURE_SOCKET`, else `$XDG_RUNTIME_DIR/tenure/tenure.sock`, else `/tmp/tenure-UID/tenure.sock`.
    /// `TENURE_CA` is a PEM file with the certificate authority to trust.
    pub fn from_environment() -> Result<Self, SettingsError> {
        ClientBuilder::from_environment_lookup(|name| env::var_os(name))?.build()
    }

    /// The same server, spoken to with another token: for a program that passes on what others ask.
    pub fn with_token(&self, token: Secret) -> Result<Self, SettingsError> {
        if is_valid_token(&token) {
            Ok(Self::new(self.transport().with_token(token)))
        } else {
            Err(SettingsError::Token)
        }
    }

    /// Whether a token says who speaks. On a socket of this machine the system does.
    pub fn uses_token(&self) -> bool {
        self.transport().uses_token()
    }

    pub(crate) fn new(exchange: HttpTransport) -> Self {
        Self::from_transport(Arc::new(exchange))
    }
}

/// An API token or a lease token. It is wiped from memory on drop, and `Debug` does not print it.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the secret over.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text of the secret.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Counts what goes on.
#[derive(Clone)]
pub(crate) struct TaskTracker {
    count: watch::Sender<usize>,
}

/// Something goes on as long as this lives.
pub(crate) struct TaskGuard(watch::Sender<usize>);

impl TaskTracker {
    pub(crate) fn track(&self) -> TaskGuard {
        self.count.send_modify(|count| *count += 1);
        TaskGuard(self.count.clone())
    }

    pub(crate) async fn wait(&self) {
        // It cannot be closed: we have a sender ourselves.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Default for TaskTracker {
    fn default() -> Self {
        Self { count: watch::Sender::new(0) }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Makes a request one and the same however often it is sent: the server finds its first answer again.
///
/// Whoever knows the key and the request gets the lease's token, so it is shown by nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// What cannot be a key.
#[derive(Debug, Error)]
#[error("an idempotency key has 1 to 255 visible ASCII characters; choose another one")]
pub struct InvalidKey;

impl IdempotencyKey {
    /// A key that nobody else has.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has random bytes");
        Self(hex::encode(bytes))
    }

    /// A key of the caller's own.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let is_fit = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit { Ok(Self(text.to_owned())) } else { Err(InvalidKey) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What spreads clients out in time.
pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0; 8];
    // Without chance clients are only less spread out.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(variables: &[(&str, &str)]) -> String {
        let get = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value))
        };
        match ClientBuilder::from_environment_lookup(get).and_then(ClientBuilder::build) {
            Ok(client) => client.address(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn url_is_preferred_to_the_socket_and_the_socket_has_a_default() {
        assert_eq!(address(&[("TENURE_URL", "http://a:1"), ("TENURE_SOCKET", "/b")]), "http://a:1");
        assert_eq!(address(&[("TENURE_URL", "unix:/a")]), "unix:/a");
        assert_eq!(
            address(&[("TENURE_URL", ""), ("TENURE_SOCKET", "/b"), ("XDG_RUNTIME_DIR", "/r")]),
            "unix:/b"
        );
        assert_eq!(address(&[("XDG_RUNTIME_DIR", "/r")]), "unix:/r/tenure/tenure.sock");
        assert!(address(&[]).starts_with("unix:/tmp/tenure-"));
    }

    #[test]
    fn invalid_token_is_rejected_and_not_shown() {
        let message = address(&[("TENURE_URL", "http://a:1"), ("TENURE_TOKEN", "two words")]);
        assert!(message.contains("TENURE_TOKEN") && !message.contains("words"), "{message}");
    }

    #[test]
    fn missing_ca_file_is_named_in_the_error() {
        let error = address(&[("TENURE_URL", "https://a:1"), ("TENURE_CA", "/nowhere.pem")]);
        assert!(error.contains("/nowhere.pem") && error.contains("TENURE_CA"), "{error}");
    }
}
