//! Samples of the work API.

use tenure_api::{
    Budget, BudgetLimits, SpendPurpose, SpendResult, WorkClaimRequest, WorkDerivationRequest, WorkGrant,
    WorkReleaseRequest, WorkRenewalRequest, WorkResponse, WorkScope, WorkSpendRequest, WorkView,
};

use super::leases::lease;
use super::{Samples, full_and_none, labels, some, texts};

pub(super) fn add_samples(samples: &mut Samples) {
    samples.add(full_and_none(scope));
    samples.add(full_and_none(budget));
    samples.add(full_and_none(budget_limits));
    samples.add(full_and_none(|full| WorkClaimRequest {
        work_id: "T-17".into(),
        actor_id: "planner".into(),
        ttl_ms: some(full, 60_000_u64),
        scope: some(full, scope(true)),
        budget: some(full, budget_limits(true)),
        labels: labels(full),
    }));
    samples.add(full_and_none(|full| WorkRenewalRequest {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        ttl_ms: some(full, 60_000_u64),
    }));
    samples.add(full_and_none(|full| WorkReleaseRequest {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        reason: some(full, "ABORTED"),
    }));
    samples.add(full_and_none(|full| WorkDerivationRequest {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        work_id: "T-17.1".into(),
        actor_id: "coder".into(),
        ttl_ms: 30_000,
        scope: some(full, scope(true)),
        budget: budget(full),
    }));
    samples.add(full_and_none(|full| WorkSpendRequest {
        lease_id: "4f1d09aa-17".into(),
        token: "secret".into(),
        episodes: budget(full).episodes,
        tool_calls: budget(full).tool_calls,
        tokens: budget(full).tokens,
        duration_ms: budget(full).duration_ms,
        purpose: some(full, spend_purpose(true)),
    }));
    samples.add(full_and_none(spend_purpose));
    samples.add(full_and_none(|full| SpendResult {
        lease_id: "4f1d09aa-17".into(),
        remaining: budget(full),
        exhausted: !full,
    }));
    samples.add(full_and_none(work_view));
    samples.add(full_and_none(|full| WorkGrant {
        lease: lease(full),
        work: work_view(full),
        token: "secret".into(),
        passport: some(full, "eyJhbGciOiJFZERTQSJ9"),
        valid_for_ms: 30_000,
    }));
    samples.add([WorkResponse { lease: lease(true), work: work_view(true) }]);
}

pub(super) fn budget(full: bool) -> Budget {
    if full {
        Budget { episodes: 3, tool_calls: 40, tokens: 5_000, duration_ms: 60_000 }
    } else {
        Budget::default()
    }
}

fn budget_limits(full: bool) -> BudgetLimits {
    BudgetLimits {
        episodes: some(full, 3_u64),
        tool_calls: some(full, 40_u64),
        tokens: some(full, 5_000_u64),
        duration_ms: some(full, 60_000_u64),
    }
}

fn scope(full: bool) -> WorkScope {
    WorkScope {
        work_ids: texts(full, ["T-17*"]),
        tools: texts(full, ["cargo", "git"]),
        namespaces: texts(full, ["build"]),
    }
}

fn spend_purpose(full: bool) -> SpendPurpose {
    SpendPurpose { work_id: some(full, "T-17.1"), tool: some(full, "cargo"), namespace: some(full, "build") }
}

fn work_view(full: bool) -> WorkView {
    WorkView {
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
