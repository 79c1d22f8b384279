//! Events about files that cannot follow are refused, and change nothing.

use tenure_core::kernel::{
    BlockedReport, ContentionNotice, Event, FILE_LEASE_TTL, Fence, FileEvent, FileOwner, FileSessionEnd,
    FileSessionInfo, IssuedLease, LeaseMode, LeaseRequest, LeaseTerms, Limits, Nonce, Resource,
    RetryTicketEnd, Tick, TickDuration, Ticket, files_principal,
};

use crate::scenario::{ScenarioWorld, holder, principal};
use crate::scenario_files::session_info;

const NOW: Tick = Tick(1_000_000_000);

/// s1 has a and a subagent, s2 has a ticket for it, s3 was blocked; alice has p, old is an agent.
fn world() -> ScenarioWorld {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s1.x of s1 is active      -> began s1.x, noted
           0  session s3 wants a checked s1     -> began s3, contended t1 a of s1 due 180, waits a of s1 t1 until 180
           0  acquire p alice 5000              -> granted 2
           0  agent old reports PLANNING         -> noted
         180  session s3 wants a checked s1     -> seen s3, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
         900  session s2 wants a checked s1     -> began s2, contended t2 a of s1 due 1080, waits a of s1 t2 until 1080
        ",
    );
    world
}

fn check_file_event_rejected(event: FileEvent) {
    check_event_rejected(&Event::File(Box::new(event)));
}

fn check_event_rejected(event: &Event) {
    let mut world = world();
    let before = world.state.to_comparable();
    let result = world.state.apply(event);
    assert!(result.is_err(), "{event:?}");
    assert_eq!(world.state.to_comparable(), before, "a refused event changes nothing: {event:?}");
}

fn contended(ticket: u64) -> ContentionNotice {
    let resource = Resource::parse("a").expect("a name");
    ContentionNotice {
        ticket: Ticket(ticket),
        session: holder("s1.x"),
        request: LeaseRequest::new(resource, LeaseMode::Exclusive, FILE_LEASE_TTL, Nonce([1; 16])),
        owner: holder("s1"),
        at: NOW,
        retry_at: NOW.saturating_add(TickDuration::from_secs(180)),
        cycle: Vec::new(),
    }
}

fn blocked(at: Tick) -> BlockedReport {
    let (owner, circle) = (FileOwner::from_holder(holder("s1")), Vec::new());
    BlockedReport { at, owner, held_since: Tick(0), seen_at: Tick(0), cycle: circle }
}

#[test]
fn session_began_with_an_invalid_or_used_id_is_rejected() {
    let began = |session| check_file_event_rejected(FileEvent::Began { session, at: NOW });
    began(session_info("s1", None, None, None));
    began(session_info("alice", None, None, None));
    began(session_info("old", None, None, None));
    began(session_info("new", Some(holder("nobody")), None, None));
    began(session_info("new", Some(holder("new")), None, None));
    let plain = session_info("new", None, None, None);
    began(FileSessionInfo { session: "a\nb".into(), ..plain });
    began(session_info("new", None, None, Some("a\nb")));
}

#[test]
fn activity_of_an_unknown_session_is_rejected() {
    let session = holder("nobody");
    check_file_event_rejected(FileEvent::Seen { session: session.clone(), at: NOW, task: None });
    check_file_event_rejected(FileEvent::Seen { session: holder("s1"), at: NOW, task: Some("a\nb".into()) });
    check_file_event_rejected(FileEvent::Seen { session: holder("s1"), at: Tick(1), task: None });
    check_file_event_rejected(FileEvent::TurnEnded { session, at: NOW });
}

#[test]
fn duplicate_or_invalid_contention_is_rejected() {
    let mut fits = world();
    fits.state.apply(&Event::File(Box::new(FileEvent::Contended(contended(3))))).expect("it follows");
    let wrong = |change: fn(&mut ContentionNotice)| {
        let mut wrong = contended(3);
        change(&mut wrong);
        check_file_event_rejected(FileEvent::Contended(wrong));
    };
    wrong(|contended| contended.ticket = Ticket(2));
    wrong(|contended| contended.session = holder("s2"));
    wrong(|contended| contended.session = holder("nobody"));
    wrong(|contended| contended.retry_at = NOW);
    wrong(|contended| contended.request.mode = LeaseMode::Shared);
    wrong(|contended| contended.request.ttl = TickDuration(0));
    wrong(|contended| {
        contended.request =
            contended.request.clone().with_alternatives([Resource::parse("b").expect("a name")]);
    });
}

#[test]
fn early_or_repeated_blocked_report_is_rejected() {
    check_file_event_rejected(FileEvent::Blocked { ticket: Ticket(9), report: blocked(NOW) });
    check_file_event_rejected(FileEvent::Blocked { ticket: Ticket(1), report: blocked(NOW) });
    check_file_event_rejected(FileEvent::Blocked { ticket: Ticket(2), report: blocked(NOW) });
    let due = Tick(1_080_000_000);
    check_file_event_rejected(FileEvent::Blocked {
        ticket: Ticket(2),
        report: BlockedReport { seen_at: Tick(due.0 + 1), ..blocked(due) },
    });
    check_file_event_rejected(FileEvent::Blocked {
        ticket: Ticket(2),
        report: BlockedReport { held_since: Tick(due.0 + 1), ..blocked(due) },
    });
    let mut fits = world();
    let event = FileEvent::Blocked { ticket: Ticket(2), report: blocked(due) };
    fits.state.apply(&Event::File(Box::new(event))).expect("it follows");
}

#[test]
fn session_end_with_leases_or_tickets_is_rejected() {
    check_file_event_rejected(FileEvent::Closed { ticket: Ticket(9), at: NOW, end: RetryTicketEnd::Served });
    let ended = |name: &str| {
        check_file_event_rejected(FileEvent::Ended {
            session: holder(name),
            at: NOW,
            end: FileSessionEnd::Ended,
            detail: "".into(),
        });
    };
    ended("nobody");
    ended("s1");
    ended("s2");
    let mut closed = world();
    let close = FileEvent::Closed { ticket: Ticket(1), at: NOW, end: RetryTicketEnd::Gone };
    closed.state.apply(&Event::File(Box::new(close.clone()))).expect("it follows");
    assert!(closed.state.apply(&Event::File(Box::new(close))).is_err());
}

#[test]
fn file_lease_with_a_wrong_holder_or_principal_is_rejected() {
    let issued = |session: &str, owner: &str, mode: LeaseMode, ticket: Option<u64>| {
        Event::Issued(IssuedLease {
            fence: Fence(3),
            resource: Resource::parse(if session == "s2" { "a" } else { "b" }).expect("a name"),
            holder: holder(session),
            principal: principal(owner),
            terms: LeaseTerms {
                mode,
                issued_at: NOW,
                expires_at: NOW.saturating_add(FILE_LEASE_TTL),
                ttl: FILE_LEASE_TTL,
                renewals: 0,
                nonce: Nonce([1; 16]),
                labels: Default::default(),
            },
            key: None,
            ticket: ticket.map(Ticket),
            continues: None,
            authority: None,
        })
    };
    let own = files_principal();
    world().apply(&issued("s1", own.as_str(), LeaseMode::Exclusive, None));
    check_event_rejected(&issued("s1", "token:a", LeaseMode::Exclusive, None));
    check_event_rejected(&issued("bob", own.as_str(), LeaseMode::Exclusive, None));
    check_event_rejected(&issued("s2", own.as_str(), LeaseMode::Exclusive, None));
    check_event_rejected(&issued("s1", own.as_str(), LeaseMode::Shared, None));
    check_event_rejected(&issued("s1", own.as_str(), LeaseMode::Exclusive, Some(1)));
}
