//! Files: every transition of the lock's states, one owner, one ticket, one retry, one report.

use tenure_core::kernel::{Command, FileCommand, Limits, Resource, Tick, Ticket};

use crate::story::{World, check, holder};
use crate::story_files;

#[test]
fn a_file_that_nobody_has_is_free_and_becomes_the_first_ones() {
    // S4-44 S4-45 S4-18
    let mut world = World::new(Limits::default());
    let file = Resource::parse("a").expect("a name");
    assert_eq!(world.state.file_lease(&file), None);
    world.play("7  session s1 wants a  -> began s1, granted 1");
    // O-20: what a lease says, and who has it.
    let (fence, since, owner) = world.state.file_lease(&file).expect("it has an owner");
    assert_eq!((fence.0, since, owner), (1, Tick(7_000_000), &holder("s1")));
    let session = world.state.file_session(&holder("s1")).expect("it lives");
    assert_eq!(session.seen_at, Tick(7_000_000));
}

#[test]
fn who_comes_second_is_denied_and_told_when_to_come_back() {
    // S4-46 S4-47 S4-19 S4-23 S4-24 S4-12 S4-56
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a                -> began s2, check s1
           5  session s2 wants a checked s1     -> contended t1 a of s1 due 185, waits a of s1 t1 until 185
        ",
    );
}

#[test]
fn nobody_is_denied_for_the_sake_of_one_who_was_not_looked_at() {
    // S4-21
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           1  session s3 wants b                -> began s3, granted 2
           5  session s2 wants a+b checked s1   -> began s2, check s3
           6  session s2 wants a+b              -> seen s2, check s1 s3
           7  session s2 wants a+b checked s1,s3  -> seen s2, contended t1 a of s1 due 187, contended t2 b of s3 due 187, waits a of s1 t1 b of s3 t2 until 187
        ",
    );
}

#[test]
fn nor_at_the_retry_nor_after_it() {
    // S4-21
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 180, waits a of s1 t1 until 180
         180  session s2 wants a                -> seen s2, check s1
         180  session s2 wants a checked s1     -> blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
         200  session s2 wants a                -> seen s2, check s1
         200  person resumes 1 a                -> check s1
        ",
    );
}

#[test]
fn asking_again_meets_the_same_ticket_and_starts_no_new_timer() {
    // S4-25 S4-63 O-20
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
           5  session s2 wants a checked s1     -> waits a of s1 t1 until 185
          60  session s2 wants a checked s1     -> seen s2, waits a of s1 t1 until 185
         184.999999  session s2 wants a checked s1  -> seen s2, waits a of s1 t1 until 185
         185  session s2 wants a checked s1     -> blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
        ",
    );
}

#[test]
fn a_retry_that_finds_the_file_free_goes_on_as_if_nothing_had_been() {
    // S4-48 S4-26 S4-42
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
          90  session s1 commits a              -> 1 COMPLETED, lets go a
         185  session s2 wants a                -> seen s2, closed t1 SERVED, granted 2
         186  session s1 wants a checked s2     -> seen s1, contended t2 a of s2 due 366, waits a of s2 t2 until 366
        ",
    );
}

#[test]
fn a_file_that_is_free_meanwhile_is_had_at_once() {
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
          90  session s1 commits a              -> 1 COMPLETED, lets go a
          91  session s2 wants a                -> seen s2, closed t1 SERVED, granted 2
        ",
    );
}

#[test]
fn nothing_is_kept_for_who_has_a_ticket() {
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
          90  session s1 commits a              -> 1 COMPLETED, lets go a
          91  session s3 wants a                -> began s3, granted 2
         185  session s2 wants a checked s3     -> seen s2, blocked t1 by s3 since 91 seen 91, stops a of s3 t1 report t1
        ",
    );
}

#[test]
fn a_retry_that_finds_it_held_stops_with_a_report_and_there_is_no_second_one() {
    // S4-49 S4-27 S4-28 S4-57 S4-3 O-20
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
         100  session s1 is active              -> seen s1, noted
         185  session s2 wants a checked s1     -> seen s2, blocked t1 by s1 since 0 seen 100, stops a of s1 t1 report t1
         186  session s2 wants a checked s1     -> seen s2, stops a of s1 t1 report t1
         400  session s2 wants a checked s1     -> seen s2, stops a of s1 t1 report t1
         400  session s2 wants a+b checked s1   -> stops a of s1 t1 report t1
         400  session s2 wants b                -> granted 2
        ",
    );
}

#[test]
fn a_report_says_what_is_blocked_by_whom_since_when_and_when_it_was_last_heard_of() {
    // S4-34 S4-35 S4-36 S4-37 S4-38 S4-39 S4-14 S4-5
    let mut world = World::new(Limits::default());
    world.play(
        "
           3  session s1 wants a at tests       -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
          90  session s1 is active              -> seen s1, noted
         200  session s2 wants a checked s1     -> seen s2, blocked t1 by s1 since 3 seen 90, stops a of s1 t1 report t1
        ",
    );
    let report = world.state.file_ticket(Ticket(1)).expect("it is open").clone();
    let blocked = report.blocked.expect("it was blocked");
    assert_eq!((report.want.resource.as_str(), report.session), ("a", holder("s2")));
    let owner = &blocked.owner;
    assert_eq!(owner.holder, holder("s1"));
    assert_eq!((&*owner.agent, &*owner.session), ("claude", "session of s1"));
    assert_eq!((&*owner.process, &*owner.task), ("process of s1", "tests"));
    assert_eq!(blocked.at.since(blocked.held_since).as_millis(), 197_000);
    assert_eq!(blocked.seen_at, Tick(90_000_000));
    assert_eq!(report.retry_at.since(report.at).as_millis(), 180_000);
    // While it is open and was blocked, its session waits for an instruction.
    assert_eq!(report.end, None);
    // It outlives its owner, and its session.
    world.play(
        "
         210  session s1 ends                   -> 1 VOLUNTARY, over s1 ENDED, lets go a
         220  session s2 ends                   -> closed t1 GONE, over s2 ENDED, lets go
        ",
    );
    let kept = world.state.file_ticket(Ticket(1)).expect("it is remembered");
    assert_eq!(kept.blocked.as_ref().map(|blocked| &*blocked.owner.task), Some("tests"));
    assert_eq!(world.state.file_reports().count(), 1);
    assert_eq!(world.state.file_tickets().count(), 0);
}

#[test]
fn who_was_blocked_goes_on_when_a_person_says_so_and_the_file_is_free() {
    // S4-54
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 180, waits a of s1 t1 until 180
         180  session s2 wants a checked s1     -> seen s2, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
         190  person resumes 1 a checked s1     -> held by s1 until 31622400, 0 waiting
         200  session s1 commits a              -> 1 COMPLETED, lets go a
         210  person resumes 1 a                -> closed t1 RESUMED, granted 2
         210  person resumes 1 a                -> no such ticket
         211  session s2 wants a                -> seen s2, granted
        ",
    );
}

#[test]
fn who_was_blocked_and_asks_when_it_is_free_has_it_too() {
    // S4-54
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 180, waits a of s1 t1 until 180
         180  session s2 wants a checked s1     -> seen s2, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
         200  session s1 commits a              -> 1 COMPLETED, lets go a
         300  session s2 wants a                -> seen s2, closed t1 SERVED, granted 2
        ",
    );
}

#[test]
fn what_a_session_has_it_has_as_often_as_it_asks() {
    check(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
           0  session s1 wants b+a              -> granted
           1  session s1 wants a+c              -> seen s1, granted 3
        ",
    );
}

#[test]
fn all_files_of_a_request_are_had_or_none() {
    check(
        "
           0  session s1 wants b                -> began s1, granted 1
           1  session s2 wants a+b+c checked s1 -> began s2, contended t1 b of s1 due 181, waits b of s1 t1 until 181
           2  session s3 wants a+c              -> began s3, granted 2 3
         181  session s2 wants a+b+c checked s1,s3  -> seen s2, contended t2 a of s3 due 361, blocked t1 by s1 since 0 seen 0, contended t3 c of s3 due 361, stops a of s3 t2 b of s1 t1 c of s3 t3 report t1
        ",
    );
}

#[test]
fn two_names_of_one_file_are_one_file() {
    check(
        "
           0  session s1 wants a=x              -> began s1, granted 1 2
           1  session s2 wants b=x checked s1   -> began s2, contended t1 b of s1 due 181, waits b of s1 t1 until 181
           2  session s2 wants x checked s1     -> seen s2, contended t2 x of s1 due 182, waits x of s1 t2 until 182
         181  session s2 wants b=x checked s1   -> seen s2, blocked t1 by s1 since 0 seen 0, stops b of s1 t1 report t1
         200  session s1 commits a+x            -> 1 COMPLETED, 2 COMPLETED, lets go a x
         201  session s2 wants b=x              -> seen s2, closed t1 SERVED, closed t2 SERVED, granted 3 4
        ",
    );
}

#[test]
fn a_file_of_which_somebody_else_has_another_name_is_held_even_by_who_has_this_one() {
    check(
        "
           0  session s1 wants x                -> began s1, granted 1
           0  session s2 wants a                -> began s2, granted 2
           1  session s2 wants a=x checked s1   -> seen s2, contended t1 a of s1 due 181, waits a of s1 t1 until 181
         181  session s2 wants a=x checked s1   -> seen s2, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
         182  session s1 commits x              -> 1 COMPLETED, lets go x
         183  session s2 wants a=x              -> seen s2, closed t1 SERVED, granted 3
        ",
    );
}

#[test]
fn a_file_that_is_named_twice_is_asked_for_once() {
    check(
        "
           0  session s1 wants a+a+a=a          -> began s1, granted 1
           1  session s2 wants a+a checked s1   -> began s2, contended t1 a of s1 due 181, waits a of s1 t1 until 181
         181  session s2 wants a+a checked s1   -> seen s2, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
         190  session s1 commits a+a            -> 1 COMPLETED, lets go a
         191  session s2 wants a+a=a            -> seen s2, closed t1 SERVED, granted 2
        ",
    );
}

#[test]
fn what_is_heard_twice_within_a_second_is_nothing_new() {
    check(
        "
           0  session s1 is active              -> began s1, noted
           0.5  session s1 is active            -> noted
           1  session s1 is active              -> seen s1, noted
           1.2  session s1 is active at tests   -> seen s1 at tests, noted
           1.3  session s1 is active at tests   -> noted
           2  session s1 turn ends              -> turn over s1, noted
           2.1  session s1 turn ends            -> noted
           2.2  session s1 is active            -> seen s1, noted
        ",
    );
}

#[test]
fn whoever_changes_what_another_has_is_told_of() {
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           1  person sees a changed by s2       -> violated a of s1 by s2, noted
           2  person sees b changed             -> violated b of nobody by nobody, noted
        ",
    );
}

#[test]
fn a_name_is_for_one_process() {
    // S4-2
    check(
        "
           0  session s1 wants a                -> began s1, granted 1
           1  session s1 wants a in another     -> s1 is taken
           2  session s1 of s2 wants a          -> s1 is taken
           3  session s3 of s2 wants a          -> NoSuchSession
           4  session s4 of s4 wants a          -> NoSuchSession
           5  session s1 dies                   -> revoked 1 Reclaimed, over s1 DIED, lets go a
           6  session s1 wants a in another     -> began s1, granted 2
        ",
    );
}

#[test]
fn a_session_that_asks_for_nothing_gets_nothing() {
    let mut world = World::new(Limits::default());
    let command = story_files::session("s1", &["wants", "a"]);
    let Command::File(command) = command else { panic!("it is about files") };
    let FileCommand::Acquire(mut acquire) = *command else { panic!("it wants something") };
    acquire.files.clear();
    let decision = world.take(&Command::File(Box::new(FileCommand::Acquire(acquire))), Tick(0));
    assert_eq!(decision.events.len(), 1, "{decision:?}");
}
