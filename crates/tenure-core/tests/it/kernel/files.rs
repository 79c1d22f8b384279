//! Files: every transition of the lock's states, one owner, one ticket, one retry, one report.

use tenure_core::kernel::{Command, FileCommand, Limits, Resource, Tick, Ticket};

use crate::scenario::{ScenarioWorld, check_scenario, holder};
use crate::scenario_files;

#[test]
fn acquire_of_an_unowned_file_is_granted() {
    // S4-44 S4-45 S4-18
    let mut world = ScenarioWorld::new(Limits::default());
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
fn acquire_of_an_owned_file_returns_a_retry_time() {
    // S4-46 S4-47 S4-19 S4-23 S4-24 S4-12 S4-56
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a                -> began s2, check s1
           5  session s2 wants a checked s1     -> contended t1 a of s1 due 185, waits a of s1 t1 until 185
        ",
    );
}

#[test]
fn acquire_requires_a_liveness_check_of_each_owner() {
    // S4-21
    check_scenario(
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
fn retry_and_resume_require_a_liveness_check() {
    // S4-21
    check_scenario(
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
fn repeated_acquire_keeps_its_retry_ticket_and_timer() {
    // S4-25 S4-63 O-20
    check_scenario(
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
fn retry_of_a_free_file_is_granted() {
    // S4-48 S4-26 S4-42
    check_scenario(
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
fn acquire_before_the_retry_time_is_granted_once_the_file_is_free() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
          90  session s1 commits a              -> 1 COMPLETED, lets go a
          91  session s2 wants a                -> seen s2, closed t1 SERVED, granted 2
        ",
    );
}

#[test]
fn retry_ticket_does_not_reserve_the_file() {
    check_scenario(
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
fn failed_retry_creates_one_blocked_report() {
    // S4-49 S4-27 S4-28 S4-57 S4-3 O-20
    check_scenario(
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
fn blocked_report_names_the_owner_and_its_last_activity() {
    // S4-34 S4-35 S4-36 S4-37 S4-38 S4-39 S4-14 S4-5
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           3  session s1 wants a at tests       -> began s1, granted 1
           5  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 185, waits a of s1 t1 until 185
          90  session s1 is active              -> seen s1, noted
         200  session s2 wants a checked s1     -> seen s2, blocked t1 by s1 since 3 seen 90, stops a of s1 t1 report t1
        ",
    );
    let report = world.state.retry_ticket(Ticket(1)).expect("it is open").clone();
    let blocked = report.blocked.expect("it was blocked");
    assert_eq!((report.request.resource.as_str(), report.session), ("a", holder("s2")));
    let owner = &blocked.owner;
    assert_eq!(owner.holder, holder("s1"));
    assert_eq!((&*owner.agent, &*owner.session), ("claude", "session of s1"));
    assert_eq!((&*owner.process.to_string(), &*owner.task), ("process of s1", "tests"));
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
    let kept = world.state.retry_ticket(Ticket(1)).expect("it is remembered");
    assert_eq!(kept.blocked.as_ref().map(|blocked| &*blocked.owner.task), Some("tests"));
    assert_eq!(world.state.blocked_reports().count(), 1);
    assert_eq!(world.state.retry_tickets().count(), 0);
}

#[test]
fn resume_of_a_blocked_session_grants_a_free_file() {
    // S4-54
    check_scenario(
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
fn blocked_session_can_acquire_a_released_file() {
    // S4-54
    check_scenario(
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
fn acquire_of_an_own_file_is_idempotent() {
    check_scenario(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
           0  session s1 wants b+a              -> granted
           1  session s1 wants a+c              -> seen s1, granted 3
        ",
    );
}

#[test]
fn file_acquire_is_atomic() {
    check_scenario(
        "
           0  session s1 wants b                -> began s1, granted 1
           1  session s2 wants a+b+c checked s1 -> began s2, contended t1 b of s1 due 181, waits b of s1 t1 until 181
           2  session s3 wants a+c              -> began s3, granted 2 3
         181  session s2 wants a+b+c checked s1,s3  -> seen s2, contended t2 a of s3 due 361, blocked t1 by s1 since 0 seen 0, contended t3 c of s3 due 361, stops a of s3 t2 b of s1 t1 c of s3 t3 report t1
        ",
    );
}

#[test]
fn aliases_refer_to_the_same_file() {
    check_scenario(
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
fn file_is_held_if_another_session_owns_an_alias() {
    check_scenario(
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
fn duplicate_file_names_are_requested_once() {
    check_scenario(
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
fn activity_within_one_second_is_recorded_once() {
    check_scenario(
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
fn violations_are_recorded() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           1  person sees a changed by s2       -> violated a of s1 by s2, noted
           2  person sees b changed             -> violated b of nobody by nobody, noted
        ",
    );
}

#[test]
fn session_id_is_bound_to_one_process() {
    // S4-2
    check_scenario(
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
fn acquire_without_files_grants_nothing() {
    let mut world = ScenarioWorld::new(Limits::default());
    let command = scenario_files::parse_session_command("s1", &["wants", "a"]);
    let Command::File(command) = command else { panic!("it is about files") };
    let FileCommand::Acquire(mut acquire) = *command else { panic!("it wants something") };
    acquire.files.clear();
    let decision = world.decide_and_apply(&Command::File(Box::new(FileCommand::Acquire(acquire))), Tick(0));
    assert_eq!(decision.events.len(), 1, "{decision:?}");
}
