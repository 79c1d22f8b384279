//! Tenure over HTTP: `POST /v1/leases` and the routes of one lease, on TCP or on the local socket.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::launcher::RunningServer;
use super::{LeaseSlot, Step, TTL};
use crate::error::{BenchError, IoContext as _};
use crate::http::HttpConnection;
use crate::wire::Endpoint;

pub fn command(program: &Path, folder: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    // Nothing of the user's own configuration counts.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TENURE_") {
            command.env_remove(name);
        }
    }
    for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
        command.env(name, folder);
    }
    command.current_dir(folder).args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"]);
    command.arg(folder.join("data")).arg("--socket").arg(socket(folder));
    command
}

/// In a folder of its own, which the server makes for its user alone.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join("run/tenure.sock")
}

/// Succeeds once the server is ready, and remembers its admin token.
pub async fn prepare(server: &mut RunningServer) -> Result<(), BenchError> {
    let mut connection = HttpConnection::connect(&server.endpoint(), None).await?;
    let ready = connection.exchange("GET", &["/readyz"], b"", |status, body| match status {
        200 => Ok(()),
        _ => Err(BenchError::unexpected("GET /readyz", body)),
    });
    ready.await?;
    let path = server.data.join("admin.token");
    let token = fs::read_to_string(&path).while_trying(format!("reading {}", path.display()))?;
    server.authorization = Some(format!("Bearer {}", token.trim_end()));
    Ok(())
}

/// The value of an unlabelled metric.
pub async fn metric(server: &RunningServer, name: &str) -> Result<u64, BenchError> {
    let mut connection = HttpConnection::connect(&server.endpoint(), server.authorization.as_deref()).await?;
    let read = |status: u16, body: &[u8]| {
        let text = String::from_utf8_lossy(body);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.filter(|_| status == 200).ok_or_else(|| BenchError::unexpected("GET /metrics", body))
    };
    connection.exchange("GET", &["/metrics"], b"", read).await
}

/// What is checked of the lease in each response.
#[derive(Deserialize)]
pub struct LeaseBody<'a> {
    #[serde(borrow)]
    pub lease: LeaseFields<'a>,
    /// Only a grant has one.
    #[serde(borrow)]
    pub token: Option<&'a str>,
}

#[derive(Deserialize)]
pub struct LeaseFields<'a> {
    pub id: &'a str,
    pub state: &'a str,
    pub fence: u64,
}

impl LeaseBody<'_> {
    /// Whether this is the right response to `step`, and what the slot must remember of it.
    pub fn check(&self, step: Step, slot: &mut LeaseSlot) -> bool {
        let state = if step == Step::Release { "RELEASED" } else { "ACTIVE" };
        if self.lease.state != state {
            return false;
        }
        match (step, self.token) {
            (Step::Acquire, Some(token)) => {
                slot.id.clear();
                slot.id.push_str(self.lease.id);
                slot.proof.clear();
                slot.proof.push_str(token);
                slot.revision = self.lease.fence;
                true
            }
            (Step::Acquire, None) => false,
            (Step::Renew | Step::Release, _) => self.lease.id == slot.id && self.lease.fence == slot.revision,
        }
    }
}

/// Writes the fields of an acquire, without the braces.
pub fn write_acquire(text: &mut impl std::fmt::Write, resource: &str, holder: &str, ttl_ms: u128) {
    write!(text, r#""resource":"bench:{resource}","holder":"{holder}","ttlMs":{ttl_ms}"#)
        .expect("memory can be written");
}

pub struct TenureHttp {
    http: HttpConnection,
    holder: String,
    body: String,
}

impl TenureHttp {
    pub async fn connect_tcp(server: &RunningServer, number: usize) -> Result<Self, BenchError> {
        Self::connect(&server.endpoint(), server.authorization.as_deref(), number).await
    }

    /// Without a token: the server knows the user at the other end of its local socket.
    pub async fn connect_local(server: &RunningServer, number: usize) -> Result<Self, BenchError> {
        let path = server.socket.clone().unwrap_or_default();
        Self::connect(&Endpoint::Local(path), None, number).await
    }

    async fn connect(
        endpoint: &Endpoint,
        authorization: Option<&str>,
        number: usize,
    ) -> Result<Self, BenchError> {
        let http = HttpConnection::connect(endpoint, authorization).await?;
        // A holder's name belongs to one principal, and those of the two ways to connect differ.
        let way = if authorization.is_some() { "tcp" } else { "local" };
        Ok(Self { http, holder: format!("bench-{way}-{number}"), body: String::new() })
    }

    pub async fn perform(&mut self, step: Step, slot: &mut LeaseSlot) -> Result<(), BenchError> {
        match step {
            Step::Acquire => self.acquire(slot, None).await,
            Step::Renew | Step::Release => {
                self.body.clear();
                write!(self.body, r#"{{"token":"{}"}}"#, slot.proof).expect("memory can be written");
                let id = std::mem::take(&mut slot.id);
                let path = ["/v1/leases/", &id, "/", step.name()];
                let read = |status: u16, body: &[u8]| match serde_json::from_slice::<LeaseBody<'_>>(body) {
                    Ok(response) if status == 200 => {
                        Ok((response.lease.id == id, response.lease.state == "ACTIVE"))
                    }
                    _ => Err(BenchError::unexpected(step.name(), body)),
                };
                let exchanged = self.http.exchange("POST", &path, self.body.as_bytes(), read).await;
                slot.id = id;
                match exchanged? {
                    (true, is_active) if is_active == (step == Step::Renew) => Ok(()),
                    _ => Err(BenchError::unexpected(step.name(), "another lease, or one in another state")),
                }
            }
        }
    }

    /// Acquires; with `wait_ms`, waits in the queue.
    pub async fn acquire(&mut self, slot: &mut LeaseSlot, wait_ms: Option<u64>) -> Result<(), BenchError> {
        self.body.clear();
        self.body.push('{');
        write_acquire(&mut self.body, &slot.resource, &self.holder, TTL.as_millis());
        if let Some(wait_ms) = wait_ms {
            write!(self.body, r#","waitMs":{wait_ms}"#).expect("memory can be written");
        }
        self.body.push('}');
        let read = |status: u16, body: &[u8]| match serde_json::from_slice::<LeaseBody<'_>>(body) {
            Ok(response) if status == 201 && response.check(Step::Acquire, slot) => Ok(()),
            _ if status == 409 => Err(BenchError::Denied(String::from_utf8_lossy(body).into_owned())),
            _ => Err(BenchError::unexpected("acquire", body)),
        };
        self.http.exchange("POST", &["/v1/leases"], self.body.as_bytes(), read).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_for_another_lease_or_in_another_state_is_not_accepted() {
        let text = |id: &str, state: &str, token: &str| {
            format!(r#"{{"lease":{{"id":"{id}","state":"{state}","fence":7,"labels":{{}}}}{token}}}"#)
        };
        let mut slot = LeaseSlot::default();
        let mut check =
            |text: String, step| serde_json::from_str::<LeaseBody<'_>>(&text).unwrap().check(step, &mut slot);
        assert!(!check(text("a-7", "ACTIVE", ""), Step::Acquire), "a grant has a token");
        assert!(check(text("a-7", "ACTIVE", r#","token":"t""#), Step::Acquire));
        assert!(check(text("a-7", "ACTIVE", ""), Step::Renew));
        assert!(!check(text("a-8", "ACTIVE", ""), Step::Renew));
        assert!(!check(text("a-7", "ACTIVE", ""), Step::Release));
        assert!(check(text("a-7", "RELEASED", ""), Step::Release));
    }
}
