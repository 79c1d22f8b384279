//! Input that nobody should send: an answer that names the field, and nothing happens.

use tenure_core::kernel::{
    Acquire, ChangeMode, Command, CommandOutcome, ContentionPolicy, Fence, Holder, KernelState, Labels,
    LeaseCredential, LeaseMode, LeaseRequest, Limits, Nonce, Principal, Rejection, Resource, RevocationCause,
    Tick, TickDuration, Ticket, WaitEnd, decide,
};
use tenure_core::lease::ReleaseReason;
use tenure_core::rules::InvalidInput;

type Parse = fn(&str) -> Result<String, InvalidInput>;

/// Every kind of name, with the field that its errors name.
const NAMES: [(&str, Parse); 3] = [
    ("resource", |name| Resource::parse(name).map(|name| name.as_str().to_owned())),
    ("holder", |name| Holder::parse(name).map(|name| name.as_str().to_owned())),
    ("principal", |name| Principal::parse(name).map(|name| name.as_str().to_owned())),
];

/// Accepts every one of `names`, unchanged.
#[track_caller]
fn check_accepted(names: &[&str]) {
    for (field, parse) in NAMES {
        for name in names {
            assert_eq!(parse(name).as_deref(), Ok(*name), "{field}");
        }
    }
}

/// Refuses every one of `names`, and says which field it is.
#[track_caller]
fn check_rejected(names: &[&str]) {
    for (field, parse) in NAMES {
        for name in names {
            let error = parse(name).expect_err(field);
            assert_eq!(error.field, field, "{name:?}");
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }
}

#[test]
fn empty_name_is_rejected() {
    check_rejected(&[""]);
}

#[test]
fn names_longer_than_4096_bytes_are_rejected() {
    // Two bytes each: 2048 fit exactly, one more byte of any kind does not.
    check_accepted(&["x", &"x".repeat(4096), &"é".repeat(2048), &format!("{}\u{1F512}", "x".repeat(4092))]);
    let too_long =
        ["x".repeat(4097), format!("{}x", "é".repeat(2048)), format!("{}\u{1F512}", "x".repeat(4093))];
    for name in &too_long {
        assert_eq!(Holder::parse(name).expect_err(name).field, "holder");
        assert_eq!(Principal::parse(name).expect_err(name).field, "principal");
    }
}

#[test]
fn resource_may_exceed_the_name_limit_by_its_kind_prefix() {
    let kind = "DATABASE_TABLE:";
    let longest = format!("{kind}{}", "x".repeat(4096));
    assert_eq!(Resource::parse(&longest).map(|name| name.as_str().len()), Ok(4111));
    let too_long = "x".repeat(4113);
    assert_eq!(Resource::parse(&too_long).expect_err("too long").field, "resource");
}

#[test]
fn names_with_control_characters_are_rejected() {
    for control in ['\0', '\n', '\r', '\t', '\u{1B}', '\u{1F}', '\u{7F}', '\u{85}', '\u{9F}'] {
        check_rejected(&[
            &control.to_string(),
            &format!("a{control}b"),
            &format!("a{control}"),
            &format!("{control}b"),
        ]);
    }
}

#[test]
fn names_with_bidi_and_invisible_characters_are_accepted() {
    // By design only control characters (Unicode Cc) are refused: a path may hold any of these, and a
    // resource that cannot be named cannot be protected. Whoever shows a name to people escapes it.
    check_accepted(&[
        "a\u{202E}b",
        "\u{2066}a\u{2069}",
        "a\u{200B}b",
        "a\u{2028}b",
        "\u{FEFF}",
        " ",
        "e\u{301}",
    ]);
    assert_ne!(Resource::parse("e\u{301}"), Resource::parse("\u{e9}"), "names are bytes, not looks");
}

#[test]
fn labels_are_bounded_in_number_and_size() {
    let named = |count: usize| (0..count).map(|number| format!("label-{number}")).collect::<Vec<_>>();
    let parse = |names: &[String]| Labels::parse(names.iter().map(|name| (name.as_str(), "")));
    assert_eq!(parse(&named(Labels::MAX)).map(|labels| labels.iter().count()), Ok(Labels::MAX));
    let (long, longer) = ("x".repeat(256), "x".repeat(257));
    assert!(Labels::parse([(long.as_str(), long.as_str())]).is_ok());
    let many = named(Labels::MAX + 1);
    let wrong: [&[(&str, &str)]; 7] = [
        &many.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>(),
        &[(&longer, "")],
        &[("a", &longer)],
        &[("", "value")],
        &[("a\n", "")],
        &[("a", "\u{85}")],
        &[("a", "1"), ("b", ""), ("a", "1")],
    ];
    for labels in wrong {
        let error = Labels::parse(labels.iter().copied()).expect_err("labels");
        assert_eq!(error.field, "labels", "{labels:?}");
    }
    let sorted = Labels::parse([("b", "2"), ("a", "1")]).expect("labels");
    assert_eq!(sorted.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
}

#[test]
fn unknown_mode_names_do_not_parse() {
    for name in ["", " exclusive", "exclusive ", "exclusive\0", "write", "DEPENDS-ON", "shar\u{e9}d", "0"] {
        assert_eq!(LeaseMode::parse(name), None, "{name:?}");
    }
}

fn lease_request(resource: &str, ttl: TickDuration) -> LeaseRequest {
    let resource = Resource::parse(resource).expect("a resource");
    LeaseRequest::new(resource, LeaseMode::Exclusive, ttl, Nonce::default())
}

fn acquire(wants: Vec<LeaseRequest>, contention: ContentionPolicy) -> Command {
    let principal = Principal::parse("alice").expect("a principal");
    let holder = Holder::parse("alice").expect("a holder");
    Command::Acquire(Acquire { principal, holder, requests: wants, contention_policy: contention, key: None })
}

/// What `command` is refused with in an empty state at `now`; nothing may happen.
#[track_caller]
fn rejection_of(command: &Command, now: u64) -> Rejection {
    let decision = decide(&KernelState::default(), command, Tick(now));
    assert_eq!(decision.events, [], "{command:?}");
    let CommandOutcome::Rejected(rejection) = decision.outcome else {
        panic!("{:?} to {command:?}", decision.outcome)
    };
    rejection
}

#[track_caller]
fn rejected_field(command: &Command) -> &'static str {
    match rejection_of(command, 0) {
        Rejection::Invalid(input) => input.field,
        other => panic!("{other:?}"),
    }
}

const MINUTE: TickDuration = TickDuration::from_secs(60);

#[test]
fn acquire_with_an_invalid_number_of_leases_is_rejected() {
    let several =
        |count: usize| (0..count).map(|number| lease_request(&format!("r{number}"), MINUTE)).collect();
    assert_eq!(rejected_field(&acquire(several(0), ContentionPolicy::Deny)), "leases");
    assert_eq!(rejected_field(&acquire(several(257), ContentionPolicy::Deny)), "leases");
    let twice = vec![
        lease_request("r", MINUTE),
        lease_request("x", MINUTE),
        lease_request("r", TickDuration::from_secs(5)),
    ];
    assert_eq!(rejected_field(&acquire(twice, ContentionPolicy::Deny)), "leases");
    let any_of = |count: usize| {
        let alternatives =
            (1..count).map(|number| Resource::parse(&format!("r{number}")).expect("a resource"));
        acquire(vec![lease_request("r0", MINUTE).with_alternatives(alternatives)], ContentionPolicy::Deny)
    };
    assert_eq!(rejected_field(&any_of(65)), "leases");
    let one = decide(&KernelState::default(), &any_of(64), Tick(0));
    assert!(matches!(one.outcome, CommandOutcome::Granted { leases } if leases.len() == 1));
    let largest = decide(&KernelState::default(), &acquire(several(256), ContentionPolicy::Deny), Tick(0));
    assert!(matches!(largest.outcome, CommandOutcome::Granted { leases } if leases.len() == 256));
}

#[test]
fn zero_or_unbounded_ttl_is_rejected() {
    for ttl in [TickDuration(0), TickDuration(1), TickDuration(u64::MAX), TickDuration(u64::MAX - 1)] {
        for contention in [
            ContentionPolicy::Deny,
            ContentionPolicy::RefreshOwn,
            ContentionPolicy::Queue { wait_timeout: MINUTE },
        ] {
            let refused = rejection_of(
                &acquire(vec![lease_request("a", MINUTE), lease_request("b", ttl)], contention),
                0,
            );
            assert!(
                matches!(refused, Rejection::TtlOutOfRange { requested, .. } if requested == ttl),
                "{refused:?}"
            );
        }
    }
    let anything = Limits { min_ttl: TickDuration(0), max_ttl: TickDuration(u64::MAX), ..Limits::default() };
    let state = KernelState::new(Default::default(), anything, Default::default());
    let answer = |ttl, now| {
        decide(&state, &acquire(vec![lease_request("a", ttl)], ContentionPolicy::Deny), Tick(now)).outcome
    };
    assert!(matches!(answer(TickDuration(0), 0), CommandOutcome::Rejected(Rejection::TtlOutOfRange { .. })));
    assert_eq!(answer(TickDuration(u64::MAX), 1), CommandOutcome::Rejected(Rejection::Exhausted));
    assert!(
        matches!(answer(TickDuration(u64::MAX), 0), CommandOutcome::Granted { .. }),
        "it ends with time itself"
    );
}

/// Every want names the same names, in another order: as bad as it gets.
#[test]
fn assignment_of_many_requests_to_many_alternatives_is_fast() {
    let name = |number: usize| Resource::parse(&format!("r{}", number % 64)).expect("a resource");
    let acquire_many = |count: usize| {
        let request = |first: usize| {
            lease_request(name(first).as_str(), MINUTE)
                .with_alternatives((1..64).map(move |next| name(first + next)))
        };
        acquire((0..count).map(request).collect(), ContentionPolicy::Deny)
    };
    let all = decide(&KernelState::default(), &acquire_many(64), Tick(0));
    assert!(matches!(all.outcome, CommandOutcome::Granted { leases } if leases.len() == 64));
    assert_eq!(rejected_field(&acquire_many(65)), "leases");
    assert_eq!(rejected_field(&acquire_many(256)), "leases");
}

#[test]
fn acquire_with_an_unbounded_wait_is_rejected() {
    let wait_timeout = TickDuration(u64::MAX);
    assert_eq!(
        rejected_field(&acquire(vec![lease_request("a", MINUTE)], ContentionPolicy::Queue { wait_timeout })),
        "waitMs"
    );
}

#[test]
fn acquire_at_the_last_tick_is_rejected() {
    assert_eq!(
        rejection_of(&acquire(vec![lease_request("a", MINUTE)], ContentionPolicy::Deny), u64::MAX),
        Rejection::Exhausted
    );
}

#[test]
fn commands_with_unknown_fences_and_tickets_are_rejected() {
    let (claim, nonce) = (LeaseCredential::Token, Nonce::default());
    let by = Principal::parse("admin").expect("a principal");
    let to = Holder::parse("bob").expect("a holder");
    for now in [0, u64::MAX] {
        for lease in [Fence(0), Fence(1), Fence::MAX, Fence(u64::MAX)] {
            let change = ChangeMode { lease, credential: claim.clone(), mode: LeaseMode::Shared, nonce };
            let (claim, principal, reason) = (claim.clone(), by.clone(), ReleaseReason::Completed);
            let commands = [
                Command::Renew { lease, credential: claim.clone(), ttl: None },
                Command::Renew { lease, credential: claim.clone(), ttl: Some(TickDuration(u64::MAX)) },
                Command::Release { lease, claim: claim.clone(), reason },
                Command::Transfer { lease, claim, to: to.clone(), principal, nonce },
                Command::Upgrade(change.clone()),
                Command::Downgrade(change),
                Command::Revoke { lease, cause: RevocationCause::Revoked, by: by.clone(), detail: "".into() },
            ];
            for command in commands {
                assert_eq!(rejection_of(&command, now), Rejection::NotFound, "{command:?}");
            }
        }
        let (ticket, end) = (Ticket(u64::MAX), WaitEnd::Withdrawn);
        let withdraw = Command::Withdraw { ticket, principal: by.clone(), end };
        assert_eq!(rejection_of(&withdraw, now), Rejection::NoSuchTicket);
    }
}

#[test]
fn overflowing_renewal_leaves_the_lease_unchanged() {
    let limits = Limits { max_ttl: TickDuration(u64::MAX), ..Limits::default() };
    let mut state = KernelState::new(Default::default(), limits, Default::default());
    let command = acquire(vec![lease_request("a", MINUTE)], ContentionPolicy::Deny);
    decide(&state, &command, Tick(5)).events.iter().for_each(|event| state.apply(event).expect("it follows"));
    let renew = Command::Renew {
        lease: Fence(1),
        credential: LeaseCredential::Token,
        ttl: Some(TickDuration(u64::MAX)),
    };
    let decision = decide(&state, &renew, Tick(6));
    assert_eq!((decision.events, decision.outcome), (vec![], CommandOutcome::Rejected(Rejection::Exhausted)));
}

#[test]
fn detail_text_is_validated() {
    let by = || Principal::parse("admin").unwrap();
    let revoke = |detail: &str| Command::Revoke {
        lease: Fence(1),
        cause: RevocationCause::Revoked,
        by: by(),
        detail: detail.into(),
    };
    let reclaim = |detail: &str| Command::Reclaim {
        holder: Holder::parse("alice").unwrap(),
        by: by(),
        detail: detail.into(),
    };
    for detail in ["two\nlines", "\u{7}", &"x".repeat(4097)] {
        assert_eq!(rejected_field(&revoke(detail)), "detail");
        assert_eq!(rejected_field(&reclaim(detail)), "detail");
    }
    assert_eq!(rejection_of(&revoke(""), 0), Rejection::NotFound);
}

#[test]
fn revoke_with_cause_transferred_is_rejected() {
    let by = Principal::parse("admin").unwrap();
    let command =
        Command::Revoke { lease: Fence(1), cause: RevocationCause::Transferred, by, detail: "".into() };
    assert_eq!(rejected_field(&command), "cause");
}

#[test]
fn idempotency_key_with_refresh_is_rejected() {
    let Command::Acquire(mut request) =
        acquire(vec![lease_request("a", TickDuration::from_secs(10))], ContentionPolicy::RefreshOwn)
    else {
        unreachable!("it is an acquire");
    };
    let digest = tenure_core::kernel::RequestDigest::of(b"key");
    request.key = Some(tenure_core::kernel::IdempotencyKey { key: digest, body: digest });
    assert_eq!(rejected_field(&Command::Acquire(request)), "idempotencyKey");
}

#[test]
fn oversized_request_is_rejected_only_if_it_must_queue() {
    let wide = |resources: u64| {
        (0..resources)
            .map(|number| lease_request(&format!("r{number}"), TickDuration::from_secs(10)))
            .collect()
    };
    let queue = ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(5) };
    let mut state = KernelState::default();
    let held = decide(
        &state,
        &acquire(vec![lease_request("r0", TickDuration::from_secs(10))], ContentionPolicy::Deny),
        Tick(0),
    );
    held.events.iter().for_each(|event| state.apply(event).unwrap());
    let answer = |wants: Vec<LeaseRequest>| decide(&state, &acquire(wants, queue), Tick(0)).outcome;
    assert!(matches!(answer(wide(16)), CommandOutcome::Queued { .. }));
    assert!(
        matches!(answer(wide(17)), CommandOutcome::Rejected(Rejection::Invalid(input)) if input.field == "leases")
    );
    assert!(matches!(answer(wide(40).split_off(1)), CommandOutcome::Granted { .. }), "nothing is in the way");
}

#[test]
fn request_size_limit_counts_names_and_labels() {
    let long = |number: u64| format!("{number}{}", "x".repeat(4_000));
    let wants = (0..70).map(|number| lease_request(&long(number), TickDuration::from_secs(10))).collect();
    assert_eq!(rejected_field(&acquire(wants, ContentionPolicy::Deny)), "leases");
}
