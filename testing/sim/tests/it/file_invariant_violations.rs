//! Each law of files is shown a history that breaks it, and must say so.

use tenure_core::kernel::{
    BlockedReport, ContentionNotice, Event, Fence, FileEvent, FileOwner, FileSessionEnd, FileSessionInfo,
    Holder, IssuedLease, Labels, LeaseMode, LeaseRequest, LeaseTerms, Nonce, Principal, RecordedProcess,
    Resource, RetryTicketEnd, RevocationCause, Tick, TickDuration, Ticket,
};
use tenure_core::lease::ReleaseReason;
use tenure_sim::invariants::{LedgerModel, Violation};

const SECOND: u64 = 1_000_000;
const YEAR: TickDuration = TickDuration::from_secs(366 * 24 * 60 * 60);

/// Applies the batches; all but the last event, and the moments after their batches, must be lawful. `s1` is known to live
/// whenever `s2` asks, and `dead` is dead.
fn verdict(batches: &[Vec<Event>]) -> Result<(), Violation> {
    let mut laws = LedgerModel::default();
    laws.files_mut().record_liveness_check(1, holder("s2"), vec![holder("s1")]);
    laws.files_mut().record_process_exit(holder("dead"));
    let (last, before) = batches.split_last().expect("a history has events");
    for batch in before {
        for event in batch {
            laws.apply_durable(event, event.occurred_at().0).expect("only the end breaks a law");
        }
        laws.check_between_batches().expect("only the end breaks a law");
    }
    last.iter().try_for_each(|event| laws.apply_durable(event, event.occurred_at().0))?;
    laws.check_between_batches()
}

fn breaks(before: &[Event], last: &[Event], law: &str) {
    assert_eq!(verdict(&[before.to_vec()]), Ok(()), "what comes before is lawful");
    let Violation(text) = verdict(&[before.to_vec(), last.to_vec()]).expect_err("this history breaks a law");
    assert!(text.contains(law), "found {text:?}, not {law:?}");
}

fn accepts(before: &[Event], last: &[Event]) {
    assert_eq!(verdict(&[before.to_vec(), last.to_vec()]), Ok(()));
}

fn holder(name: &str) -> Holder {
    Holder::parse(name).unwrap()
}

fn at(seconds: u64) -> Tick {
    Tick(seconds * SECOND)
}

fn file_event(event: FileEvent) -> Event {
    Event::File(Box::new(event))
}

fn began(name: &str) -> Event {
    let none = || "x".into();
    let (id, parent) = (holder(name), name.rsplit_once('.').map(|(parent, _)| holder(parent)));
    let process = RecordedProcess::default();
    let session =
        FileSessionInfo { parent, agent: none(), session: none(), ..FileSessionInfo::new(id, process) };
    file_event(FileEvent::Began { session, at: at(0) })
}

fn issued_file(fence: u64, name: &str, file: &str, when: u64) -> Event {
    issued_in_place_of(fence, name, file, when, None)
}

fn issued_in_place_of(fence: u64, name: &str, file: &str, when: u64, continues: Option<u64>) -> Event {
    Event::Issued(IssuedLease {
        fence: Fence(fence),
        resource: Resource::parse(file).unwrap(),
        holder: holder(name),
        principal: Principal::parse("system:files").unwrap(),
        terms: LeaseTerms {
            mode: LeaseMode::Exclusive,
            issued_at: at(when),
            expires_at: at(when).saturating_add(YEAR),
            ttl: YEAR,
            renewals: 0,
            nonce: Nonce::default(),
            labels: Labels::default(),
        },
        key: None,
        ticket: None,
        continues: continues.map(Fence),
        authority: None,
    })
}

fn contended(ticket: u64, name: &str, owner: &str, when: u64, retry: u64) -> Event {
    file_event(FileEvent::Contended(ContentionNotice {
        ticket: Ticket(ticket),
        session: holder(name),
        request: LeaseRequest::new(
            Resource::parse("a").unwrap(),
            LeaseMode::Exclusive,
            YEAR,
            Nonce::default(),
        ),
        owner: holder(owner),
        at: at(when),
        retry_at: at(retry),
        cycle: Vec::new(),
    }))
}

fn blocked(ticket: u64, owner: &str, when: u64) -> Event {
    let (owner, seen_at, circle) = (FileOwner::from_holder(holder(owner)), at(0), Vec::new());
    let found = BlockedReport { at: at(when), owner, held_since: at(0), seen_at, cycle: circle };
    file_event(FileEvent::Blocked { ticket: Ticket(ticket), report: found })
}

fn closed(ticket: u64, when: u64) -> Event {
    file_event(FileEvent::Closed { ticket: Ticket(ticket), at: at(when), end: RetryTicketEnd::Served })
}

fn turn_ended(name: &str, when: u64) -> Event {
    file_event(FileEvent::TurnEnded { session: holder(name), at: at(when) })
}

fn seen(name: &str, when: u64) -> Event {
    file_event(FileEvent::Seen { session: holder(name), at: at(when), task: None })
}

fn released(lease: u64, name: &str, when: u64, reason: ReleaseReason) -> Event {
    Event::Released { lease: Fence(lease), at: at(when), by: holder(name), reason }
}

fn revoked(lease: u64, when: u64, cause: RevocationCause) -> Event {
    let (by, detail) = (Principal::parse("system:files").unwrap(), "".into());
    Event::Revoked { lease: Fence(lease), at: at(when), cause, by, detail }
}

fn ended(name: &str, when: u64, end: FileSessionEnd) -> Event {
    file_event(FileEvent::Ended { session: holder(name), at: at(when), end, detail: "".into() })
}

/// s1 has a; s2 and s3 are there.
fn start() -> Vec<Event> {
    vec![began("s1"), began("s2"), began("s3"), began("dead"), issued_file(1, "s1", "a", 0)]
}

fn start_with(events: &[Event]) -> Vec<Event> {
    start().into_iter().chain(events.iter().cloned()).collect()
}

#[test]
fn two_leases_on_one_file_are_a_violation() {
    breaks(&start(), &[issued_file(2, "s2", "a", 1)], "both hold");
}

#[test]
fn a_file_lease_of_an_ended_session_is_a_violation() {
    breaks(
        &start_with(&[ended("s2", 1, FileSessionEnd::Ended)]),
        &[issued_file(2, "s2", "b", 2)],
        "is over, or never was",
    );
    breaks(&start(), &[issued_file(2, "nobody", "b", 2)], "is over, or never was");
    breaks(&start(), &[ended("s1", 1, FileSessionEnd::Ended)], "is over and has files");
    breaks(
        &start_with(&[ended("s2", 1, FileSessionEnd::Ended)]),
        &[ended("s2", 2, FileSessionEnd::Ended)],
        "ends twice",
    );
    breaks(
        &start_with(&[began("s2.x")]),
        &[ended("s2", 1, FileSessionEnd::Ended)],
        "ends before its subagents",
    );
    breaks(&start_with(&[ended("s2", 1, FileSessionEnd::Ended)]), &[seen("s2", 2)], "heard of and over");
}

#[test]
fn a_denial_without_a_verified_living_owner_is_a_violation() {
    breaks(&start(), &[contended(1, "s3", "s1", 1, 181)], "nobody made sure that it lives");
    let with_ticket = start_with(&[contended(1, "s2", "s1", 1, 181)]);
    accepts(&with_ticket, &[blocked(1, "s1", 181)]);
    // s3 has it meanwhile, and nobody looked at that one.
    let other = [released(1, "s1", 2, ReleaseReason::Completed), issued_file(2, "s3", "a", 3)];
    let events: Vec<Event> = with_ticket.into_iter().chain(other).collect();
    breaks(&events, &[blocked(1, "s3", 181)], "nobody made sure that it lives");
    breaks(&events, &[blocked(1, "s1", 181)], "who has nothing");
    breaks(
        &start_with(&[ended("s3", 1, FileSessionEnd::Ended)]),
        &[contended(1, "s2", "s3", 2, 182)],
        "who is over",
    );
}

#[test]
fn an_early_late_or_second_retry_is_a_violation() {
    breaks(&start(), &[contended(1, "s2", "s1", 1, 180)], "is to be tried again after");
    breaks(&start(), &[contended(1, "s2", "s1", 1, 182)], "is to be tried again after");
    let events = start_with(&[contended(1, "s2", "s1", 1, 181)]);
    breaks(&events, &[contended(2, "s2", "s1", 2, 182)], "two tickets");
    breaks(&events, &[blocked(1, "s1", 180)], "too early");
    let stopped: Vec<Event> = events.iter().cloned().chain([blocked(1, "s1", 181)]).collect();
    breaks(&stopped, &[blocked(1, "s1", 400)], "a second time");
    breaks(&events, &[closed(7, 3)], "closed and not there");
    breaks(&events, &[blocked(7, "s1", 181)], "blocked and not there");
    breaks(&events, &[ended("s2", 5, FileSessionEnd::Ended)], "is over and has a ticket");
}

#[test]
fn an_early_release_of_a_file_is_a_violation() {
    let free = |when| released(1, "s1", when, ReleaseReason::Voluntary);
    accepts(&start(), &[released(1, "s1", 1, ReleaseReason::Completed)]);
    accepts(&start(), &[revoked(1, 1, RevocationCause::Revoked)]);
    accepts(&start(), &[free(1), ended("s1", 1, FileSessionEnd::Ended)]);
    breaks(&start(), &[free(1)], "lost a file before its time");
    let rests = start_with(&[turn_ended("s1", 10)]);
    accepts(&rests, &[free(40)]);
    breaks(&rests, &[free(39)], "lost a file before its time");
    let busy: Vec<Event> = rests.into_iter().chain([seen("s1", 20)]).collect();
    breaks(&busy, &[free(60)], "lost a file before its time");
    breaks(&start(), &[revoked(1, 1, RevocationCause::Reclaimed)], "lost a file before its time");
    let expired = Event::Expired { lease: Fence(1), at: at(400 * 24 * 60 * 60) };
    breaks(&start(), &[expired], "on a file expires");
}

#[test]
fn a_transferred_file_without_a_new_owner_is_a_violation() {
    let handed = revoked(1, 1, RevocationCause::Transferred);
    accepts(&start(), &[handed.clone(), issued_in_place_of(2, "s2", "a", 1, Some(1))]);
    breaks(&start(), &[handed], "nobody has it");
}

#[test]
fn ending_a_living_session_as_dead_is_a_violation() {
    accepts(&start(), &[ended("dead", 1, FileSessionEnd::Died)]);
    breaks(&start(), &[ended("s2", 1, FileSessionEnd::Died)], "lives and is taken for dead");
}
