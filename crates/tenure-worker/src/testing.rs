//! For tests alone.

use tenure_api::IntentSessionView;

pub fn sample_session(id: &str, state: &str) -> IntentSessionView {
    IntentSessionView {
        session_id: id.to_owned(),
        state: state.to_owned(),
        reason: None,
        outcome: None,
        detail: None,
        correlation_id: "c".to_owned(),
        service_ref: Some("1:0:19".to_owned()),
        recording_id: None,
        start_ms: None,
        profile_id: "hd".to_owned(),
        params: None,
        slot: None,
        worker: None,
        process: None,
        revision: 1,
        accepted_at: String::new(),
        changed_at: String::new(),
    }
}
