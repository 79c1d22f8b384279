//! Sessions as people read them.

use tenure_api::{AcceptedIntent, IntentSessionView};

use crate::output::Table;

pub fn table(sessions: &[IntentSessionView]) -> Table {
    let mut table = Table::with_header(&["SESSION", "STATE", "WHAT", "PROFILE", "TUNER", "OUTCOME", "SINCE"]);
    for session in sessions {
        let tuner = session.slot.map_or_else(|| "-".to_owned(), |slot| slot.to_string());
        table.row([
            session.session_id.clone(),
            session.state.clone(),
            what(session),
            session.profile_id.clone(),
            tuner,
            session.outcome.clone().unwrap_or_else(|| "-".to_owned()),
            session.changed_at.clone(),
        ]);
    }
    table
}

pub fn fields(session: &IntentSessionView) -> Table {
    let mut table = Table::default();
    table.field("session", &session.session_id);
    table.field("state", &session.state);
    if let Some(outcome) = &session.outcome {
        table.field("outcome", outcome);
    }
    if let Some(reason) = &session.reason {
        table.field("reason", reason);
    }
    if let Some(detail) = &session.detail {
        table.field("detail", detail);
    }
    let kind = if session.recording_id.is_some() { "recording" } else { "service" };
    table.field(kind, what(session));
    table.field("profile", &session.profile_id);
    for (name, value) in session.params.iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        table.field("param", format!("{name}={value}"));
    }
    if let Some(slot) = session.slot {
        table.field("tuner", slot);
    }
    if let Some(worker) = &session.worker {
        table.field("worker", worker);
    }
    if let Some(process) = &session.process {
        table.field("process", process);
    }
    table.field("correlation", &session.correlation_id);
    table.field("accepted", &session.accepted_at);
    table.field("since", &session.changed_at);
    table
}

/// What an intent became, or where a session is that was asked to end.
pub fn accepted_intent_table(accepted: &AcceptedIntent) -> Table {
    let mut table = Table::default();
    table.field("session", &accepted.session_id);
    table.field("state", &accepted.state);
    if let Some(outcome) = &accepted.outcome {
        table.field("outcome", outcome);
    }
    if let Some(reason) = &accepted.reason {
        table.field("reason", reason);
    }
    table.field("correlation", &accepted.correlation_id);
    table
}

/// The channel, or the recording and from where.
fn what(session: &IntentSessionView) -> String {
    match (&session.service_ref, &session.recording_id) {
        (Some(service), _) => service.clone(),
        (None, Some(recording)) => match session.start_ms {
            Some(start_ms) => format!("{recording} from {start_ms} ms"),
            None => recording.clone(),
        },
        (None, None) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> IntentSessionView {
        serde_json::from_str(
            r#"{"session_id":"7c0e9a","state":"RUNNING","correlationId":"tv-7","serviceRef":"1:0:19:283D:3FB:1:C00000:0:0:0:",
                "profileID":"hd","params":{"subtitles":"de","cut":4},"slot":1,"worker":"worker:b:1:2:3","process":"pid 123",
                "revision":12,"acceptedAt":"2026-11-16T10:00:00.000Z","changedAt":"2026-11-16T10:00:01.000Z"}"#,
        )
        .unwrap()
    }

    fn refused() -> IntentSessionView {
        serde_json::from_str(
            r#"{"session_id":"99","state":"ENDED","reason":"R_LEASE_BUSY","outcome":"REJECTED_BUSY",
                "detail":"recording:film:10 is held by 7c0e9a","correlationId":"x\u001b[2J","recordingID":"film","startMs":10500,
                "profileID":"sd","revision":13,"acceptedAt":"2026-11-16T10:00:02.000Z","changedAt":"2026-11-16T10:00:02.100Z"}"#,
        )
        .unwrap()
    }

    #[test]
    fn session_table_shows_target_tuner_and_outcome() {
        let expected = "\
SESSION  STATE    WHAT                             PROFILE  TUNER  OUTCOME        SINCE
7c0e9a   RUNNING  1:0:19:283D:3FB:1:C00000:0:0:0:  hd       1      -              2026-11-16T10:00:01.000Z
99       ENDED    film from 10500 ms               sd       -      REJECTED_BUSY  2026-11-16T10:00:02.100Z
";
        assert_eq!(table(&[running(), refused()]).to_string(), expected);
    }

    #[test]
    fn session_fields_are_shown_one_per_line() {
        let expected = "\
session      7c0e9a
state        RUNNING
service      1:0:19:283D:3FB:1:C00000:0:0:0:
profile      hd
param        cut=4
param        subtitles=de
tuner        1
worker       worker:b:1:2:3
process      pid 123
correlation  tv-7
accepted     2026-11-16T10:00:00.000Z
since        2026-11-16T10:00:01.000Z
";
        assert_eq!(fields(&running()).to_string(), expected);
    }

    #[test]
    fn ended_session_shows_its_reason_first_without_control_characters() {
        let expected = "\
session      99
state        ENDED
outcome      REJECTED_BUSY
reason       R_LEASE_BUSY
detail       recording:film:10 is held by 7c0e9a
recording    film from 10500 ms
profile      sd
correlation  x [2J
accepted     2026-11-16T10:00:02.000Z
since        2026-11-16T10:00:02.100Z
";
        assert_eq!(fields(&refused()).to_string(), expected);
    }
}
