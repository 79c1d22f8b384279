//! Events about files that cannot follow are refused, and change nothing.

use tenure_core::kernel::{
    Blocked, Contended, Event, FILE_LEASE, Fence, FileEnd, FileEvent, Issued, Limits, Mode, Nonce, Owner,
    Resource, Span, Tick, Ticket, TicketEnd, Want, files,
};

use crate::story::{World, holder, principal};
use crate::story_files::introduce;

const NOW: Tick = Tick(1_000_000_000);

/// s1 has a and a subagent, s2 has a ticket for it, s3 was blocked; alice has p, old is an agent.
fn world() -> World {
    let mut world = World::new(Limits::default());
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

fn refuses(event: FileEvent) {
    refuses_event(&Event::File(Box::new(event)));
}

fn refuses_event(event: &Event) {
    let mut world = world();
    let before = world.state.snapshot();
    let misfit = world.state.apply(event);
    assert!(misfit.is_err(), "{event:?}");
    assert_eq!(world.state.snapshot(), before, "a refused event changes nothing: {event:?}");
}

fn contended(ticket: u64) -> Contended {
    let resource = Resource::parse("a").expect("a name");
    Contended {
        ticket: Ticket(ticket),
        session: holder("s1.x"),
        want: Want::new(resource, Mode::Exclusive, FILE_LEASE, Nonce([1; 16])),
        owner: holder("s1"),
        at: NOW,
        retry_at: NOW.saturating_add(Span::from_secs(180)),
        circle: Vec::new(),
    }
}

fn blocked(at: Tick) -> Blocked {
    let (owner, circle) = (Owner::named(holder("s1")), Vec::new());
    Blocked { at, owner, held_since: Tick(0), seen_at: Tick(0), circle }
}

#[test]
fn session_began_with_an_invalid_or_used_id_is_rejected() {
    let began = |session| refuses(FileEvent::Began { session, at: NOW });
    began(introduce("s1", None, None, None));
    began(introduce("alice", None, None, None));
    began(introduce("old", None, None, None));
    began(introduce("new", Some(holder("nobody")), None, None));
    began(introduce("new", Some(holder("new")), None, None));
    began(introduce("new", None, Some("a\nb"), None));
    began(introduce("new", None, None, Some("a\nb")));
}

#[test]
fn activity_of_an_unknown_session_is_rejected() {
    let session = holder("nobody");
    refuses(FileEvent::Seen { session: session.clone(), at: NOW, task: None });
    refuses(FileEvent::Seen { session: holder("s1"), at: NOW, task: Some("a\nb".into()) });
    refuses(FileEvent::Seen { session: holder("s1"), at: Tick(1), task: None });
    refuses(FileEvent::TurnEnded { session, at: NOW });
}

#[test]
fn duplicate_or_invalid_contention_is_rejected() {
    let mut fits = world();
    fits.state.apply(&Event::File(Box::new(FileEvent::Contended(contended(3))))).expect("it follows");
    let wrong = |change: fn(&mut Contended)| {
        let mut wrong = contended(3);
        change(&mut wrong);
        refuses(FileEvent::Contended(wrong));
    };
    wrong(|contended| contended.ticket = Ticket(2));
    wrong(|contended| contended.session = holder("s2"));
    wrong(|contended| contended.session = holder("nobody"));
    wrong(|contended| contended.retry_at = NOW);
    wrong(|contended| contended.want.mode = Mode::Shared);
    wrong(|contended| contended.want.ttl = Span(0));
    wrong(|contended| {
        contended.want = contended.want.clone().or([Resource::parse("b").expect("a name")]);
    });
}

#[test]
fn early_or_repeated_blocked_report_is_rejected() {
    refuses(FileEvent::Blocked { ticket: Ticket(9), found: blocked(NOW) });
    refuses(FileEvent::Blocked { ticket: Ticket(1), found: blocked(NOW) });
    refuses(FileEvent::Blocked { ticket: Ticket(2), found: blocked(NOW) });
    let due = Tick(1_080_000_000);
    refuses(FileEvent::Blocked {
        ticket: Ticket(2),
        found: Blocked { seen_at: Tick(due.0 + 1), ..blocked(due) },
    });
    refuses(FileEvent::Blocked {
        ticket: Ticket(2),
        found: Blocked { held_since: Tick(due.0 + 1), ..blocked(due) },
    });
    let mut fits = world();
    let event = FileEvent::Blocked { ticket: Ticket(2), found: blocked(due) };
    fits.state.apply(&Event::File(Box::new(event))).expect("it follows");
}

#[test]
fn session_end_with_leases_or_tickets_is_rejected() {
    refuses(FileEvent::Closed { ticket: Ticket(9), at: NOW, end: TicketEnd::Served });
    let ended = |name: &str| {
        refuses(FileEvent::Ended { session: holder(name), at: NOW, end: FileEnd::Ended, detail: "".into() });
    };
    ended("nobody");
    ended("s1");
    ended("s2");
    let mut closed = world();
    let close = FileEvent::Closed { ticket: Ticket(1), at: NOW, end: TicketEnd::Gone };
    closed.state.apply(&Event::File(Box::new(close.clone()))).expect("it follows");
    assert!(closed.state.apply(&Event::File(Box::new(close))).is_err());
}

#[test]
fn file_lease_with_a_wrong_holder_or_principal_is_rejected() {
    let issued = |who: &str, whose: &str, mode: Mode, ticket: Option<u64>| {
        Event::Issued(Issued {
            fence: Fence(3),
            resource: Resource::parse(if who == "s2" { "a" } else { "b" }).expect("a name"),
            holder: holder(who),
            principal: principal(whose),
            mode,
            at: NOW,
            expires_at: NOW.saturating_add(FILE_LEASE),
            ttl: FILE_LEASE,
            nonce: Nonce([1; 16]),
            labels: Default::default(),
            key: None,
            ticket: ticket.map(Ticket),
            continues: None,
            authority: None,
        })
    };
    let own = files();
    world().apply(&issued("s1", own.as_str(), Mode::Exclusive, None));
    refuses_event(&issued("s1", "token:a", Mode::Exclusive, None));
    refuses_event(&issued("bob", own.as_str(), Mode::Exclusive, None));
    refuses_event(&issued("s2", own.as_str(), Mode::Exclusive, None));
    refuses_event(&issued("s1", own.as_str(), Mode::Shared, None));
    refuses_event(&issued("s1", own.as_str(), Mode::Exclusive, Some(1)));
}
