//! Ledgers and answers that do not go together.

use tenure_history::Law;
use tenure_history::ledger::check;

use crate::history_syntax::{parse_history, parse_ledger};

#[track_caller]
fn laws(history_text: &str, entries: &str) -> Vec<Law> {
    check(&parse_history(history_text), &parse_ledger(entries))
        .iter()
        .map(|violation| violation.law)
        .collect()
}

#[track_caller]
fn breaks(law: Law, history_text: &str, entries: &str) {
    let violations = check(&parse_history(history_text), &parse_ledger(entries));
    let laws: Vec<_> = violations.iter().map(|violation| violation.law).collect();
    assert_eq!(laws, [law], "{}", violations.iter().map(ToString::to_string).collect::<String>());
}

#[test]
fn answers_that_the_ledger_explains_are_accepted() {
    let history = "
        a  10..20    acquire db x 100 -> granted 1
        b  12..25    acquire db x 100 -> held a
        b  30..40    list db -> 1 a x active 80
        a  50..60    renew 1 db -> renewed 100
        b  55..58    show 1 db -> 1 a x active 59
        a  70..80    acquire db:2 s 100
        c  81..90    acquire db:2 s 100
        c  91..95    list db:2 -> 2 a s active 80
        a  200..210  renew 1 db -> over
        b  211..215  show 1 db -> 1 a x expired 0
        b  220..230  acquire db x 50 -> granted 3
        b  231..240  release 3 db -> released
        b  241..250  release 3 db -> released
        b  251..252  show 3 db -> 3 b x released 0
        a  253..254  list db -> nothing
    ";
    let entries = "
        15   issued 1 db a x 100
        55   renewed 1 155
        75   issued 2 db:2 a s 100
        155  expired 1
        175  expired 2
        225  issued 3 db b x 50
        235  released 3
    ";
    assert_eq!(laws(history, entries), []);
}

#[test]
fn an_acknowledged_operation_missing_from_the_ledger_is_a_violation() {
    breaks(Law::Durability, "a 0..5 acquire db x 100 -> granted 1", "");
    let entries = "
        2   issued 1 db a x 100
        102 expired 1
    ";
    let renewed = "
        a  0..5    acquire db x 100 -> granted 1
        a  50..55  renew 1 db -> renewed 100
    ";
    breaks(Law::Durability, renewed, entries);
    let released = "
        a  0..5    acquire db x 100 -> granted 1
        a  50..55  release 1 db -> released
    ";
    breaks(Law::Durability, released, entries);
}

#[test]
fn an_answer_before_its_ledger_entry_is_a_violation() {
    let history = "a 0..5 acquire db x 100 -> granted 1 107";
    breaks(Law::AnswersMatchLedger, "a 0..5 acquire db x 100 -> granted 1", "8 issued 1 db a x 100");
    breaks(Law::Durability, history, "8 issued 1 db a x 100");
    breaks(Law::NoUnrequestedEvents, "a 10..15 acquire db x 100 -> granted 1 97", "8 issued 1 db a x 100");
}

#[test]
fn an_answer_that_differs_from_the_ledger_is_a_violation() {
    for entry in
        ["2 issued 1 db b x 100", "2 issued 1 db a s 100", "2 issued 1 db:2 a x 100", "2 issued 1 db a x 200"]
    {
        breaks(Law::AnswersMatchLedger, "a 0..5 acquire db x 100 -> granted 1", entry);
    }
}

#[test]
fn a_ledger_order_against_real_time_is_a_violation() {
    let history = "
        a  0..5    acquire db:1 x 100 -> granted 2
        b  10..15  acquire db:2 x 100 -> granted 1 91
    ";
    let entries = "
        1  issued 1 db:2 b x 100
        1  issued 2 db:1 a x 100
    ";
    assert_eq!(laws(history, entries), [Law::NoUnrequestedEvents]);
    let history = history.replace(" 91", "");
    let entries = "
        12 issued 1 db:2 b x 100
        3  issued 2 db:1 a x 100
    ";
    assert_eq!(laws(&history, entries), [Law::MonotonicTime, Law::RealTimeOrder]);
}

#[test]
fn an_inconsistent_ledger_is_a_violation() {
    let both = "
        a  0..9  acquire db x 100
        b  0..9  acquire db x 100
    ";
    breaks(
        Law::MutualExclusion,
        both,
        "
        1  issued 1 db a x 100
        2  issued 2 db b x 100
    ",
    );
    breaks(
        Law::MonotonicFences,
        &both.replace(" x ", " s "),
        "
        1  issued 2 db a s 100
        2  issued 1 db b s 100
    ",
    );
}

#[test]
fn an_early_end_or_use_after_the_end_in_the_ledger_is_a_violation() {
    let history_text = "
        a  0..9      acquire db x 100
        a  40..190   renew 1 db
        a  41..190   release 1 db
    ";
    breaks(
        Law::NoEarlyEnd,
        history_text,
        "
        1   issued 1 db a x 100
        99  expired 1
    ",
    );
    breaks(
        Law::NoUseAfterEnd,
        history_text,
        "
        1    issued 1 db a x 100
        101  renewed 1 201
    ",
    );
    breaks(
        Law::NoUseAfterEnd,
        history_text,
        "
        1    issued 1 db a x 100
        101  released 1
    ",
    );
    breaks(
        Law::NoShortening,
        history_text,
        "
        1   issued 1 db a x 100
        50  renewed 1 90
    ",
    );
}

#[test]
fn a_ledger_entry_without_a_request_is_a_violation() {
    breaks(Law::NoUnrequestedEvents, "", "1 issued 1 db a x 100");
    breaks(
        Law::NoUnrequestedEvents,
        "a 0..9 acquire db x 100",
        "
        1  issued 1 db a x 100
        5  released 1
    ",
    );
    // It cannot have come of a request that ended with its process.
    breaks(Law::NoUnrequestedEvents, "a 0..9 acquire db x 100", "20 issued 1 db a x 100");
    // One request, one lease.
    breaks(
        Law::NoUnrequestedEvents,
        "a 0..90 acquire db s 100",
        "
        1  issued 1 db a s 100
        2  issued 2 db a s 100
    ",
    );
}

#[test]
fn a_denial_not_justified_by_the_ledger_is_a_violation() {
    let refused = "
        a  0..9      acquire db x 100
        b  200..210  acquire db x 100 -> held a
    ";
    breaks(Law::JustifiedDenials, refused, "1 issued 1 db a x 100");
    breaks(Law::JustifiedDenials, "b 0..5 acquire db x 100 -> held a", "");
    let early = "
        a  0..9    acquire db x 100
        a  50..55  renew 1 db -> over
    ";
    breaks(Law::NoEarlyEnd, early, "1 issued 1 db a x 100");
}

#[test]
fn a_grant_that_overtakes_a_waiter_is_a_violation() {
    let history = "
        a  0..9    acquire db x 100
        b  5..999  acquire db x 100 wait 500
        c  6..999  acquire db x 100 wait 500
    ";
    breaks(
        Law::FirstComeFirstServed,
        history,
        "
        1    issued 1 db a x 100
        10   queued 1 b db x 510
        11   queued 2 c db x 511
        101  expired 1
        101  issued 2 db c x 100 ticket 2
    ",
    );
    breaks(
        Law::NoGrantAfterTimeout,
        history,
        "
        1    issued 1 db a x 100
        10   queued 1 b db x 90
        101  expired 1
        101  issued 2 db b x 100 ticket 1
    ",
    );
    assert_eq!(
        laws(
            history,
            "
        1    issued 1 db a x 100
        10   queued 1 b db x 510
        11   queued 2 c db x 511
        50   left 1
        101  expired 1
        101  issued 2 db c x 100 ticket 2
    "
        ),
        []
    );
}

#[test]
fn a_partly_granted_batch_is_a_violation() {
    let history = "b  5..999  acquire db:1,db:2 x 100 wait 500";
    breaks(
        Law::AllOrNothing,
        history,
        "
        10   queued 1 b db:1,db:2 x 510
        101  issued 1 db:1 b x 100 ticket 1
    ",
    );
    breaks(
        Law::AllOrNothing,
        "b  0..9  acquire db:1,db:2 x 100 -> granted 1,2",
        "
        4  issued 1 db:1 b x 100
        5  issued 2 db:2 b x 100
    ",
    );
}

#[test]
fn a_read_that_differs_from_the_ledger_is_a_violation() {
    let entries = "
        1  issued 1 db a x 100
        6  released 1
    ";
    let history_with = |read: &str| {
        format!(
            "
        a  0..5   acquire db x 100 -> granted 1
        {read}
        a  6..7   release 1 db -> released
    "
        )
    };
    assert_eq!(laws(&history_with("b 6..9 list db -> 1 a x active 94"), entries), []);
    breaks(Law::NoStaleReads, &history_with("b 8..9 list db -> 1 a x active 92"), entries);
    breaks(Law::NoStaleReads, &history_with("b 8..9 show 1 db -> 1 a x active 92"), entries);
    breaks(Law::AccurateReads, &history_with("b 0..4 show 1 db -> 1 a x released 0"), entries);
    let alive = "1 issued 1 db a x 100";
    breaks(
        Law::NoStaleReads,
        "
        a  0..5   acquire db x 100 -> granted 1
        b  6..9   list db -> nothing
    ",
        alive,
    );
    breaks(
        Law::NoStaleReads,
        "
        a  0..5   acquire db x 100 -> granted 1
        b  6..9   show 1 db -> unknown
    ",
        alive,
    );
    breaks(Law::AccurateReads, "b 6..9 show 7 db -> 7 a x active 92", "");
}

#[test]
fn on_another_clock_times_are_not_compared() {
    let mut history = parse_history(
        "
        a  5000..5005  acquire db x 100 -> granted 1
        b  5010..5015  acquire db x 100 -> held a
    ",
    );
    history.clock = Some("another clock".to_owned());
    assert_eq!(check(&history, &parse_ledger("1 issued 1 db a x 100")), []);
    let found = check(&history, &parse_ledger("1 issued 2 db a x 100"));
    assert_eq!(found[0].law, Law::Durability);
}

#[test]
fn an_unanswered_transfer_explains_an_end_and_a_new_lease() {
    let history = "
        a  0..5    acquire db x 100 -> granted 1
        a  10..20  transfer 1 db b x
    ";
    let entries = "
        1   issued 1 db a x 100
        15  revoked 1
        15  issued 2 db b x 100 continues 1
    ";
    assert_eq!(laws(history, entries), []);
}

#[test]
fn an_upgrade_that_overtakes_a_waiter_is_a_violation() {
    let history = "
        a  0..9    acquire db s 100
        b  5..999  acquire db x 100 wait 500
        c  6..999  acquire db s 100 wait 500
        a  20..30  change 1 db x
    ";
    let upgraded = |readers: &str| {
        format!(
            "
            1   issued 1 db a s 100
            10  queued 1 b db x 510
            {readers}
            25  revoked 1
            25  issued 2 db a x 100 continues 1
        "
        )
    };
    // It kept the writer out all the time.
    assert_eq!(laws(history, &upgraded("")), []);
    breaks(Law::FirstComeFirstServed, history, &upgraded("11  queued 2 c db s 511"));
}
