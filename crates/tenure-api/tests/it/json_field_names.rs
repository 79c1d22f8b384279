//! Names on the wire do not change.

use std::collections::BTreeMap;

use tenure_api::{AcquireRequest, Lease, LeaseState, ReleaseRequest, RenewalRequest};

#[test]
fn lease_json_field_names_are_stable() {
    let mut lease = Lease {
        id: "4f1d09aa-17".into(),
        resource: "deploy:prod".into(),
        holder: "ci-42".into(),
        mode: "exclusive".into(),
        state: LeaseState::Active,
        fence: 17,
        ttl_ms: 30_000,
        remaining_ms: 29_000,
        acquired_at: "2026-01-02T03:04:05.678Z".into(),
        expires_at: "2026-01-02T03:04:35.678Z".into(),
        renewal_count: 2,
        labels: BTreeMap::from([("run".into(), "7".into())]),
        ended_at: None,
        end: None,
        recall: None,
    };
    let text = serde_json::to_string(&lease).unwrap();
    assert_eq!(
        text,
        r#"{"id":"4f1d09aa-17","resource":"deploy:prod","holder":"ci-42","mode":"exclusive","state":"ACTIVE","#
            .to_owned()
            + r#""fence":17,"ttlMs":30000,"remainingMs":29000,"acquiredAt":"2026-01-02T03:04:05.678Z","#
            + r#""expiresAt":"2026-01-02T03:04:35.678Z","renewalCount":2,"labels":{"run":"7"}}"#
    );
    assert_eq!(serde_json::from_str::<Lease>(&text).unwrap(), lease);
    (lease.state, lease.end, lease.ended_at) =
        (LeaseState::Released, Some("COMPLETED".into()), Some("2026-01-02T03:04:06.000Z".into()));
    let text = serde_json::to_string(&lease).unwrap();
    assert!(text.contains(r#""state":"RELEASED""#), "{text}");
    assert!(text.ends_with(r#","endedAt":"2026-01-02T03:04:06.000Z","end":"COMPLETED"}"#), "{text}");
}

#[test]
fn request_json_omits_unset_fields() {
    let acquire = AcquireRequest {
        resource: "deploy:prod".into(),
        holder: "ci-42".into(),
        ttl_ms: 30_000,
        mode: None,
        wait_ms: 0,
        labels: BTreeMap::new(),
    };
    let text = serde_json::to_string(&acquire).unwrap();
    assert_eq!(text, r#"{"resource":"deploy:prod","holder":"ci-42","ttlMs":30000}"#);
    let renew = RenewalRequest { token: "secret".into(), ttl_ms: Some(1_000) };
    assert_eq!(serde_json::to_string(&renew).unwrap(), r#"{"token":"secret","ttlMs":1000}"#);
    let release = ReleaseRequest { token: "secret".into(), reason: None };
    assert_eq!(serde_json::to_string(&release).unwrap(), r#"{"token":"secret"}"#);
}
