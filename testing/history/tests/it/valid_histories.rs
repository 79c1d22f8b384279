//! Histories that look suspicious and are not.

use tenure_history::fences;
use tenure_history::linearizability::{self, DEFAULT_MAX_STEPS, SearchVerdict};

use crate::history_syntax::{parse_history, split_histories};

/// Fails if one of these histories breaks a law.
#[track_caller]
fn holds(histories: &str) {
    for text in split_histories(histories) {
        let history = parse_history(&text);
        for finding in linearizability::check(&history, DEFAULT_MAX_STEPS) {
            if let SearchVerdict::Violated(violation) = &finding.verdict {
                panic!("{text}: {violation}");
            }
            assert_eq!(finding.verdict, SearchVerdict::Holds, "{text}");
        }
        assert_eq!(fences::check(&history), [], "{text}");
    }
}

#[test]
fn concurrent_grants_are_accepted_in_either_order() {
    holds(
        "
        a  0..50   acquire db x 1000 -> granted 2
        b  0..60   acquire db x 1000 -> granted 1
        b  5..40   release 1 db -> released

        a  0..50   acquire db x 1000 -> held b
        b  0..60   acquire db x 1000 -> granted 1
    ",
    );
}

#[test]
fn an_unanswered_request_may_have_taken_effect() {
    holds(
        "
        a  0..     acquire db x 1000
        b  10..12  acquire db x 1000 -> held a
        c  15..16  list db -> 5 a x active 995
        c  17..18  list db -> 5 a x active 993

        # It may have, long after.
        a  0..       acquire db x 1000
        b  10..12    acquire db x 100 -> granted 1
        c  500..510  acquire db x 1000 -> held a

        a  0..5    acquire db x 1000 -> granted 1
        a  10..    release 1 db
        b  20..25  acquire db x 1000 -> granted 2

        a  0..5      acquire db x 100 -> granted 1
        a  90..      renew 1 db
        b  150..160  acquire db x 1000 -> held a

        a  0..5    acquire db s 1000 -> granted 1
        a  10..    change 1 db x
        b  20..25  acquire db s 1000 -> held a
        c  26..27  show 1 db -> 1 a s released 0
    ",
    );
}

#[test]
fn an_unanswered_request_may_have_had_no_effect() {
    holds(
        "
        a  0..     acquire db x 1000
        b  10..12  acquire db x 1000 -> granted 1
        a  13..14  list db -> 1 b x active 997

        a  0..5    acquire db x 1000 -> granted 1
        a  10..    release 1 db
        b  20..25  acquire db x 1000 -> held a
    ",
    );
}

#[test]
fn a_repeated_keyed_acquire_returns_the_same_lease() {
    holds(
        "
        a  0..20   acquire db x 1000 key k
        a  30..35  acquire db x 1000 key k -> granted 1 980
        a  40..45  acquire db x 1000 key k -> granted 1 970

        a  0..20   acquire db x 1000 key k
        a  30..35  acquire db x 1000 key k -> granted 1

        a  0..20       acquire db x 1000 key k
        a  1030..1035  acquire db x 1000 key k -> over
        b  1036..1037  acquire db x 1000 -> granted 2
    ",
    );
}

#[test]
fn a_repeated_transfer_returns_the_same_lease() {
    holds(
        "
        a  0..5    acquire db x 1000 -> granted 1
        a  10..20  transfer 1 db b x
        a  30..35  transfer 1 db b x -> granted 2 980
        a  36..37  renew 1 db -> over
    ",
    );
}

#[test]
fn a_lease_may_expire_during_a_request() {
    holds(
        "
        # Its end is between 100 and 105, whatever clients know.
        a  0..5      acquire db x 100 -> granted 1
        a  103..106  renew 1 db -> renewed 100

        a  0..5      acquire db x 100 -> granted 1
        b  99..101   acquire db x 100 -> granted 2

        a  0..5      acquire db x 100 -> granted 1
        b  102..103  acquire db x 100 -> held a
        c  103..104  acquire db x 100 -> granted 2

        a  0..5      acquire db x 100 -> granted 1
        b  102..103  list db -> nothing
    ",
    );
}

#[test]
fn a_read_may_show_expired_while_the_renewal_is_being_written() {
    holds(
        "
        a  0..5      acquire db x 100 -> granted 1
        a  90..300   renew 1 db -> renewed 1000
        b  150..160  show 1 db -> 1 a x expired 0
        b  310..320  show 1 db -> 1 a x active 780
    "
        .replace("renew 1 db ->", "renew 1 db 1000 ->")
        .as_str(),
    );
}

#[test]
fn overlapping_shared_leases_are_accepted() {
    holds(
        "
        a  0..5      acquire db s 100 -> granted 1
        b  6..8      acquire db s 300 -> granted 2
        c  10..12    acquire db x 100 -> held b
        d  150..155  list db -> 2 b s active 155
        b  160..165  release 2 db -> released
        c  170..175  acquire db x 100 -> granted 3
        c  180..185  change 3 db s -> granted 4 100
        a  190..195  acquire db s 100 -> granted 5
        c  196..199  transfer 4 db e s -> granted 6 100
        c  200..201  renew 4 db -> over
    ",
    );
}

#[test]
fn the_ttl_of_a_queued_grant_counts_from_the_grant() {
    holds(
        "
        a  0..5     acquire db x 100 -> granted 1
        b  10..108  acquire db x 100 wait 500 -> granted 2 195
        c  50..55   acquire db x 100 -> held a
        c  190..195 acquire db x 100 -> held b

        # A waiter is in the way as well.
        a  0..5     acquire db s 100 -> granted 1
        b  10..90   acquire db x 100 wait 80 -> held a
        c  50..55   acquire db s 100 -> held b
    ",
    );
}

#[test]
fn repeated_release_and_reads_of_ended_leases_are_accepted() {
    holds(
        "
        a  0..5    acquire db x 100 -> granted 1
        a  10..15  release 1 db -> released
        a  20..25  release 1 db -> released
        a  30..35  renew 1 db -> over
        b  40..45  show 1 db -> 1 a x released 0
        b  40..45  acquire db x 50 -> refused BUSY
    ",
    );
}

#[test]
fn a_search_that_exceeds_its_step_limit_is_undecided() {
    let text = "
        a  0..5    acquire db x 1000 -> granted 1
        b  10..12  acquire db x 1000 -> granted 2
    ";
    let findings = linearizability::check(&parse_history(text), 1);
    assert_eq!(findings[0].verdict, SearchVerdict::Undecided);
}
