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
    Acquire, ChangeMode, ClockAnchor, Command, CommandOutcome, ContentionPolicy, Decision, EncodeContext,
    Event, Fence, Holder, IdempotencyKey, KernelState, LeaseCredential, LeaseEnd, LeaseMode, LeaseRequest,
    LedgerTag, Limits, Nonce, Principal, Rejection, RequestDigest, Resource, RevocationCause, Tick,
    TickDuration, Ticket, WaitEnd, decide, decode, encode,
};
use tenure_core::lease::{LeaseReducer, ReleaseReason};
use tenure_core::reducer::{Reducer, ReducerContext};

use crate::{scenario_agents as agents, scenario_files as files};

/// Plays a story with the usual limits.
pub fn check_scenario(story: &str) {
    ScenarioWorld::new(Limits::default()).play(story);
}

/// A state, its replay, and the second opinion.
pub struct ScenarioWorld {
    pub state: KernelState,
    replayed: KernelState,
    reducer: LeaseReducer,
}

impl ScenarioWorld {
    pub fn new(limits: Limits) -> Self {
        let tag = LedgerTag(0xabcd);
        let state = |limits| KernelState::new(tag, limits, Default::default());
        Self { state: state(limits), replayed: state(Limits::default()), reducer: LeaseReducer::new() }
    }

    /// Plays a story; panics at the first line that comes out differently, and shows it as it should read.
    pub fn play(&mut self, story: &str) {
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (request, expected) = line.split_once("->").unwrap_or_else(|| panic!("no arrow: {line}"));
            let words: Vec<&str> = request.split_whitespace().collect();
            let now = Tick(parse_seconds(words[0]).0);
            let command = parse_command(&words[1..]);
            let choosy = self.tickets_with_alternatives(&command);
            let decision = self.decide_and_apply(&command, now);
            assert_eq!(
                render_decision(&decision, &choosy),
                expected.trim(),
                "\n  in the line: {line}\n  {decision:?}"
            );
        }
    }

    /// Whose grants do not go without saying, because any one of several will do: tickets, and `None` for the caller.
    fn tickets_with_alternatives(&self, command: &Command) -> Vec<Option<Ticket>> {
        let has_alternatives =
            |requests: &[LeaseRequest]| requests.iter().any(|request| !request.alternatives.is_empty());
        let waiting = self
            .state
            .queue_tickets()
            .filter(|view| has_alternatives(view.requests))
            .map(|view| Some(view.ticket));
        let asking = matches!(command, Command::Acquire(acquire) if has_alternatives(&acquire.requests));
        waiting.chain(asking.then_some(None)).collect()
    }

    /// Decides, applies, and checks everything that must hold after any step.
    pub fn decide_and_apply(&mut self, command: &Command, now: Tick) -> Decision {
        let decision = decide(&self.state, command, now);
        assert_eq!(decision, decide(&self.state, command, now), "the same question, another answer");
        for event in &decision.events {
            self.apply(event);
        }
        self.state.check_invariants().unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        assert_eq!(
            self.replayed.to_comparable(),
            self.state.to_comparable(),
            "replay differs after {command:?}"
        );
        let agreement = self.state.check_against_reducer(self.reducer.state());
        agreement.unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        decision
    }

    /// Records what no command leads to.
    pub fn apply(&mut self, event: &Event) {
        self.state.apply(event).unwrap_or_else(|error| panic!("{error}: {event:?}"));
        let anchor = ClockAnchor { tick: Tick(0), wall: 1_700_000_000_000_000_000 };
        let record =
            encode(event, EncodeContext { tag: self.state.ledger_tag(), anchor, signature: b"signed" });
        let decoded = decode(&record, self.state.ledger_tag()).expect("what was encoded is decoded");
        assert_eq!(decoded.as_ref(), Some(event), "the codec changes an event");
        self.replayed.apply(event).expect("a replay accepts what was accepted");
        self.reducer
            .apply(&record, &ReducerContext::new(1))
            .unwrap_or_else(|error| panic!("{error}: {event:?}"));
    }
}

fn parse_command(words: &[&str]) -> Command {
    let lease = |word: &str| Fence(word.parse().expect("a lease's number"));
    let claim = |word: Option<&&str>| {
        word.map_or(LeaseCredential::Token, |name| LeaseCredential::Holder {
            holder: holder(name),
            principal: principal(&format!("{name}'s")),
        })
    };
    let nonce = Nonce([7; 16]);
    match words {
        ["acquire", resources, name, ttl, options @ ..] => parse_acquire(resources, name, ttl, options),
        ["renew", fence, rest @ ..] => {
            let ttl = rest.iter().position(|word| *word == "for").map(|at| parse_seconds(rest[at + 1]));
            let by = rest.iter().position(|word| *word == "by").map(|at| &rest[at + 1]);
            Command::Renew { lease: lease(fence), credential: claim(by), ttl }
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
            let mode = LeaseMode::parse(mode).expect("a mode");
            Command::Upgrade(ChangeMode {
                lease: lease(fence),
                credential: LeaseCredential::Token,
                mode,
                nonce,
            })
        }
        ["downgrade", fence, mode] => {
            let mode = LeaseMode::parse(mode).expect("a mode");
            Command::Downgrade(ChangeMode {
                lease: lease(fence),
                credential: LeaseCredential::Token,
                mode,
                nonce,
            })
        }
        ["revoke", fence] => Command::Revoke {
            lease: lease(fence),
            cause: RevocationCause::Revoked,
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
        ["agent", name, words @ ..] => agents::parse_agent_command(name, words),
        ["session", name, words @ ..] => files::parse_session_command(name, words),
        ["person", words @ ..] => files::parse_admin_command(words),
        ["serve", max] => Command::ServeWaiters { max_waiters: max.parse().expect("a number") },
        ["expire"] => Command::Expire { max_ended: 1000 },
        ["expire", max] => Command::Expire { max_ended: max.parse().expect("a number") },
        _ => panic!("no such command: {words:?}"),
    }
}

/// `acquire db+cache/shared alice 10 wait 5 key k body b as ops refresh`: each holder has a principal of its own unless one is named.
/// `t1|t2` is any one of the two; where there is such a choice, grants say on what they are.
fn parse_acquire(resources: &str, name: &str, ttl: &str, options: &[&str]) -> Command {
    let option = |keyword: &str| options.iter().position(|word| *word == keyword).map(|at| options[at + 1]);
    let request = |text: &str| {
        let (resource, mode) = parse_resource_and_mode(text);
        let mut resources = resource.split('|').map(|name| Resource::parse(name).expect("a resource"));
        let first = resources.next().expect("a text has at least one part");
        LeaseRequest::new(first, mode, parse_seconds(ttl), Nonce([1; 16])).with_alternatives(resources)
    };
    let body = option("body").unwrap_or("");
    Command::Acquire(Acquire {
        principal: principal(option("as").unwrap_or(&format!("{name}'s"))),
        holder: holder(name),
        requests: resources.split('+').filter(|text| !text.is_empty()).map(request).collect(),
        contention_policy: match option("wait") {
            Some(patience) => ContentionPolicy::Queue { wait_timeout: parse_seconds(patience) },
            None if options.contains(&"refresh") => ContentionPolicy::RefreshOwn,
            None => ContentionPolicy::Deny,
        },
        key: option("key").map(|key| {
            let of = |text: &str| RequestDigest::of(text.as_bytes());
            IdempotencyKey { key: of(key), body: of(&format!("{resources} {ttl} {body}")) }
        }),
    })
}

fn render_decision(decision: &Decision, choosy: &[Option<Ticket>]) -> String {
    let of_files = matches!(decision.outcome, CommandOutcome::File(_));
    let render_event = |event| {
        let release = if of_files { files::render_release(event) } else { None };
        release.or_else(|| render_event(event, choosy))
    };
    let mut parts: Vec<String> = decision.events.iter().filter_map(render_event).collect();
    parts.push(render_outcome(&decision.outcome));
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

fn render_outcome(answer: &CommandOutcome) -> String {
    match answer {
        CommandOutcome::Granted { leases } => format!("granted{}", format_fences(leases)),
        CommandOutcome::Queued { ticket, position, until, blocked_by } => {
            format!(
                "queued t{} place {position} behind {} until {}",
                ticket.0,
                format_holders(blocked_by),
                format_tick(*until)
            )
        }
        CommandOutcome::Renewed { lease, expires_at } => {
            format!("renewed {} until {}", lease.0, format_tick(*expires_at))
        }
        CommandOutcome::Released { lease } => format!("released {}", lease.0),
        CommandOutcome::Reissued { old_lease: before, lease } => {
            format!("{} continues as {}", before.0, lease.0)
        }
        CommandOutcome::Ended { leases } => format!("ended{}", format_fences(leases)),
        CommandOutcome::Withdrawn { waited: true } => "withdrawn".into(),
        CommandOutcome::Withdrawn { waited: false } => "gone before".into(),
        CommandOutcome::Swept { more } => if *more { "swept, more" } else { "swept" }.into(),
        CommandOutcome::Intent(answer) => format!("{answer:?}"),
        CommandOutcome::Agent(answer) => agents::render_answer(answer),
        CommandOutcome::File(answer) => files::render_answer(answer),
        CommandOutcome::Spent { lease, remaining } => {
            format!("spent of {}, left {:?}", lease.0, remaining.amounts())
        }
        CommandOutcome::Rejected(rejection) => render_rejection(rejection),
    }
}

fn render_rejection(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Invalid(input) => format!("invalid {}", input.field),
        Rejection::TtlOutOfRange { .. } => "ttl out of range".into(),
        Rejection::Held { holder, until, waiting, .. } => {
            format!("held by {holder} until {}, {waiting} waiting", format_tick(*until))
        }
        Rejection::QueueFull { max, .. } => format!("queue full at {max}"),
        Rejection::Deadlock { cycle } => format!("deadlock {}", format_holders(cycle)),
        Rejection::QuotaExceeded { max } => format!("quota {max}"),
        Rejection::KeyReused => "key reused".into(),
        Rejection::HolderTaken { holder } => format!("{holder} is taken"),
        Rejection::NotFound => "no such lease".into(),
        Rejection::NoSuchTicket => "no such ticket".into(),
        Rejection::NotHolder => "not the holder".into(),
        Rejection::Ended { lease, end } => match end {
            LeaseEnd::Released(_) => format!("{} is over: released", lease.0),
            LeaseEnd::Expired => format!("{} is over: expired", lease.0),
            LeaseEnd::Revoked(cause) => format!("{} is over: {cause:?}", lease.0),
        },
        Rejection::NoSpace => "no space".into(),
        Rejection::RestoreHold { until, .. } => format!("held back until {}", format_tick(*until)),
        Rejection::WrongDirection { .. } => "wrong direction".into(),
        other => format!("{other:?}"),
    }
}

/// `db/shared` or `db`, which is exclusive. A folder may stand before the mode.
pub fn parse_resource_and_mode(text: &str) -> (&str, LeaseMode) {
    let named = text.rsplit_once('/').and_then(|(name, mode)| Some((name, LeaseMode::parse(mode)?)));
    named.unwrap_or((text, LeaseMode::Exclusive))
}

/// The numbers of leases, each after a space.
pub fn format_fences(leases: &[Fence]) -> String {
    leases.iter().fold(String::new(), |mut text, fence| {
        let _ = write!(text, " {}", fence.0);
        text
    })
}

pub fn format_holders(holders: &[Holder]) -> String {
    let names: Vec<&str> = holders.iter().map(Holder::as_str).collect();
    names.join(" ")
}

pub fn format_tick(tick: Tick) -> String {
    let text = format!("{}.{:06}", tick.0 / 1_000_000, tick.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

pub fn parse_seconds(text: &str) -> TickDuration {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = format!("{fraction:0<6}");
    let part =
        |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| panic!("no number of seconds: {text}"));
    TickDuration(part(whole) * 1_000_000 + part(&fraction))
}

pub fn holder(name: &str) -> Holder {
    Holder::parse(name).expect("a holder")
}

pub fn principal(name: &str) -> Principal {
    Principal::parse(name).expect("a principal")
}
