//! Tells the server what was heard. It asks nothing, so a failure is silent: the agent goes on as it would have.

use std::time::Duration;

use tenure_client::Error;
use tenure_gate::agent::Agent;
use tenure_gate::hooks::{Event, Heard};
use tokio::time::timeout;

use super::speaker::news;
use crate::daemon::{Local, start};

/// How long the agent is held up for it.
const PATIENCE: Duration = Duration::from_secs(2);

pub async fn tell(agent: Agent, heard: &Heard) {
    let (Ok(news), Ok(local)) = (news(agent, heard), Local::find()) else { return };
    let Ok(client) = local.client() else { return };
    let told = timeout(PATIENCE, client.tell_files(&news)).await;
    let is_away = matches!(told, Ok(Err(Error::Unreachable { .. })));
    if is_away && is_worth_a_start(&heard.event) && start(&local).await.is_ok() {
        let _ = timeout(PATIENCE, client.tell_files(&news)).await;
    }
}

/// Whether a daemon is started for it: a session begins, or knows what is in a file. An end needs none: whoever starts
/// next finds out who lives.
fn is_worth_a_start(event: &Event) -> bool {
    matches!(event, Event::Started | Event::Prompted | Event::Read { .. })
}
