//! Tells the server what was heard. It asks nothing, so a failure is silent: the agent goes on as it would have.

use std::time::Duration;

use tenure_client::Error;
use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::hooks::{HookEvent, HookPayload};
use tokio::time::timeout;

use super::requests::file_event;
use crate::daemon::{LocalServer, start};

/// How long the agent is held up for it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

pub async fn send_event(agent: CodingAgent, payload_event: &HookPayload) {
    let (Ok(news), Ok(local)) = (file_event(agent, payload_event), LocalServer::find()) else { return };
    let Ok(client) = local.client() else { return };
    let response = timeout(RESPONSE_TIMEOUT, client.report_file_event(&news)).await;
    let is_away = matches!(response, Ok(Err(Error::Unreachable { .. })));
    if is_away && should_start_server(&payload_event.event) && start(&local).await.is_ok() {
        let _ = timeout(RESPONSE_TIMEOUT, client.report_file_event(&news)).await;
    }
}

/// Whether a daemon is started for it: a session begins, or knows what is in a file. An end needs none: whoever starts
/// next finds out who lives.
fn should_start_server(event: &HookEvent) -> bool {
    matches!(event, HookEvent::Started | HookEvent::Prompted | HookEvent::AfterRead { .. })
}
