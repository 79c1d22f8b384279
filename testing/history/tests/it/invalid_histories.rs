//! One history for each way in which a law can be broken, seen by clients alone.

use tenure_history::linearizability::{self, DEFAULT_MAX_STEPS, SearchVerdict};
use tenure_history::{Law, fences};

use crate::history_syntax::{parse_history, split_histories};

/// Fails unless each history breaks this law, by the search.
#[track_caller]
fn breaks(law: Law, histories: &str) {
    for text in split_histories(histories) {
        let findings = linearizability::check(&parse_history(&text), DEFAULT_MAX_STEPS);
        let broken: Vec<_> =
            findings.iter().filter(|finding| finding.verdict != SearchVerdict::Holds).collect();
        let [finding] = broken[..] else { panic!("{text}: {findings:?}") };
        let SearchVerdict::Violated(violation) = &finding.verdict else { panic!("{text}: {finding:?}") };
        assert_eq!(violation.law, law, "{text}: {violation}");
        let text_of_violation = violation.to_string();
        assert!(
            text_of_violation.contains(law.sentence())
                && text_of_violation.contains("what cannot be explained"),
            "{text_of_violation}"
        );
    }
}

#[track_caller]
fn breaks_by_fences(law: Law, text: &str) {
    let violations = fences::check(&parse_history(text));
    assert_eq!(violations.iter().map(|violation| violation.law).collect::<Vec<_>>(), [law], "{violations:?}");
}

#[test]
fn overlapping_exclusive_leases_violate_mutual_exclusion() {
    breaks(
        Law::MutualExclusion,
        "
        a  0..5    acquire db x 1000 -> granted 1
        b  10..12  acquire db x 1000 -> granted 2

        a  0..5    acquire db s 1000 -> granted 1
        b  6..8    acquire db s 1000 -> granted 2
        a  9..10   release 1 db -> released
        c  11..12  acquire db x 1000 -> granted 3

        # A renewal that was acknowledged keeps others out, too.
        a  0..5      acquire db x 100 -> granted 1
        a  50..55    renew 1 db -> renewed 100
        b  120..149  acquire db x 100 -> granted 2
    ",
    );
}

#[test]
fn an_upgrade_beside_a_shared_lease_violates_mutual_exclusion() {
    breaks(
        Law::MutualExclusion,
        "
        a  0..5    acquire db s 1000 -> granted 1
        b  6..8    acquire db s 1000 -> granted 2
        a  9..10   change 1 db x -> granted 3 1000
    ",
    );
}

#[test]
fn a_reused_or_decreasing_fence_is_a_violation() {
    breaks_by_fences(
        Law::UniqueFences,
        "
        a  0..5    acquire db:1 x 1000 -> granted 7
        b  10..12  acquire db:2 x 1000 -> granted 7
    ",
    );
    breaks_by_fences(
        Law::MonotonicFences,
        "
        a  0..5    acquire db:1 x 1000 -> granted 7
        b  10..12  acquire db:2 x 1000 -> granted 6
    ",
    );
    breaks(
        Law::MonotonicFences,
        "
        a  0..5    acquire db s 1000 -> granted 7
        b  10..12  acquire db s 1000 -> granted 6
    ",
    );
}

#[test]
fn an_early_end_is_a_violation() {
    breaks(
        Law::NoEarlyEnd,
        "
        a  0..5    acquire db x 100 -> granted 1
        a  90..95  renew 1 db -> over

        a  0..5    acquire db x 100 -> granted 1
        b  90..95  show 1 db -> 1 a x expired 0

        a  0..5    acquire db x 100 key k -> granted 1
        a  90..95  acquire db x 100 key k -> over
    ",
    );
}

#[test]
fn using_a_lease_after_its_end_is_a_violation() {
    breaks(
        Law::NoUseAfterEnd,
        "
        a  0..5      acquire db x 100 -> granted 1
        a  106..109  renew 1 db -> renewed 100

        a  0..5    acquire db x 100 -> granted 1
        a  10..12  release 1 db -> released
        a  15..16  renew 1 db -> renewed 100

        a  0..5      acquire db x 100 -> granted 1
        a  102..103  renew 1 db -> over
        a  104..105  renew 1 db -> renewed 100

        a  0..5      acquire db x 100 -> granted 1
        a  106..107  release 1 db -> released

        a  0..5      acquire db x 100 -> granted 1
        a  107..108  transfer 1 db b x -> granted 2 100

        a  0..5      acquire db x 100 -> granted 1
        b  108..109  show 1 db -> 1 a x active 1
    ",
    );
}

#[test]
fn a_renewal_that_shortens_is_a_violation() {
    breaks(
        Law::NoShortening,
        "
        a  0..5    acquire db x 1000 -> granted 1
        a  10..12  renew 1 db 100 -> renewed 100

        a  0..5    acquire db x 1000 -> granted 1 900
    ",
    );
}

#[test]
fn a_denial_without_a_blocking_lease_is_a_violation() {
    breaks(
        Law::JustifiedDenials,
        "
        a  0..5    acquire db x 100 -> held b

        a  0..5    acquire db x 100 -> granted 1
        a  6..7    release 1 db -> released
        b  8..9    acquire db x 100 -> held a

        a  0..5      acquire db x 100 -> granted 1
        b  106..107  acquire db x 100 -> held a

        a  0..5    acquire db s 100 -> granted 1
        b  6..7    acquire db s 100 -> held a
    ",
    );
}

#[test]
fn a_grant_that_is_lost_after_its_answer_is_a_violation() {
    breaks(
        Law::NoStaleReads,
        "
        a  0..5  acquire db x 100 -> granted 1
        b  6..7  list db -> nothing

        a  0..5  acquire db x 100 -> granted 1
        b  6..7  show 1 db -> unknown
    ",
    );
    // Acknowledged, lost with the process, and granted again.
    breaks(
        Law::MutualExclusion,
        "
        a  0..5    acquire db x 1000 -> granted 1
        a  6..7    acquire db x 1000 -> held a
        b  50..55  acquire db x 1000 -> granted 2
    ",
    );
}

#[test]
fn a_stale_read_is_a_violation() {
    breaks(
        Law::NoStaleReads,
        "
        a  0..5    acquire db x 100 -> granted 1
        a  6..7    release 1 db -> released
        b  8..9    show 1 db -> 1 a x active 90

        # What one reader has seen, the next one sees too.
        a  0..100   acquire db x 1000 -> granted 1
        b  10..20   list db -> 1 a x active 990
        c  30..40   list db -> nothing
    ",
    );
}

#[test]
fn an_impossible_read_is_a_violation() {
    breaks(
        Law::AccurateReads,
        "
        b  0..1    list db -> 1 a x active 90
        a  5..6    acquire db x 100 -> granted 1

        a  0..5    acquire db x 100 -> granted 1
        b  8..9    show 1 db -> 1 c x active 93

        a  0..5    acquire db x 100 -> granted 1
        b  8..9    show 1 db -> 1 a x active 20

        a  0..5    acquire db x 100 -> granted 1
        b  8..9    show 1 db -> 1 a x released 0
    ",
    );
}

#[test]
fn two_leases_for_one_idempotency_key_are_a_violation() {
    breaks(
        Law::MutualExclusion,
        "
        a  0..5    acquire db x 100 key k -> granted 1
        a  10..15  acquire db x 100 key k -> granted 2
    ",
    );
    breaks(
        Law::Idempotency,
        "
        a  0..5    acquire db s 100 key k -> granted 1
        b  6..7    acquire db s 100 -> granted 2
        a  8..9    release 1 db -> released
        a  10..15  acquire db s 100 key k -> granted 1
    ",
    );
}

#[test]
fn a_request_that_ended_with_its_process_explains_no_later_answer() {
    // It ended with its process at 20.
    breaks(
        Law::JustifiedDenials,
        "
        a  0..20     acquire db x 100
        b  200..210  acquire db x 100 -> held a
    ",
    );
}
