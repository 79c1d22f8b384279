//! What is given and cannot be delivered is taken back, in whichever moment the caller goes.

use std::future::{pending, ready};
use std::task::{Context, Waker};

use tempfile::TempDir;
use tenure_core::kernel::{
    Claim, Contention, Digest, Holder, Labels, Limits, Mode, Nonce, Principal, RequestKey, Resource, Span,
    Want,
};
use tenure_core::lease::ReleaseReason;
use tenure_ledger::embedded::Options;
use tenure_registrar::shell::Routine;
use tokio::runtime::Runtime;

use super::*;

/// A registrar in a folder of its own.
pub(crate) struct Office {
    pub(crate) registrar: Registrar,
    pub(crate) runtime: Runtime,
    pub(crate) folder: TempDir,
}

impl Office {
    pub(crate) fn open() -> Self {
        let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
        let data = folder.path().join("data");
        let ledger =
            Options { segment_size: 1 << 16, reserve: 1 << 16, witness: Some(folder.path().join("witness")) };
        let open = runtime
            .spawn_blocking(move || Registrar::open(&data, ledger, Routine::default(), Limits::default()));
        let registrar = runtime.block_on(open).unwrap().unwrap();
        Self { registrar, runtime, folder }
    }

    /// What `holder` gets of the one thing that there is, at once.
    pub(crate) fn gets(&self, holder: &str) -> Given {
        match self.runtime.block_on(self.registrar.acquire(acquire(holder, None))) {
            Asked::Given(given) => given,
            Asked::InLine(_) => panic!("{holder} has to wait"),
            Asked::Not(reply) => panic!("{holder}: {reply:?}"),
        }
    }

    /// Where `holder` stands in line.
    pub(crate) fn lines_up(&self, holder: &str, key: Option<RequestKey>) -> Line {
        match self.runtime.block_on(self.registrar.acquire(acquire(holder, key))) {
            Asked::InLine(line) => line,
            _ => panic!("{holder} does not wait"),
        }
    }

    pub(crate) fn is_served(&self, line: Line) -> Given {
        match self.runtime.block_on(self.registrar.wait(line, pending())) {
            Waited::Given(given) => *given,
            _ => panic!("not served"),
        }
    }

    fn release(&self, given: &Given) {
        let [lease] = given.leases[..] else { panic!("one lease") };
        let release = Command::Release { lease, claim: Claim::Token, reason: ReleaseReason::Completed };
        self.runtime.block_on(self.registrar.ask(release));
    }
}

/// For a day, if need be: whatever is not taken back stays for longer than any test.
fn acquire(holder: &str, key: Option<RequestKey>) -> Acquire {
    let day = Span::from_secs(86_400);
    Acquire {
        principal: Principal::parse("admin").unwrap(),
        holder: Holder::parse(holder).unwrap(),
        wants: vec![Want {
            resource: Resource::parse("db:1").unwrap(),
            others: Default::default(),
            mode: Mode::Exclusive,
            ttl: day,
            nonce: Nonce::default(),
            labels: Labels::default(),
        }],
        contention: Contention::Queue { patience: day },
        key,
    }
}

#[test]
fn a_caller_that_disconnects_before_the_answer_holds_nothing() {
    let office = Office::open();
    for _ in 0..20 {
        let mut asked = Box::pin(office.registrar.acquire(acquire("gone", None)));
        // The answer may be there already, on a slow day: then it is dropped without having been heard.
        drop(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        drop(asked);
        let line = office.runtime.block_on(office.registrar.acquire(acquire("next", None)));
        let mut given = match line {
            Asked::InLine(line) => office.is_served(line),
            Asked::Given(given) => given,
            Asked::Not(reply) => panic!("{reply:?}"),
        };
        given.undelivered.settle();
        office.release(&given);
    }
}

#[test]
fn a_waiter_that_disconnects_after_its_grant_holds_nothing() {
    let office = Office::open();
    let first = office.gets("first");
    let (gone, next) = (office.lines_up("gone", None), office.lines_up("next", None));
    office.release(&first);
    while gone.over.is_empty() {}
    drop(gone);
    let given = office.is_served(next);
    let end = office.registrar.read(|state| state.ended(Fence(2)).map(|lease| lease.end));
    assert_eq!(end, Some(tenure_core::kernel::End::Revoked(tenure_core::kernel::Cause::Disconnected)));
    drop(given);
}

#[test]
fn a_waiter_with_a_key_keeps_its_position_and_its_lease() {
    let office = Office::open();
    let first = office.gets("first");
    let key = Some(RequestKey { key: Digest::of(b"key"), body: Digest::of(b"body") });
    let ticket = office.lines_up("kept", key).ticket;
    let again = office.lines_up("kept", key);
    assert_eq!(again.ticket, ticket);
    office.release(&first);
    drop(office.is_served(again));
    let found = office.runtime.block_on(office.registrar.acquire(acquire("kept", key)));
    assert!(matches!(found, Asked::Given(given) if given.leases == [Fence(2)]));
    let next = office.lines_up("next", None);
    assert!(next.over.is_empty());
}

#[test]
fn a_waiter_granted_during_shutdown_is_served_or_withdrawn() {
    let office = Office::open();
    let first = office.gets("first");
    let lines: Vec<_> = (0..8).map(|number| office.lines_up(&format!("waiter-{number}"), None)).collect();
    office.release(&first);
    let mut served = 0;
    for line in lines {
        match office.runtime.block_on(office.registrar.wait(line, ready(()))) {
            Waited::Given(mut given) => {
                given.undelivered.settle();
                served += 1;
            }
            Waited::Stopped { has_key: false } => {}
            _ => panic!("neither"),
        }
    }
    assert_eq!(served, 1, "the first one had its turn");
    let (live, waiting) = office.registrar.read(|state| (state.live_leases(), state.tickets().count()));
    assert_eq!((live, waiting), (1, 0), "nobody holds or waits who was not told so");
}
