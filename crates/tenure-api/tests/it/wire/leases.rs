//! Samples of plain leases, tokens, control, intents and everything that several APIs share.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tenure_api::{
    AcceptedIntent, AcquireRequest, ApiTokenList, ApiTokenRequest, ApiTokenView, BatchAcquireRequest, Code,
    ControlStatus, CreatedApiToken, DenialView, Explanation, IntentRequest, IntentSessionChanges,
    IntentSessionChangesRequest, IntentSessionFinishRequest, IntentSessionLeases, IntentSessionList,
    IntentSessionRenewal, IntentSessionRenewalRequest, IntentSessionRenewals, IntentSessionRunningReport,
    IntentSessionStatus, IntentSessionTakeRequest, IntentSessionView, IntentSessionWipeRequest,
    LeaderLockGrant, LeaderLockReleaseRequest, LeaderLockRequest, Lease, LeaseGrant, LeaseGrants, LeasePage,
    LeaseRenewal, LeaseResponse, LeaseState, ModeChangeRequest, Problem, Queue, Recall, ReleaseRequest,
    RenewalRequest, RevocationRequest, RevokedApiToken, ServerEvent, TransferRequest, Waiter, WipeResult,
};

use super::{AT, LATER, Samples, agents, files, full_and_none, labels, list, some, texts, work};

pub(super) fn add_samples(samples: &mut Samples) {
    samples.add([LeaseState::Active, LeaseState::Expired, LeaseState::Released]);
    samples.add(Code::ALL.iter().copied());
    samples.add([blocked_waiters()]);
    samples.add(full_and_none(lease));
    samples.add(full_and_none(lease_grant));
    samples.add(full_and_none(|full| LeaseGrants {
        leases: list(full, [lease_grant(true), lease_grant(false)]),
    }));
    samples.add(full_and_none(|full| LeaseRenewal {
        lease: lease(full),
        passport: some(full, "eyJhbGciOiJFZERTQSJ9"),
        valid_for_ms: 30_000,
    }));
    samples.add([LeaseResponse { lease: lease(true) }]);
    samples
        .add(full_and_none(|full| LeasePage { leases: list(full, [lease(false)]), next: some(full, "17") }));
    samples.add([waiter()]);
    samples
        .add(full_and_none(|full| Queue { resource: "deploy:prod".into(), waiting: list(full, [waiter()]) }));
    samples.add([denial()]);
    samples.add(full_and_none(|full| Explanation {
        resource: "deploy:prod".into(),
        held: list(full, [lease(true)]),
        waiting: list(full, [waiter()]),
        last_refusal: some(full, denial()),
        last_end: some(full, lease(false)),
        words: texts(full, ["deploy:prod is held by ci-42"]),
    }));
    samples.add(full_and_none(problem));
    samples.add(full_and_none(|full| ServerEvent {
        seq: 41,
        r#type: "lease.issued".into(),
        at: AT.into(),
        lease: some(full, lease(true)),
        waiter: some(full, waiter()),
        session: some(full, intent_session(true)),
        agent: some(full, agents::agent_event_details(true)),
        file: some(full, files::file_event_details(true)),
        spent: some(full, work::budget(true)),
        cause: some(full, "REVOKED"),
        detail: some(full, "the holder is gone"),
    }));
    requests(samples);
    tokens(samples);
    control_and_intents(samples);
    worker(samples);
}

fn requests(samples: &mut Samples) {
    samples.add(full_and_none(acquire));
    samples.add(full_and_none(|full| BatchAcquireRequest {
        leases: list(full, [acquire(true), acquire(false)]),
    }));
    samples
        .add(full_and_none(|full| RenewalRequest { token: "secret".into(), ttl_ms: some(full, 1_000_u64) }));
    samples.add(full_and_none(|full| ReleaseRequest {
        token: "secret".into(),
        reason: some(full, "COMPLETED"),
    }));
    samples.add([TransferRequest { token: "secret".into(), to: "ci-43".into() }]);
    samples
        .add(full_and_none(|full| ModeChangeRequest { token: "secret".into(), mode: some(full, "shared") }));
    samples.add([RevocationRequest { reason: "the deployment is cancelled".into() }]);
    samples.add(full_and_none(|full| ApiTokenRequest {
        name: "ci".into(),
        scopes: vec!["lease:write".into()],
        resources: texts(full, ["deploy:*"]),
        expires_in_ms: some(full, 86_400_000_u64),
    }));
}

fn tokens(samples: &mut Samples) {
    let token = |full| ApiTokenView {
        id: "0f3c".into(),
        name: "ci".into(),
        principal: "token:0f3c".into(),
        scopes: texts(full, ["lease:read", "lease:write"]),
        resources: texts(full, ["deploy:*"]),
        created_at: AT.into(),
        expires_at: some(full, LATER),
        last_used_at: some(full, AT),
    };
    samples.add(full_and_none(token));
    samples.add([CreatedApiToken { token: token(true), secret: "secret".into() }]);
    samples.add(full_and_none(|full| ApiTokenList { tokens: list(full, [token(true), token(false)]) }));
    samples.add([RevokedApiToken { token: token(true), revoked_leases: 3 }]);
}

fn control_and_intents(samples: &mut Samples) {
    let held = ControlStatus {
        active: true,
        lease_id: "4f1d09aa-17".into(),
        scope: "global".into(),
        owner_client_name: "desk".into(),
        owner_instance_id: "i-1".into(),
        owner_ws_client_id: 2,
        remaining_ms: 4_000,
        ttl_ms: 5_000,
        heartbeat_interval_ms: 1_000,
        takeover_allowed: false,
    };
    samples.add([held, ControlStatus::default()]);
    samples.add(full_and_none(|full| IntentRequest {
        r#type: some(full, "stream.start"),
        service_ref: some(full, "1:0:1:445D:453:1:C00000:0:0:0:"),
        recording_id: some(full, "r-1"),
        profile_id: some(full, "hd"),
        start_ms: some(full, 90_000_u64),
        params: some(full, params()),
        correlation_id: some(full, "c-1"),
        session_id: some(full, "s-1"),
    }));
    samples.add(full_and_none(|full| AcceptedIntent {
        session_id: "s-1".into(),
        state: "ACCEPTED".into(),
        reason: some(full, "R_BUSY"),
        outcome: some(full, "REJECTED"),
        correlation_id: "c-1".into(),
    }));
    samples.add(full_and_none(intent_session));
    samples.add(full_and_none(|full| IntentSessionList {
        sessions: list(full, [intent_session(true), intent_session(false)]),
    }));
}

fn worker(samples: &mut Samples) {
    samples.add(full_and_none(|full| LeaderLockRequest {
        worker: "worker:b:n:17:23".into(),
        ttl_ms: 30_000,
        dead: some(full, "worker:b:n:16:22"),
    }));
    samples.add([LeaderLockGrant { guard: 7, lease_id: "4f1d09aa-7".into(), remaining_ms: 30_000 }]);
    samples.add(full_and_none(|full| IntentSessionChangesRequest {
        guard: 7,
        since: 12,
        wait_ms: some(full, 500_u64),
    }));
    samples.add(full_and_none(|full| IntentSessionChanges {
        revision: 13,
        sessions: list(full, [intent_session(true)]),
        more: full,
    }));
    samples.add([IntentSessionTakeRequest { guard: 7, session_id: "s-1".into(), tuners: 2, ttl_ms: 30_000 }]);
    samples.add([IntentSessionRunningReport { guard: 7, session_id: "s-1".into(), process: "17:23".into() }]);
    samples.add(full_and_none(|full| IntentSessionFinishRequest {
        guard: 7,
        session_id: "s-1".into(),
        reason: "R_PIPELINE_EXITED".into(),
        detail: some(full, "exit code 1"),
    }));
    let taken = |full| IntentSessionLeases {
        slot: some(full, 1_u32),
        leases: texts(full, ["4f1d09aa-8", "4f1d09aa-9"]),
        fences: list(full, [8, 9]),
        remaining_ms: 30_000,
    };
    samples.add(full_and_none(taken));
    samples.add(full_and_none(|full| IntentSessionStatus {
        state: "STARTING".into(),
        reason: some(full, "R_STOPPED"),
        outcome: some(full, "STOPPED"),
        taken: some(full, taken(true)),
    }));
    samples.add(full_and_none(|full| IntentSessionRenewalRequest {
        guard: 7,
        ttl_ms: 30_000,
        sessions: texts(full, ["s-1", "s-2"]),
    }));
    let kept = |full| IntentSessionRenewal {
        session_id: "s-1".into(),
        held: full,
        remaining_ms: 30_000,
        state: some(full, "RUNNING"),
    };
    samples.add(full_and_none(kept));
    samples.add(full_and_none(|full| IntentSessionRenewals {
        remaining_ms: 30_000,
        sessions: list(full, [kept(true), kept(false)]),
    }));
    samples.add(full_and_none(|full| IntentSessionWipeRequest { guard: 7, sessions: texts(full, ["s-1"]) }));
    samples.add([WipeResult { wiped: 1 }]);
    samples.add([LeaderLockReleaseRequest { guard: 7 }]);
}

pub(super) fn lease(full: bool) -> Lease {
    Lease {
        id: "4f1d09aa-17".into(),
        resource: "deploy:prod".into(),
        holder: "ci-42".into(),
        mode: "exclusive".into(),
        state: if full { LeaseState::Released } else { LeaseState::Active },
        fence: 17,
        ttl_ms: 30_000,
        remaining_ms: 29_000,
        acquired_at: AT.into(),
        expires_at: LATER.into(),
        renewal_count: 2,
        labels: labels(full),
        ended_at: some(full, LATER),
        end: some(full, "COMPLETED"),
        recall: some(full, blocked_waiters()),
    }
}

fn blocked_waiters() -> Recall {
    Recall { by: "ci-43".into(), waiting: 2, remaining_ms: 9_000 }
}

fn lease_grant(full: bool) -> LeaseGrant {
    LeaseGrant {
        lease: lease(full),
        token: "secret".into(),
        passport: some(full, "eyJhbGciOiJFZERTQSJ9"),
        valid_for_ms: 30_000,
    }
}

fn waiter() -> Waiter {
    Waiter {
        ticket: 5,
        position: 1,
        holder: "ci-43".into(),
        mode: "shared".into(),
        resources: vec!["deploy:prod".into(), "db:prod".into()],
        since: AT.into(),
        waited_ms: 1_000,
        remaining_ms: 9_000,
    }
}

fn denial() -> DenialView {
    DenialView {
        at: AT.into(),
        ago_ms: 1_000,
        code: Code::Held,
        detail: "deploy:prod is held by ci-42".into(),
        holder: "ci-43".into(),
        principal: "token:0f3c".into(),
    }
}

fn problem(full: bool) -> Problem {
    let mut problem = Problem::new(Code::Held, "deploy:prod is held by ci-42");
    problem.resource = some(full, "deploy:prod");
    problem.holder = some(full, "ci-42");
    problem.remaining_ms = some(full, 21_000_u64);
    problem.waiting = some(full, 2_usize);
    problem.waited_ms = some(full, 1_000_u64);
    problem.end = some(full, "EXPIRED");
    problem.from = some(full, 41_u64);
    problem.priority_timestamp = some(full, 1_000_u64);
    problem.outside = some(full, vec![agents::resource_access()]);
    problem.remaining = some(full, work::budget(true));
    problem
}

fn acquire(full: bool) -> AcquireRequest {
    AcquireRequest {
        resource: "deploy:prod".into(),
        holder: "ci-42".into(),
        ttl_ms: 30_000,
        mode: some(full, "shared"),
        wait_ms: if full { 5_000 } else { 0 },
        labels: labels(full),
    }
}

fn params() -> Map<String, Value> {
    BTreeMap::from([("audio", Value::from("de")), ("height", Value::from(720))])
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

pub(super) fn intent_session(full: bool) -> IntentSessionView {
    IntentSessionView {
        session_id: "s-1".into(),
        state: "RUNNING".into(),
        reason: some(full, "R_PIPELINE_EXITED"),
        outcome: some(full, "COMPLETED"),
        detail: some(full, "exit code 0"),
        correlation_id: "c-1".into(),
        service_ref: some(full, "1:0:1:445D:453:1:C00000:0:0:0:"),
        recording_id: some(full, "r-1"),
        start_ms: some(full, 90_000_u64),
        profile_id: "hd".into(),
        params: some(full, params()),
        slot: some(full, 1_u32),
        worker: some(full, "worker:b:n:17:23"),
        process: some(full, "18:24"),
        revision: 12,
        accepted_at: AT.into(),
        changed_at: LATER.into(),
    }
}
