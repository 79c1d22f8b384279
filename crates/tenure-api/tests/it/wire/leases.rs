//! Samples of plain leases, tokens, control, intents and everything that several APIs share.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tenure_api::{
    Acquire, AcquireAll, AskChanges, ChangeMode, Changes, Code, ControlStatus, CreateToken, CreatedToken,
    Explanation, FinishSession, Granted, GrantedAll, Guarded, IntentAccepted, IntentRequest, KeepSessions,
    KeptSession, KeptSessions, Lease, LeaseState, LeaveGuard, OneLease, Page, Problem, Queue, Recall,
    Refused, Release, Renew, Renewed, Revoke, RevokedToken, ServerEvent, SessionNow, SessionRuns,
    SessionView, Sessions, TakeGuard, TakeSession, Taken, Token, Tokens, Transfer, Waiter, WipeSessions,
    WipedSessions,
};

use super::{AT, LATER, Samples, agents, files, full_and_none, labels, list, some, texts, work};

pub(super) fn add(samples: &mut Samples) {
    samples.both([LeaseState::Active, LeaseState::Expired, LeaseState::Released]);
    samples.both(Code::ALL.iter().copied());
    samples.both([recall()]);
    samples.both(full_and_none(lease));
    samples.both(full_and_none(granted));
    samples.both(full_and_none(|full| GrantedAll { leases: list(full, [granted(true), granted(false)]) }));
    samples.both(full_and_none(|full| Renewed {
        lease: lease(full),
        passport: some(full, "eyJhbGciOiJFZERTQSJ9"),
        valid_for_ms: 30_000,
    }));
    samples.both([OneLease { lease: lease(true) }]);
    samples.both(full_and_none(|full| Page { leases: list(full, [lease(false)]), next: some(full, "17") }));
    samples.both([waiter()]);
    samples.both(full_and_none(|full| Queue {
        resource: "deploy:prod".into(),
        waiting: list(full, [waiter()]),
    }));
    samples.both([refused()]);
    samples.both(full_and_none(|full| Explanation {
        resource: "deploy:prod".into(),
        held: list(full, [lease(true)]),
        waiting: list(full, [waiter()]),
        last_refusal: some(full, refused()),
        last_end: some(full, lease(false)),
        words: texts(full, ["deploy:prod is held by ci-42"]),
    }));
    samples.both(full_and_none(problem));
    samples.both(full_and_none(|full| ServerEvent {
        seq: 41,
        r#type: "lease.issued".into(),
        at: AT.into(),
        lease: some(full, lease(true)),
        waiter: some(full, waiter()),
        session: some(full, session(true)),
        agent: some(full, agents::change(true)),
        file: some(full, files::change(true)),
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
    samples.out(full_and_none(acquire));
    samples.out(full_and_none(|full| AcquireAll { leases: list(full, [acquire(true), acquire(false)]) }));
    samples.out(full_and_none(|full| Renew { token: "secret".into(), ttl_ms: some(full, 1_000_u64) }));
    samples.out(full_and_none(|full| Release { token: "secret".into(), reason: some(full, "COMPLETED") }));
    samples.out([Transfer { token: "secret".into(), to: "ci-43".into() }]);
    samples.out(full_and_none(|full| ChangeMode { token: "secret".into(), mode: some(full, "shared") }));
    samples.out([Revoke { reason: "the deployment is cancelled".into() }]);
    samples.out(full_and_none(|full| CreateToken {
        name: "ci".into(),
        scopes: vec!["lease:write".into()],
        resources: texts(full, ["deploy:*"]),
        expires_in_ms: some(full, 86_400_000_u64),
    }));
}

fn tokens(samples: &mut Samples) {
    let token = |full| Token {
        id: "0f3c".into(),
        name: "ci".into(),
        principal: "token:0f3c".into(),
        scopes: texts(full, ["lease:read", "lease:write"]),
        resources: texts(full, ["deploy:*"]),
        created_at: AT.into(),
        expires_at: some(full, LATER),
        last_used_at: some(full, AT),
    };
    samples.both(full_and_none(token));
    samples.both([CreatedToken { token: token(true), secret: "secret".into() }]);
    samples.both(full_and_none(|full| Tokens { tokens: list(full, [token(true), token(false)]) }));
    samples.both([RevokedToken { token: token(true), revoked_leases: 3 }]);
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
    samples.both([held, ControlStatus::default()]);
    samples.out(full_and_none(|full| IntentRequest {
        r#type: some(full, "stream.start"),
        service_ref: some(full, "1:0:1:445D:453:1:C00000:0:0:0:"),
        recording_id: some(full, "r-1"),
        profile_id: some(full, "hd"),
        start_ms: some(full, 90_000_u64),
        params: some(full, params()),
        correlation_id: some(full, "c-1"),
        session_id: some(full, "s-1"),
    }));
    samples.both(full_and_none(|full| IntentAccepted {
        session_id: "s-1".into(),
        state: "ACCEPTED".into(),
        reason: some(full, "R_BUSY"),
        outcome: some(full, "REJECTED"),
        correlation_id: "c-1".into(),
    }));
    samples.both(full_and_none(session));
    samples.both(full_and_none(|full| Sessions { sessions: list(full, [session(true), session(false)]) }));
}

fn worker(samples: &mut Samples) {
    samples.out(full_and_none(|full| TakeGuard {
        worker: "worker:b:n:17:23".into(),
        ttl_ms: 30_000,
        dead: some(full, "worker:b:n:16:22"),
    }));
    samples.both([Guarded { guard: 7, lease_id: "4f1d09aa-7".into(), remaining_ms: 30_000 }]);
    samples.out(full_and_none(|full| AskChanges { guard: 7, since: 12, wait_ms: some(full, 500_u64) }));
    samples.both(full_and_none(|full| Changes {
        revision: 13,
        sessions: list(full, [session(true)]),
        more: full,
    }));
    samples.out([TakeSession { guard: 7, session_id: "s-1".into(), tuners: 2, ttl_ms: 30_000 }]);
    samples.out([SessionRuns { guard: 7, session_id: "s-1".into(), process: "17:23".into() }]);
    samples.out(full_and_none(|full| FinishSession {
        guard: 7,
        session_id: "s-1".into(),
        reason: "R_PIPELINE_EXITED".into(),
        detail: some(full, "exit code 1"),
    }));
    let taken = |full| Taken {
        slot: some(full, 1_u32),
        leases: texts(full, ["4f1d09aa-8", "4f1d09aa-9"]),
        fences: list(full, [8, 9]),
        remaining_ms: 30_000,
    };
    samples.both(full_and_none(taken));
    samples.both(full_and_none(|full| SessionNow {
        state: "STARTING".into(),
        reason: some(full, "R_STOPPED"),
        outcome: some(full, "STOPPED"),
        taken: some(full, taken(true)),
    }));
    samples.out(full_and_none(|full| KeepSessions {
        guard: 7,
        ttl_ms: 30_000,
        sessions: texts(full, ["s-1", "s-2"]),
    }));
    let kept = |full| KeptSession {
        session_id: "s-1".into(),
        held: full,
        remaining_ms: 30_000,
        state: some(full, "RUNNING"),
    };
    samples.both(full_and_none(kept));
    samples.both(full_and_none(|full| KeptSessions {
        remaining_ms: 30_000,
        sessions: list(full, [kept(true), kept(false)]),
    }));
    samples.out(full_and_none(|full| WipeSessions { guard: 7, sessions: texts(full, ["s-1"]) }));
    samples.both([WipedSessions { wiped: 1 }]);
    samples.out([LeaveGuard { guard: 7 }]);
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
        recall: some(full, recall()),
    }
}

fn recall() -> Recall {
    Recall { by: "ci-43".into(), waiting: 2, remaining_ms: 9_000 }
}

fn granted(full: bool) -> Granted {
    Granted {
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

fn refused() -> Refused {
    Refused {
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
    problem.outside = some(full, vec![agents::wanted()]);
    problem.remaining = some(full, work::budget(true));
    problem
}

fn acquire(full: bool) -> Acquire {
    Acquire {
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

pub(super) fn session(full: bool) -> SessionView {
    SessionView {
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
