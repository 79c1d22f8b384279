//! What is given and cannot be delivered is taken back, in whichever moment the caller goes.

use std::future::{pending, ready};
use std::task::{Context, Waker};

use tempfile::TempDir;
use tenure_core::kernel::{
    ContentionPolicy, Holder, IdempotencyKey, Labels, LeaseCredential, LeaseMode, LeaseRequest, Limits,
    Nonce, Principal, RequestDigest, Resource, TickDuration,
};
use tenure_core::lease::ReleaseReason;
use tenure_ledger::{LedgerId, MemoryLedger};
use tenure_registrar::runtime::MaintenanceOptions;
use tokio::runtime::Runtime;

use super::*;

/// A registrar in a folder of its own.
pub(crate) struct TestRegistrar {
    pub(crate) registrar: RegistrarHandle,
    pub(crate) runtime: Runtime,
    _folder: TempDir,
}

impl TestRegistrar {
    pub(crate) fn open() -> Self {
        let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
        let (data, ledger) = (folder.path().to_owned(), MemoryLedger::new(LedgerId([7; 16])));
        let open = runtime.spawn_blocking(move || {
            RegistrarHandle::open(&data, &ledger, MaintenanceOptions::default(), Limits::default())
        });
        let registrar = runtime.block_on(open).unwrap().unwrap();
        Self { registrar, runtime, _folder: folder }
    }

    /// What `holder` gets of the one thing that there is, at once.
    pub(crate) fn grant(&self, holder: &str) -> PendingGrant {
        match self.runtime.block_on(self.registrar.acquire(acquire(holder, None))) {
            AcquireOutcome::Granted(granted) => granted,
            AcquireOutcome::Queued(_) => panic!("{holder} has to wait"),
            AcquireOutcome::NotGranted(reply) => panic!("{holder}: {reply:?}"),
        }
    }

    /// Where `holder` stands in line.
    pub(crate) fn enqueue(&self, holder: &str, key: Option<IdempotencyKey>) -> QueuedRequest {
        match self.runtime.block_on(self.registrar.acquire(acquire(holder, key))) {
            AcquireOutcome::Queued(line) => line,
            _ => panic!("{holder} does not wait"),
        }
    }

    pub(crate) fn wait_for_grant(&self, line: QueuedRequest) -> PendingGrant {
        match self.runtime.block_on(self.registrar.wait(line, pending())) {
            QueueOutcome::Granted(grant) => *grant,
            _ => panic!("not served"),
        }
    }

    fn release(&self, grant: &PendingGrant) {
        let [lease] = grant.leases[..] else { panic!("one lease") };
        let release =
            Command::Release { lease, claim: LeaseCredential::Token, reason: ReleaseReason::Completed };
        self.runtime.block_on(self.registrar.submit(release));
    }
}

/// For a day, if need be: whatever is not taken back stays for longer than any test.
fn acquire(holder: &str, key: Option<IdempotencyKey>) -> Acquire {
    let day = TickDuration::from_secs(86_400);
    Acquire {
        principal: Principal::parse("admin").unwrap(),
        holder: Holder::parse(holder).unwrap(),
        requests: vec![LeaseRequest {
            resource: Resource::parse("db:1").unwrap(),
            alternatives: Default::default(),
            mode: LeaseMode::Exclusive,
            ttl: day,
            nonce: Nonce::default(),
            labels: Labels::default(),
        }],
        contention_policy: ContentionPolicy::Queue { wait_timeout: day },
        key,
    }
}

#[test]
fn a_caller_that_disconnects_before_the_answer_holds_nothing() {
    let registrar = TestRegistrar::open();
    for _ in 0..20 {
        let mut pending_acquire = Box::pin(registrar.registrar.acquire(acquire("gone", None)));
        // The answer may be there already, on a slow day: then it is dropped without having been heard.
        drop(pending_acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        drop(pending_acquire);
        let line = registrar.runtime.block_on(registrar.registrar.acquire(acquire("next", None)));
        let mut grant = match line {
            AcquireOutcome::Queued(line) => registrar.wait_for_grant(line),
            AcquireOutcome::Granted(grant) => grant,
            AcquireOutcome::NotGranted(reply) => panic!("{reply:?}"),
        };
        grant.revoke_on_drop.disarm();
        registrar.release(&grant);
    }
}

#[test]
fn a_waiter_that_disconnects_after_its_grant_holds_nothing() {
    let registrar = TestRegistrar::open();
    let first = registrar.grant("first");
    let (gone, next) = (registrar.enqueue("gone", None), registrar.enqueue("next", None));
    registrar.release(&first);
    while gone.outcome.is_empty() {}
    drop(gone);
    let grant = registrar.wait_for_grant(next);
    let end = registrar.registrar.read(|state| state.ended_lease(Fence(2)).map(|lease| lease.end));
    assert_eq!(
        end,
        Some(tenure_core::kernel::LeaseEnd::Revoked(tenure_core::kernel::RevocationCause::Disconnected))
    );
    drop(grant);
}

#[test]
fn a_waiter_with_a_key_keeps_its_position_and_its_lease() {
    let registrar = TestRegistrar::open();
    let first = registrar.grant("first");
    let key = Some(IdempotencyKey { key: RequestDigest::of(b"key"), body: RequestDigest::of(b"body") });
    let ticket = registrar.enqueue("kept", key).ticket;
    let again = registrar.enqueue("kept", key);
    assert_eq!(again.ticket, ticket);
    registrar.release(&first);
    drop(registrar.wait_for_grant(again));
    let found = registrar.runtime.block_on(registrar.registrar.acquire(acquire("kept", key)));
    assert!(matches!(found, AcquireOutcome::Granted(grant) if grant.leases == [Fence(2)]));
    let next = registrar.enqueue("next", None);
    assert!(next.outcome.is_empty());
}

#[test]
fn a_waiter_granted_during_shutdown_is_served_or_withdrawn() {
    let registrar = TestRegistrar::open();
    let first = registrar.grant("first");
    let lines: Vec<_> = (0..8).map(|number| registrar.enqueue(&format!("waiter-{number}"), None)).collect();
    registrar.release(&first);
    let mut served = 0;
    for line in lines {
        match registrar.runtime.block_on(registrar.registrar.wait(line, ready(()))) {
            QueueOutcome::Granted(mut grant) => {
                grant.revoke_on_drop.disarm();
                served += 1;
            }
            QueueOutcome::ServerShutdown { has_key: false } => {}
            _ => panic!("neither"),
        }
    }
    assert_eq!(served, 1, "the first one had its turn");
    let (live, waiting) =
        registrar.registrar.read(|state| (state.lease_count(), state.queue_tickets().count()));
    assert_eq!((live, waiting), (1, 0), "nobody holds or waits who was not told so");
}
