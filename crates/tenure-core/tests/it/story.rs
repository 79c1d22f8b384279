//! Tests as stories: a line says when, what is asked, and what comes of it.
//!
//! ```text
//!   0  acquire db alice 10          -> granted 1
//!   5  acquire db bob 10            -> held by alice until 10, 0 waiting
//!  10  acquire db bob 10            -> expired 1, granted 2
//! ```
//!
//! Times are seconds, with up to six decimals. After each line the state's invariants are checked, the
//! events go through the codec and back, a second state replays them, and the work face's reducer must agree.

use std::fmt::Write as _;

use tenure_core::kernel::{
    Acquire, Anchor, Answer, Cause, ChangeMode, Claim, Command, Contention, Decision, Digest, End, Event,
    Fence, Holder, LedgerTag, Limits, Mode, Nonce, Principal, Refusal, RequestKey, Resource, Span, Stamp,
    State, Tick, Ticket, WaitEnd, Want, decide, decode, encode,
};
use tenure_core::lease::{LeaseReducer, ReleaseReason};
use tenure_core::reducer::{Reducer, ReducerContext};

use crate::{story_agents as agents, story_files as files};

/// Plays a story with the usual limits.
pub fn check(story: &str) {
    World::new(Limits::default()).play(story);
}

/// A state, its replay, and the second opinion.
pub struct World {
    pub state: State,
    replayed: State,
    reducer: LeaseReducer,
}

impl World {
    pub fn new(limits: Limits) -> Self {
        let tag = LedgerTag(0xabcd);
        let state = |limits| State::new(tag, limits, Default::default());
        Self { state: state(limits), replayed: state(Limits::default()), reducer: LeaseReducer::new() }
    }

    /// Plays a story; panics at the first line that comes out differently, and shows it as it should read.
    pub fn play(&mut self, story: &str) {
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (asked, expected) = line.split_once("->").unwrap_or_else(|| panic!("no arrow: {line}"));
            let words: Vec<&str> = asked.split_whitespace().collect();
            let now = Tick(seconds(words[0]).0);
            let command = command(&words[1..]);
            let choosy = self.choosy(&command);
            let decision = self.take(&command, now);
            assert_eq!(
                render(&decision, &choosy),
                expected.trim(),
                "\n  in the line: {line}\n  {decision:?}"
            );
        }
    }

    /// Whose grants do not go without saying, because any one of several will do: tickets, and `None` for the caller.
    fn choosy(&self, command: &Command) -> Vec<Option<Ticket>> {
        let has_choice = |wants: &[Want]| wants.iter().any(|want| !want.others.is_empty());
        let waiting =
            self.state.tickets().filter(|view| has_choice(view.wants)).map(|view| Some(view.ticket));
        let asking = matches!(command, Command::Acquire(acquire) if has_choice(&acquire.wants));
        waiting.chain(asking.then_some(None)).collect()
    }

    /// Decides, applies, and checks everything that must hold after any step.
    pub fn take(&mut self, command: &Command, now: Tick) -> Decision {
        let decision = decide(&self.state, command, now);
        assert_eq!(decision, decide(&self.state, command, now), "the same question, another answer");
        for event in &decision.events {
            self.apply(event);
        }
        self.state.check_invariants().unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        assert_eq!(self.replayed.snapshot(), self.state.snapshot(), "replay differs after {command:?}");
        let agreement = self.state.check_agreement(self.reducer.state());
        agreement.unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        decision
    }

    /// Records what no command leads to.
    pub fn apply(&mut self, event: &Event) {
        self.state.apply(event).unwrap_or_else(|misfit| panic!("{misfit}: {event:?}"));
        let anchor = Anchor { tick: Tick(0), wall: 1_700_000_000_000_000_000 };
        let record = encode(event, Stamp { tag: self.state.tag(), anchor, signature: b"signed" });
        let decoded = decode(&record, self.state.tag()).expect("what was encoded is decoded");
        assert_eq!(decoded.as_ref(), Some(event), "the codec changes an event");
        self.replayed.apply(event).expect("a replay accepts what was accepted");
        self.reducer
            .apply(&record, &ReducerContext::new(1))
            .unwrap_or_else(|error| panic!("{error}: {event:?}"));
    }
}

fn command(words: &[&str]) -> Command {
    let lease = |word: &str| Fence(word.parse().expect("a lease's number"));
    let claim = |word: Option<&&str>| {
        word.map_or(Claim::Token, |name| Claim::Holder {
            holder: holder(name),
            principal: principal(&format!("{name}'s")),
        })
    };
    let nonce = Nonce([7; 16]);
    match words {
        ["acquire", resources, name, ttl, options @ ..] => acquire(resources, name, ttl, options),
        ["renew", fence, rest @ ..] => {
            let ttl = rest.iter().position(|word| *word == "for").map(|at| seconds(rest[at + 1]));
            let by = rest.iter().position(|word| *word == "by").map(|at| &rest[at + 1]);
            Command::Renew { lease: lease(fence), claim: claim(by), ttl }
        }
        ["release", fence, rest @ ..] => Command::Release {
            lease: lease(fence),
            claim: claim(rest.first()),
            reason: ReleaseReason::Completed,
        },
        ["transfer", fence, "to", name, rest @ ..] => Command::Transfer {
            lease: lease(fence),
            claim: claim(rest.first()),
            to: holder(name),
            principal: principal(&format!("{name}'s")),
            nonce,
        },
        ["upgrade", fence, mode] => {
            let mode = Mode::parse(mode).expect("a mode");
            Command::Upgrade(ChangeMode { lease: lease(fence), claim: Claim::Token, mode, nonce })
        }
        ["downgrade", fence, mode] => {
            let mode = Mode::parse(mode).expect("a mode");
            Command::Downgrade(ChangeMode { lease: lease(fence), claim: Claim::Token, mode, nonce })
        }
        ["revoke", fence] => Command::Revoke {
            lease: lease(fence),
            cause: Cause::Revoked,
            by: principal("admin"),
            detail: "because".into(),
        },
        ["reclaim", name] => {
            Command::Reclaim { holder: holder(name), by: principal("registrar"), detail: "pid gone".into() }
        }
        ["withdraw", ticket, "by", name] => Command::Withdraw {
            ticket: Ticket(ticket.trim_start_matches('t').parse().expect("a ticket")),
            principal: principal(&format!("{name}'s")),
            end: WaitEnd::Withdrawn,
        },
        ["agent", name, words @ ..] => agents::command(name, words),
        ["session", name, words @ ..] => files::session(name, words),
        ["person", words @ ..] => files::person(words),
        ["serve", most] => Command::Serve { most: most.parse().expect("a number") },
        ["expire"] => Command::Expire { most: 1000 },
        ["expire", most] => Command::Expire { most: most.parse().expect("a number") },
        _ => panic!("no such command: {words:?}"),
    }
}

/// `acquire db+cache/shared alice 10 wait 5 key k body b as ops refresh`: each holder has a principal of its own unless one is named.
/// `t1|t2` is any one of the two; where there is such a choice, grants say on what they are.
fn acquire(resources: &str, name: &str, ttl: &str, options: &[&str]) -> Command {
    let option = |wanted: &str| options.iter().position(|word| *word == wanted).map(|at| options[at + 1]);
    let want = |text: &str| {
        let (resource, mode) = named(text);
        let mut resources = resource.split('|').map(|name| Resource::parse(name).expect("a resource"));
        let first = resources.next().expect("a text has at least one part");
        Want::new(first, mode, seconds(ttl), Nonce([1; 16])).or(resources)
    };
    let body = option("body").unwrap_or("");
    Command::Acquire(Acquire {
        principal: principal(option("as").unwrap_or(&format!("{name}'s"))),
        holder: holder(name),
        wants: resources.split('+').filter(|text| !text.is_empty()).map(want).collect(),
        contention: match option("wait") {
            Some(patience) => Contention::Queue { patience: seconds(patience) },
            None if options.contains(&"refresh") => Contention::RefreshOwn,
            None => Contention::Refuse,
        },
        key: option("key").map(|key| {
            let of = |text: &str| Digest::of(text.as_bytes());
            RequestKey { key: of(key), body: of(&format!("{resources} {ttl} {body}")) }
        }),
    })
}

fn render(decision: &Decision, choosy: &[Option<Ticket>]) -> String {
    let of_files = matches!(decision.answer, Answer::File(_));
    let render_event = |event| {
        let release = if of_files { files::render_release(event) } else { None };
        release.or_else(|| render_event(event, choosy))
    };
    let mut parts: Vec<String> = decision.events.iter().filter_map(render_event).collect();
    parts.push(render_answer(&decision.answer));
    parts.join(", ")
}

/// Only what the answer does not say already.
fn render_event(event: &Event, choosy: &[Option<Ticket>]) -> Option<String> {
    match event {
        Event::Issued(issued) if choosy.contains(&issued.ticket) => {
            let to = issued.ticket.map_or(String::new(), |ticket| format!(" to t{}", ticket.0));
            Some(format!("{} on {}{to}", issued.fence.0, issued.resource))
        }
        Event::Expired { lease, .. } => Some(format!("expired {}", lease.0)),
        Event::Issued(issued) => {
            issued.ticket.map(|ticket| format!("served t{} with {}", ticket.0, issued.fence.0))
        }
        Event::Revoked { lease, cause, .. } => Some(format!("revoked {} {cause:?}", lease.0)),
        Event::Left { ticket, end, .. } => Some(format!("left t{} {end:?}", ticket.0)),
        Event::Agent(event) => agents::render_event(event),
        Event::File(event) => Some(files::render_event(event)),
        _ => None,
    }
}

fn render_answer(answer: &Answer) -> String {
    match answer {
        Answer::Granted { leases } => format!("granted{}", numbers(leases)),
        Answer::Queued { ticket, position, until, blocked_by } => {
            format!(
                "queued t{} place {position} behind {} until {}",
                ticket.0,
                names(blocked_by),
                time(*until)
            )
        }
        Answer::Renewed { lease, expires_at } => format!("renewed {} until {}", lease.0, time(*expires_at)),
        Answer::Released { lease } => format!("released {}", lease.0),
        Answer::Continued { before, lease } => format!("{} continues as {}", before.0, lease.0),
        Answer::Ended { leases } => format!("ended{}", numbers(leases)),
        Answer::Withdrawn { waited: true } => "withdrawn".into(),
        Answer::Withdrawn { waited: false } => "gone before".into(),
        Answer::Swept { more } => if *more { "swept, more" } else { "swept" }.into(),
        Answer::Intent(answer) => format!("{answer:?}"),
        Answer::Agent(answer) => agents::render_answer(answer),
        Answer::File(answer) => files::render_answer(answer),
        Answer::Spent { lease, left } => format!("spent of {}, left {:?}", lease.0, left.amounts()),
        Answer::Refused(refusal) => render_refusal(refusal),
    }
}

fn render_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Invalid(input) => format!("invalid {}", input.field),
        Refusal::TtlOutOfRange { .. } => "ttl out of range".into(),
        Refusal::Held { holder, until, waiting, .. } => {
            format!("held by {holder} until {}, {waiting} waiting", time(*until))
        }
        Refusal::QueueFull { most, .. } => format!("queue full at {most}"),
        Refusal::Deadlock { cycle } => format!("deadlock {}", names(cycle)),
        Refusal::QuotaExceeded { most } => format!("quota {most}"),
        Refusal::KeyReused => "key reused".into(),
        Refusal::HolderTaken { holder } => format!("{holder} is taken"),
        Refusal::NotFound => "no such lease".into(),
        Refusal::NoSuchTicket => "no such ticket".into(),
        Refusal::NotHolder => "not the holder".into(),
        Refusal::Over { lease, end } => match end {
            End::Released(_) => format!("{} is over: released", lease.0),
            End::Expired => format!("{} is over: expired", lease.0),
            End::Revoked(cause) => format!("{} is over: {cause:?}", lease.0),
        },
        Refusal::NoSpace => "no space".into(),
        Refusal::HeldBack { until, .. } => format!("held back until {}", time(*until)),
        Refusal::WrongDirection { .. } => "wrong direction".into(),
        other => format!("{other:?}"),
    }
}

/// `db/shared` or `db`, which is exclusive. A folder may stand before the mode.
pub fn named(text: &str) -> (&str, Mode) {
    let named = text.rsplit_once('/').and_then(|(name, mode)| Some((name, Mode::parse(mode)?)));
    named.unwrap_or((text, Mode::Exclusive))
}

/// The numbers of leases, each after a space.
pub fn numbers(leases: &[Fence]) -> String {
    leases.iter().fold(String::new(), |mut text, fence| {
        let _ = write!(text, " {}", fence.0);
        text
    })
}

pub fn names(holders: &[Holder]) -> String {
    let names: Vec<&str> = holders.iter().map(Holder::as_str).collect();
    names.join(" ")
}

pub fn time(tick: Tick) -> String {
    let text = format!("{}.{:06}", tick.0 / 1_000_000, tick.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

pub fn seconds(text: &str) -> Span {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = format!("{fraction:0<6}");
    let part =
        |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| panic!("no number of seconds: {text}"));
    Span(part(whole) * 1_000_000 + part(&fraction))
}

pub fn holder(name: &str) -> Holder {
    Holder::parse(name).expect("a holder")
}

pub fn principal(name: &str) -> Principal {
    Principal::parse(name).expect("a principal")
}
