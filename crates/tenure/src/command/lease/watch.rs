//! `tenure watch`.

use std::io::Write as _;

use clap::Args;
use tenure_api::{AgentEventDetails, FileEventDetails, ResourceAccess, ServerEvent};
use tenure_client::{EventFilter, EventStartPosition};

use crate::client::with_client;
use crate::failure::Failure;
use crate::output::buffered_stdout;

/// Shows what happens as it happens, one line each, until it is stopped.
///
/// It connects again by itself and misses nothing. What happened earlier is shown from --from on, as far back as the
/// server still tells it; `tenure log` shows all of it.
///
/// Example: tenure watch --resource deploy:prod --json | jq .type
#[derive(Debug, Args)]
pub struct Watch {
    /// Only what is about this resource
    #[arg(long)]
    resource: Option<String>,
    /// Only what is of this type, such as `lease.expired`
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The number of the first event to show, or `now`
    #[arg(long, value_name = "SEQ", default_value = "now", value_parser = parse_from)]
    from: EventStartPosition,
    /// Print one JSON value for each event
    #[arg(long)]
    json: bool,
}

impl Watch {
    /// Writes event after event.
    pub fn run(self) -> Result<(), Failure> {
        let filter = EventFilter { resource: self.resource, r#type: self.kind };
        with_client(async |client| {
            let mut events = client.events(self.from, &filter).await?;
            let mut output = buffered_stdout();
            while let Some(event) = events.next().await? {
                if self.json {
                    serde_json::to_writer(&mut output, &event).map_err(std::io::Error::from)?;
                    writeln!(output)?;
                } else {
                    writeln!(output, "{}", line(&event))?;
                }
                output.flush()?;
            }
            Ok(())
        })
    }
}

fn parse_from(text: &str) -> Result<EventStartPosition, String> {
    match text {
        "now" => Ok(EventStartPosition::Now),
        number => number
            .parse()
            .map(EventStartPosition::Seq)
            .map_err(|_| "must be the number of an event, or `now`".to_owned()),
    }
}

fn line(event: &ServerEvent) -> String {
    let ServerEvent { seq, r#type, at, lease, waiter, session, agent, file, spent, cause, detail } = event;
    let mut words = Vec::new();
    if let Some(lease) = lease {
        words.push(format!("{} {} by {} fence {}", lease.id, lease.resource, lease.holder, lease.fence));
        words.extend(lease.end.iter().filter(|end| Some(*end) != cause.as_ref()).cloned());
    }
    if let Some(waiter) = waiter {
        words.push(format!(
            "ticket {} of {} for {}",
            waiter.ticket,
            waiter.holder,
            waiter.resources.join(", ")
        ));
    }
    if let Some(session) = session {
        words.push(format!("{} {}", session.session_id, session.state));
        words
            .extend(session.service_ref.iter().chain(&session.recording_id).map(|name| format!("of {name}")));
        words.extend(session.slot.map(|slot| format!("tuner {slot}")));
        words.extend(session.outcome.iter().cloned());
    }
    words.extend(agent.iter().map(of_agent));
    words.extend(file.iter().map(of_file));
    words.extend(spent.iter().map(crate::command::work::format_amounts));
    words.extend(cause.iter().cloned());
    words.extend(detail.iter().map(|detail| detail.replace(char::is_control, " ")));
    format!("{seq:>8}  {at:<24}  {type:<15}  {}", words.join("  ")).trim_end().to_owned()
}

fn of_agent(agent: &AgentEventDetails) -> String {
    let list = |requests: &[ResourceAccess]| {
        let each = requests.iter().map(|request| format!("{} {}", request.predicate, request.resource));
        each.collect::<Vec<_>>().join(", ")
    };
    let mut words = vec![agent.agent_id.clone()];
    words.extend(agent.state.clone());
    words.extend(agent.priority_timestamp.map(|priority| format!("priority {priority}")));
    words.extend((!agent.wants.is_empty()).then(|| format!("for {}", list(&agent.wants))));
    words.extend((!agent.outside.is_empty()).then(|| format!("without a lease: {}", list(&agent.outside))));
    words.extend(agent.retry_after_ms.map(|after| format!("may come back after {after} ms")));
    words.extend(agent.held_ms.map(|held| format!("held leases for {held} ms")));
    words.join("  ")
}

fn of_file(file: &FileEventDetails) -> String {
    let mut words = vec![file.holder.clone()];
    words.extend(file.resource.clone());
    words.extend(file.owner.iter().map(|owner| format!("of {owner}")));
    words.extend(file.ticket.map(|ticket| format!("ticket {ticket}")));
    words.extend(file.retry_at.iter().map(|at| format!("retry at {at}")));
    words.extend((!file.circle.is_empty()).then(|| format!("in a circle: {}", file.circle.join(", "))));
    words.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_accepts_an_event_number_or_now() {
        assert_eq!(parse_from("now"), Ok(EventStartPosition::Now));
        assert_eq!(parse_from("17"), Ok(EventStartPosition::Seq(17)));
        assert!(parse_from("yesterday").is_err());
    }

    #[test]
    fn event_is_printed_on_one_line() {
        let event = ServerEvent {
            seq: 7,
            r#type: "lease.revoked".into(),
            at: "2026-01-02T03:04:05.678Z".into(),
            lease: None,
            waiter: None,
            session: None,
            agent: None,
            file: None,
            spent: None,
            cause: Some("REVOKED".into()),
            detail: Some("two\nlines".into()),
        };
        assert_eq!(line(&event), "       7  2026-01-02T03:04:05.678Z  lease.revoked    REVOKED  two lines");
    }
}
