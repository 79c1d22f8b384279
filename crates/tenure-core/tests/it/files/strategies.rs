//! Events about files as nobody decided them.

use std::sync::Arc;

use proptest::prelude::*;
use tenure_core::kernel::{
    BlockedReport, BootId, ContentionNotice, Event, FILE_LEASE_TTL, Fence, FileEvent, FileOwner,
    FileSessionEnd, FileSessionInfo, Holder, IssuedLease, Labels, LeaseMode, LeaseRequest, LeaseTerms, Nonce,
    ProcessId, RecordedProcess, Resource, RetryTicketEnd, Tick, TickDuration, Ticket, files_principal,
};

type Of<T> = BoxedStrategy<T>;

/// A step of a session, of a ticket, or a file that a session has.
pub fn file_event(
    resource: &Of<Resource>,
    holder: &Of<Holder>,
    fence: impl Strategy<Value = Fence> + 'static,
    tick: impl Strategy<Value = Tick> + Clone + 'static,
    ticket: impl Strategy<Value = Ticket> + Clone + 'static,
) -> Of<Event> {
    let tick = tick.boxed();
    let of = (holder.clone(), tick.clone());
    let seen = (of.clone(), prop::option::of(text())).prop_map(|((session, at), task)| FileEvent::Seen {
        session,
        at,
        task,
    });
    let turn = of.clone().prop_map(|(session, at)| FileEvent::TurnEnded { session, at });
    let closed = (ticket.clone(), tick.clone(), prop::sample::select(&RetryTicketEnd::ALL[..]))
        .prop_map(|(ticket, at, end)| FileEvent::Closed { ticket, at, end });
    let ended = (of, prop::sample::select(&FileSessionEnd::ALL[..]), text())
        .prop_map(|((session, at), end, detail)| FileEvent::Ended { session, at, end, detail });
    let some = || prop::option::of(holder.clone());
    let violated = (resource.clone(), tick.clone(), some(), some(), text()).prop_map(
        |(resource, at, owner, session, detail)| FileEvent::Violated { resource, at, owner, session, detail },
    );
    let about = prop_oneof![
        4 => began_event(holder, &tick),
        1 => seen,
        1 => turn,
        4 => contended_event(resource, holder, &tick, ticket.clone()),
        2 => blocked_event(holder, &tick, ticket),
        2 => closed,
        2 => ended,
        1 => violated,
    ];
    prop_oneof![
        5 => about.prop_map(|event| Event::File(Box::new(event))),
        1 => issued(resource, holder, fence, &tick),
    ]
    .boxed()
}

fn began_event(holder: &Of<Holder>, tick: &Of<Tick>) -> Of<FileEvent> {
    // What a session is at is nothing where it is empty.
    let task = prop::option::of(text()).prop_map(|task| task.filter(|task| !task.is_empty()));
    let parent = prop::option::weighted(0.3, holder.clone());
    (holder.clone(), parent, (text(), text(), process()), task, tick.clone())
        .prop_map(|(id, parent, (agent, session, process), task, at)| {
            let mut info = FileSessionInfo::new(id, process);
            (info.parent, info.agent, info.session, info.task) = (parent, agent, session, task);
            FileEvent::Began { session: info, at }
        })
        .boxed()
}

fn contended_event(
    resource: &Of<Resource>,
    holder: &Of<Holder>,
    tick: &Of<Tick>,
    ticket: impl Strategy<Value = Ticket> + 'static,
) -> Of<FileEvent> {
    let request = (
        resource.clone(),
        prop_oneof![9 => Just(LeaseMode::Exclusive), 1 => Just(LeaseMode::Shared)],
        0..9_u64,
    )
        .prop_map(|(resource, mode, ttl)| {
            LeaseRequest::new(resource, mode, TickDuration(ttl), Nonce([4; 16]))
        });
    let sessions = (holder.clone(), holder.clone(), prop::collection::vec(holder.clone(), 0..3));
    (ticket, sessions, request, tick.clone(), tick.clone())
        .prop_map(|(ticket, (session, owner, circle), request, at, retry_at)| {
            FileEvent::Contended(ContentionNotice {
                ticket,
                session,
                request,
                owner,
                at,
                retry_at,
                cycle: circle,
            })
        })
        .boxed()
}

fn blocked_event(
    holder: &Of<Holder>,
    tick: &Of<Tick>,
    ticket: impl Strategy<Value = Ticket> + 'static,
) -> Of<FileEvent> {
    let owner = (holder.clone(), text(), text(), process(), text()).prop_map(
        |(holder, agent, session, process, task)| {
            let mut owner = FileOwner::from_holder(holder);
            (owner.agent, owner.session, owner.process, owner.task) = (agent, session, process, task);
            owner
        },
    );
    let circle = prop::collection::vec(holder.clone(), 0..3);
    (ticket, owner, (tick.clone(), tick.clone(), tick.clone()), circle)
        .prop_map(|(ticket, owner, (at, held_since, seen_at), circle)| FileEvent::Blocked {
            ticket,
            report: BlockedReport { at, owner, held_since, seen_at, cycle: circle },
        })
        .boxed()
}

fn issued(
    resource: &Of<Resource>,
    holder: &Of<Holder>,
    fence: impl Strategy<Value = Fence> + 'static,
    tick: &Of<Tick>,
) -> Of<Event> {
    (fence, resource.clone(), holder.clone(), tick.clone())
        .prop_map(|(fence, resource, holder, at)| {
            Event::Issued(IssuedLease {
                fence,
                resource,
                holder,
                principal: files_principal(),
                terms: LeaseTerms {
                    mode: LeaseMode::Exclusive,
                    issued_at: at,
                    expires_at: at.saturating_add(FILE_LEASE_TTL),
                    ttl: FILE_LEASE_TTL,
                    renewals: 0,
                    nonce: Nonce([5; 16]),
                    labels: Labels::default(),
                },
                key: None,
                ticket: None,
                continues: None,
                authority: None,
            })
        })
        .boxed()
}

fn process() -> impl Strategy<Value = RecordedProcess> {
    let text = text().prop_map(|text| RecordedProcess::parse(&text).expect("a text"));
    let boot = BootId::parse("6d1f5f0a-54ae-4fd6-a3f5-0d52a0a7c0de").expect("a UUID");
    let id = any::<(u64, u32, u64, u32)>().prop_map(move |(namespace, pid, started, user)| ProcessId {
        boot,
        namespace,
        pid,
        started,
        user,
    });
    prop_oneof![text, id.prop_map(RecordedProcess::from)]
}

fn text() -> impl Strategy<Value = Arc<str>> {
    "[a-zé ]{0,20}".prop_map(|text| text.trim().into())
}
