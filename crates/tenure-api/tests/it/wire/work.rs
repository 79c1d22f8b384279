//! Samples of the work API.

use tenure_api::{
    Bounds, Budget, ClaimWork, DeriveWork, GrantedWork, OneWork, Purpose, ReleaseWork, RenewWork, Scope,
    SpendWork, Spent, Work,
};

use super::leases::lease;
use super::{Samples, full_and_none, labels, some, texts};

pub(super) fn add(samples: &mut Samples) {
    samples.both(full_and_none(scope));
    samples.both(full_and_none(budget));
    samples.out(full_and_none(bounds));
    samples.out(full_and_none(|full| ClaimWork {
        work_id: "T-17".into(),
        actor_id: "planner".into(),
        ttl_ms: some(full, 60_000_u64),
        scope: some(full, scope(true)),
        budget: some(full, bounds(true)),
        labels: labels(full),
    }));
    samples.out(full_and_none(|full| RenewWork {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        ttl_ms: some(full, 60_000_u64),
    }));
    samples.out(full_and_none(|full| ReleaseWork {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        reason: some(full, "ABORTED"),
    }));
    samples.out(full_and_none(|full| DeriveWork {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        work_id: "T-17.1".into(),
        actor_id: "coder".into(),
        ttl_ms: 30_000,
        scope: some(full, scope(true)),
        budget: budget(full),
    }));
    samples.out(full_and_none(|full| SpendWork {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        episodes: budget(full).episodes,
        tool_calls: budget(full).tool_calls,
        tokens: budget(full).tokens,
        duration_ms: budget(full).duration_ms,
        purpose: some(full, purpose(true)),
    }));
    samples.out(full_and_none(purpose));
    samples.both(full_and_none(|full| Spent {
        lease_id: "4f1d09aa-17".into(),
        remaining: budget(full),
        exhausted: !full,
    }));
    samples.both(full_and_none(work));
    samples.both(full_and_none(|full| GrantedWork {
        lease: lease(full),
        work: work(full),
        token: "secret".into(),
        passport: some(full, "eyJhbGciOiJFZERTQSJ9"),
        valid_for_ms: 30_000,
    }));
    samples.both([OneWork { lease: lease(true), work: work(true) }]);
}

pub(super) fn budget(full: bool) -> Budget {
    if full {
        Budget { episodes: 3, tool_calls: 40, tokens: 5_000, duration_ms: 60_000 }
    } else {
        Budget::default()
    }
}

fn bounds(full: bool) -> Bounds {
    Bounds {
        episodes: some(full, 3_u64),
        tool_calls: some(full, 40_u64),
        tokens: some(full, 5_000_u64),
        duration_ms: some(full, 60_000_u64),
    }
}

fn scope(full: bool) -> Scope {
    Scope {
        work_ids: texts(full, ["T-17*"]),
        tools: texts(full, ["cargo", "git"]),
        namespaces: texts(full, ["build"]),
    }
}

fn purpose(full: bool) -> Purpose {
    Purpose { work_id: some(full, "T-17.1"), tool: some(full, "cargo"), namespace: some(full, "build") }
}

fn work(full: bool) -> Work {
    Work {
        work_id: "T-17".into(),
        scope: some(full, scope(true)),
        budget: budget(true),
        spent: budget(false),
        given: budget(full),
        remaining: budget(!full),
        exhausted: full,
        parent: some(full, "4f1d09aa-16"),
        children: texts(full, ["4f1d09aa-18"]),
    }
}
