//! What is decided while the disk is waited for: it rests on what is being written, and is told after it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tenure_core::kernel::{Fence, KernelState};
use tenure_ledger::{AppendError, MemoryLedger};
use tenure_registrar::Reply;
use tenure_registrar::runtime::{Handle, Response, Writer};

use crate::runtime::{ManualClock, PanickingLedger, acquire, granted_fence, slow_ledger, start};
use crate::scenario::{LEDGER, run_scenario};

#[test]
fn a_denial_based_on_a_pending_batch_is_answered_after_its_write() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        1    bob: acquire ci bob 10     -> nothing
        1    cid: acquire ci cid 10     -> nothing
        1    wrote                      -> publish issued 1 until 11; ann: granted 1; append issued 2 until 11
        1    wrote                      -> publish issued 2 until 11; bob: granted 2; cid: held by bob
        ",
    );
}

#[test]
fn a_grant_is_answered_even_if_its_release_is_already_decided() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        1    ann: release 1             -> nothing
        1    wrote                      -> publish issued 1 until 11; ann: granted 1; append released 1
        3    wrote                      -> publish released 1; ann: released 1
        ",
    );
}

#[test]
fn requests_decided_during_a_failed_write_are_unavailable() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        1    bob: acquire ci bob 10     -> nothing
        2    failed unknown             -> ann: outcome unknown; bob: unavailable; step down OutcomeUnknown
        ",
    );
}

/// Asks for `number` resources of their own, and says where the answers come.
fn submit_many(handle: &Handle, kind: &str, number: usize) -> mpsc::Receiver<Response> {
    let (sender, replies) = mpsc::channel();
    for index in 0..number {
        let sender = sender.clone();
        handle.submit(acquire(&format!("{kind}:{index}"), "ann", 10), move |reply| drop(sender.send(reply)));
    }
    replies
}

/// Waits until so many writes have begun.
fn wait_for(started_writes: &AtomicUsize, writes: usize) {
    while started_writes.load(Ordering::SeqCst) < writes {
        std::thread::yield_now();
    }
}

/// More than the writer writes by itself.
const MANY: usize = 100;

/// A writer with a large write under way, and as much asked for behind it.
struct BusyWriter {
    gate: mpsc::Sender<Result<(), AppendError>>,
    writer: Writer,
    second: mpsc::Receiver<Response>,
    third: mpsc::Receiver<Response>,
}

impl BusyWriter {
    fn start() -> Self {
        let (gate, ledger) = slow_ledger();
        let started_writes = ledger.started_writes.clone();
        let writer = start(ledger, Arc::new(ManualClock::default()));
        let handle = writer.handle();
        let first = submit_many(&handle, "first", 1);
        wait_for(&started_writes, 3);
        let second = submit_many(&handle, "second", MANY);
        gate.send(Ok(())).unwrap();
        assert_eq!(granted_fence(first.recv().unwrap()), Fence(1));
        wait_for(&started_writes, 4);
        let third = submit_many(&handle, "third", MANY);
        Self { gate, writer, second, third }
    }
}

#[test]
fn requests_decided_during_a_large_write_are_not_answered_early() {
    let BusyWriter { gate, writer, second, third } = BusyWriter::start();
    let handle = writer.handle();
    second.recv_timeout(Duration::from_millis(200)).expect_err("the second write is not back");
    third.recv_timeout(Duration::from_millis(1)).expect_err("and the third is not begun");
    assert_eq!(handle.view().read(KernelState::lease_count), 1, "nobody sees what is not durable");
    gate.send(Ok(())).unwrap();
    let fences: Vec<_> = second.iter().take(MANY).map(|reply| granted_fence(reply).0).collect();
    assert_eq!(fences, (2..2 + MANY as u64).collect::<Vec<_>>(), "in the order asked");
    third.recv_timeout(Duration::from_millis(200)).expect_err("the third write is not back");
    drop(gate);
    assert_eq!(third.iter().take(MANY).count(), MANY);
    assert!(writer.stop().1.is_none());
}

#[test]
fn a_failed_large_write_drops_the_batch_decided_during_it() {
    let BusyWriter { gate, writer, second, third } = BusyWriter::start();
    let handle = writer.handle();
    gate.send(Err(AppendError::Unavailable(std::io::Error::other("not now")))).unwrap();
    let replies = second.iter().take(MANY).chain(third.iter().take(MANY));
    assert!(replies.map(|response| response.reply).all(|reply| reply == Reply::Unavailable));
    drop(gate);
    let mut retries = std::iter::repeat_with(|| handle.submit_and_wait(acquire("third:0", "ann", 10)));
    let response = retries.find(|response| response.reply != Reply::Unavailable);
    assert_eq!(
        granted_fence(response.unwrap()),
        Fence(2),
        "the numbers of grants that never were are given out"
    );
    assert!(writer.stop().1.is_none());
}

#[test]
fn a_panic_in_the_append_thread_answers_every_request() {
    let writer = start(PanickingLedger(MemoryLedger::new(LEDGER)), Arc::new(ManualClock::default()));
    let replies = submit_many(&writer.handle(), "all", MANY);
    let granted_count =
        replies.iter().filter(|response| !matches!(response.reply, Reply::Unavailable)).count();
    assert_eq!(
        granted_count, 0,
        "the line is cut for those whose write it was, and the others are turned away"
    );
}
