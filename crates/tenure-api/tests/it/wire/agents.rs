//! Samples of the agents API.

use std::collections::BTreeMap;

use tenure_api::{
    AgentEventDetails, AgentLease, AgentLeaseIds, AgentList, AgentReleaseResult, AgentStateReport, AgentView,
    AgentWait, ContentionEdge, ContentionGraph, ContentionNode, DigestIdentity, DigestRecovery,
    HeartbeatRejection, HeartbeatRenewal, HeartbeatResult, Manifest, ManifestIntent, ManifestObject,
    ManifestVerdict, PendingIntent, ReconcileResult, ReconciledLease, ResourceAccess, ResourceState,
    ResourceTouchReport, StateDigest, TouchResult,
};

use super::{AT, LATER, Samples, full_and_none, list, some, texts};

pub(super) fn add_samples(samples: &mut Samples) {
    samples.add([resource_access()]);
    samples.add([lease()]);
    samples.add(full_and_none(|full| ResourceState {
        resource: "FILE:src/lib.rs".into(),
        held: full,
        leases: list(full, [lease()]),
        waiting: texts(full, ["agent-2"]),
    }));
    contention(samples);
    leases(samples);
    samples.add([object()]);
    samples.add(full_and_none(intent));
    samples.add(full_and_none(|full| Manifest {
        session_id: "s-1".into(),
        agent_id: "agent-1".into(),
        intents: vec![intent(full)],
        ttl: some(full, 60_000_u64),
        priority_timestamp: some(full, 1_000_u64),
        wait_timeout_ms: some(full, 5_000_u64),
    }));
    samples.add([
        ManifestVerdict::Granted { leases: vec![lease()] },
        ManifestVerdict::Wait {
            wait_timeout_ms: 5_000,
            wait_until: LATER.into(),
            position: 2,
            blocked_by: vec!["agent-2".into()],
        },
        ManifestVerdict::Die {
            retry_after_ms: 250,
            priority_timestamp: 1_000,
            blocked_by: vec!["agent-2".into()],
            ended: vec!["4f1d09aa-17".into()],
        },
    ]);
    states(samples);
    samples.add(full_and_none(agent_event_details));
}

fn contention(samples: &mut Samples) {
    let node = |full| ContentionNode {
        id: "agent-1".into(),
        priority_timestamp: some(full, 1_000_u64),
        state: some(full, "EXECUTING"),
    };
    let edge = |full| ContentionEdge {
        from: "agent-1".into(),
        to: "agent-2".into(),
        resource: "FILE:src/lib.rs".into(),
        predicate: "MUTATES".into(),
        because: "HOLDS".into(),
        wait_timeout_ms: 5_000,
        one_of_several: full,
    };
    samples.add(full_and_none(node));
    samples.add(full_and_none(edge));
    samples.add(full_and_none(|full| ContentionGraph {
        nodes: list(full, [node(true), node(false)]),
        edges: list(full, [edge(true), edge(false)]),
        truncated: full,
    }));
}

fn leases(samples: &mut Samples) {
    samples.add([AgentLeaseIds { agent_id: "agent-1".into(), lease_ids: vec!["4f1d09aa-17".into()] }]);
    let beat = HeartbeatRenewal { id: "4f1d09aa-17".into(), expires_at: LATER.into(), remaining_ms: 30_000 };
    let rejected = HeartbeatRejection { id: "4f1d09aa-16".into(), code: "EXPIRED".into() };
    samples.add([beat.clone()]);
    samples.add([rejected.clone()]);
    samples.add(full_and_none(|full| HeartbeatResult {
        renewed: list(full, [beat.clone()]),
        rejected: list(full, [rejected.clone()]),
    }));
    samples.add(full_and_none(|full| AgentReleaseResult {
        released: vec!["4f1d09aa-17".into()],
        unknown: texts(full, ["4f1d09aa-99"]),
    }));
    let known = |full| ReconciledLease {
        held: full,
        state: if full { "RELEASED" } else { "UNKNOWN" }.into(),
        remaining_ms: 0,
        resource: some(full, "FILE:src/lib.rs"),
        predicate: some(full, "MUTATES"),
        expires_at: some(full, LATER),
        fence: some(full, 17_u64),
        end: some(full, "COMPLETED"),
        ended_at: some(full, AT),
        held_by: texts(full, ["agent-2"]),
    };
    samples.add(full_and_none(known));
    samples.add(full_and_none(|full| ReconcileResult {
        leases: BTreeMap::from([("4f1d09aa-17".to_owned(), known(full))]),
    }));
}

fn states(samples: &mut Samples) {
    let identity = DigestIdentity { agent_id: "agent-1".into(), priority_timestamp: 1_000, epoch: 2 };
    let recovery = |full| DigestRecovery {
        last_phase: "EXECUTING".into(),
        pending_intents: list(full, [intent(true), intent(false)]),
    };
    let digest =
        |full| StateDigest { version: "1.0".into(), identity: identity.clone(), recovery: recovery(full) };
    samples.add([identity.clone()]);
    samples.add(full_and_none(recovery));
    samples.add(full_and_none(digest));
    samples.add(full_and_none(|full| AgentStateReport {
        session_id: "s-1".into(),
        state: "EXECUTING".into(),
        digest: some(full, digest(true)),
    }));
    let pending =
        PendingIntent { resource: "FILE:src/lib.rs".into(), predicate: "MUTATES".into(), now: "FREE".into() };
    let wait = AgentWait {
        wants: vec![resource_access()],
        since: AT.into(),
        wait_until: LATER.into(),
        blocked_by: vec!["agent-2".into()],
    };
    let view = |full| AgentView {
        agent_id: "agent-1".into(),
        session_id: "s-1".into(),
        state: some(full, "EXECUTING"),
        priority_timestamp: some(full, 1_000_u64),
        epoch: 2,
        changed_at: AT.into(),
        leases: list(full, [lease()]),
        waits: list(full, [wait.clone()]),
        deaths: 1,
        retry_after_ms: some(full, 250_u64),
        outside: texts(full, ["MUTATES FILE:src/main.rs"]),
        held_ms: 1_500,
        pending: list(full, [pending.clone()]),
    };
    samples.add([pending.clone()]);
    samples.add([wait.clone()]);
    samples.add(full_and_none(view));
    samples.add(full_and_none(|full| AgentList { agents: list(full, [view(true), view(false)]) }));
    samples.add([ResourceTouchReport { resources: vec![resource_access()] }]);
    samples.add([TouchResult { within: 1 }]);
}

pub(super) fn resource_access() -> ResourceAccess {
    ResourceAccess { resource: "FILE:src/lib.rs".into(), predicate: "MUTATES".into() }
}

pub(super) fn agent_event_details(full: bool) -> AgentEventDetails {
    AgentEventDetails {
        agent_id: "agent-1".into(),
        session_id: some(full, "s-1"),
        state: some(full, "EXECUTING"),
        priority_timestamp: some(full, 1_000_u64),
        epoch: some(full, 2_u64),
        ticket: some(full, 5_u64),
        wants: list(full, [resource_access()]),
        wait_until: some(full, LATER),
        retry_after_ms: some(full, 250_u64),
        outside: list(full, [resource_access()]),
        leases: texts(full, ["4f1d09aa-17"]),
        held_ms: some(full, 1_500_u64),
    }
}

fn lease() -> AgentLease {
    AgentLease {
        id: "4f1d09aa-17".into(),
        resource: "FILE:src/lib.rs".into(),
        predicate: "MUTATES".into(),
        agent_id: "agent-1".into(),
        acquired_at: AT.into(),
        expires_at: LATER.into(),
        ttl: 30_000,
        fence: 17,
        remaining_ms: 29_000,
    }
}

fn object() -> ManifestObject {
    ManifestObject { resource_type: "FILE".into(), path: "src/lib.rs".into() }
}

fn intent(full: bool) -> ManifestIntent {
    ManifestIntent {
        id: some(full, "i-1"),
        subject: some(full, "the parser"),
        predicate: "MUTATES".into(),
        object: object(),
        timestamp: some(full, 1_000_u64),
        confidence: some(full, 0.75),
        session_id: some(full, "s-1"),
    }
}
