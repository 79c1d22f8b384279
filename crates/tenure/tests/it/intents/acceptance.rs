//! The acceptance criteria of intents, against running processes.

use std::collections::BTreeSet;

use tenure_testkit::intents::{CHANNEL, OTHER_CHANNEL};
use tenure_testkit::pipelines::{
    IntentsFixture, IntentsSetup, WorkerMode, accepted_session, get_session, intent_body, submit_intent,
    wait_for_states,
};
use tenure_testkit::{Response, TestClient, wait_until};

use crate::intents::ledger::LedgerEvents;

const BOTH: [WorkerMode; 2] = [WorkerMode::InProcess, WorkerMode::SeparateProcess];

/// The same wish on so many connections, all of them sent before the first answer is read.
fn at_once(home: &IntentsFixture, count: usize, body: &str) -> Vec<Response> {
    let mut clients: Vec<TestClient> = (0..count).map(|_| home.client()).collect();
    for client in &mut clients {
        client.send("POST /api/v3/intents", None, body).unwrap();
    }
    clients.iter_mut().map(|client| client.read_response().unwrap()).collect()
}

fn statuses(answers: &[Response]) -> Vec<u16> {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    statuses
}

/// How many leases on tuners were ever given out, and that no resource was given out twice.
fn tuner_leases(home: &IntentsFixture) -> usize {
    let story = LedgerEvents::read_home(home);
    story.check_exclusive();
    story.leases_on("tuner:").len()
}

// 5.1: S1-35, S1-38, S1-39
#[test]
fn two_identical_intents_at_once_become_one_session() {
    for worker in BOTH {
        let home = IntentsFixture::new(IntentsSetup::with(worker));
        let answers = at_once(&home, 2, &intent_body(CHANNEL, None));
        let ids: BTreeSet<String> = answers.iter().map(accepted_session).collect();
        assert_eq!(ids.len(), 1, "{answers:?}");
        let session = wait_for_states(&mut home.client(), ids.first().unwrap(), &["RUNNING", "ENDED"]);
        assert_eq!(session["state"], "RUNNING", "{session}");
        assert_eq!(tuner_leases(&home), 1);
        home.assert_no_violation();
    }
}

// 5.1: S1-34, S1-37, S1-39, O-13
#[test]
fn in_phase_one_the_second_of_two_intents_is_rejected_as_busy() {
    for worker in BOTH {
        let home = IntentsFixture::new(IntentsSetup::with(worker).with_api_leases());
        let answers = at_once(&home, 2, &intent_body(CHANNEL, None));
        assert_eq!(statuses(&answers), [202, 409], "{answers:?}");
        let refused = answers.iter().find(|answer| answer.status == 409).unwrap();
        assert_eq!((refused.status_and_code(), refused.retry_after()), ((409, "LEASE_BUSY"), Some(1)));
        let taken = answers.iter().find(|answer| answer.status == 202).unwrap();
        let session = wait_for_states(&mut home.client(), &accepted_session(taken), &["RUNNING", "ENDED"]);
        assert_eq!(session["state"], "RUNNING", "{session}");
        assert_eq!(tuner_leases(&home), 1);
    }
}

// 5.1: S1-38, S1-39
#[test]
fn thousand_identical_intents_at_once_become_one_session() {
    let home = IntentsFixture::new(IntentsSetup::with(WorkerMode::InProcess));
    let answers = at_once(&home, 1_000, &intent_body(CHANNEL, None));
    let ids: BTreeSet<String> = answers.iter().map(accepted_session).collect();
    assert_eq!((answers.len(), ids.len()), (1_000, 1));
    wait_for_states(&mut home.client(), ids.first().unwrap(), &["RUNNING"]);
    assert_eq!(tuner_leases(&home), 1);
    let story = LedgerEvents::read_home(&home);
    assert_eq!(story.of_type("intent.accepted").count(), 1);
    assert_eq!(story.leases_on("service:").len(), 1);
    // A session runs as soon as its process does, which may be before the script has written its line.
    let started = || home.read_or_empty("started").lines().count();
    wait_until("one pipeline was started", || started() > 0);
    assert_eq!(started(), 1, "one pipeline was started");
}

// 5.1: S1-37, S1-39
#[test]
fn in_phase_one_one_of_a_thousand_intents_is_accepted() {
    let home = IntentsFixture::new(IntentsSetup::with(WorkerMode::InProcess).with_api_leases());
    let answers = at_once(&home, 1_000, &intent_body(CHANNEL, None));
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 202);
    assert_eq!((taken.len(), refused.len()), (1, 999));
    assert!(refused.iter().all(|answer| answer.status_and_code() == (409, "LEASE_BUSY")));
    wait_for_states(&mut home.client(), &accepted_session(taken[0]), &["RUNNING"]);
    assert_eq!(tuner_leases(&home), 1);
}

// 5.2: S1-31, S1-32, S1-33, S1-40, S1-41
#[test]
fn other_parameters_for_a_channel_are_another_session_that_ends_busy() {
    for worker in BOTH {
        let home = IntentsFixture::new(IntentsSetup::with(worker));
        let mut client = home.client();
        let first = accepted_session(&submit_intent(&mut client, CHANNEL, None));
        wait_for_states(&mut client, &first, &["RUNNING"]);
        let second = accepted_session(&submit_intent(&mut client, CHANNEL, Some("de")));
        assert_ne!(first, second);
        let session = wait_for_states(&mut client, &second, &["RUNNING", "ENDED"]);
        let why = ["state", "reason", "outcome"].map(|name| &session[name]);
        assert_eq!(why, ["ENDED", "R_LEASE_BUSY", "REJECTED_BUSY"], "{session}");
        assert_eq!(get_session(&mut client, &first)["state"], "RUNNING");
        assert_eq!(tuner_leases(&home), 1, "it did not come so far");
        home.assert_no_violation();
    }
}

// 5.2: S1-34
#[test]
fn in_phase_one_other_parameters_for_a_busy_channel_are_rejected() {
    let home = IntentsFixture::new(IntentsSetup::with(WorkerMode::InProcess).with_api_leases());
    let mut client = home.client();
    let first = accepted_session(&submit_intent(&mut client, CHANNEL, None));
    assert_eq!(submit_intent(&mut client, CHANNEL, Some("de")).status_and_code(), (409, "LEASE_BUSY"));
    wait_for_states(&mut client, &first, &["RUNNING"]);
    assert_eq!(submit_intent(&mut client, CHANNEL, Some("de")).status_and_code(), (409, "LEASE_BUSY"));
    client.request(&format!("DELETE /api/v3/sessions/{first}"), None, "").unwrap();
    wait_for_states(&mut client, &first, &["ENDED"]);
    let second = accepted_session(&submit_intent(&mut client, CHANNEL, Some("de")));
    wait_for_states(&mut client, &second, &["RUNNING"]);
}

// S1-1, S1-9
#[test]
fn only_the_worker_acquires_leases() {
    let mut home = IntentsFixture::new(IntentsSetup::with(WorkerMode::None));
    let mut client = home.client();
    let first = accepted_session(&submit_intent(&mut client, CHANNEL, None));
    let second = accepted_session(&submit_intent(&mut client, OTHER_CHANNEL, None));
    assert_eq!(get_session(&mut client, &first)["state"], "NEW");
    assert_eq!(LedgerEvents::read_home(&home).of_type("lease.issued").count(), 0, "nobody has taken a lease");
    home.set_worker_mode(WorkerMode::SeparateProcess);
    home.start_worker();
    for id in [&first, &second] {
        wait_for_states(&mut client, id, &["RUNNING"]);
    }
    let story = LedgerEvents::read_home(&home);
    story.check_taken_by_worker();
    assert_eq!((story.leases_on("service:").len(), story.leases_on("tuner:").len()), (2, 2));
}

/// Asks for the channel again and again, until it is answered with this status. Nobody is sent away meanwhile.
fn ask_until(client: &mut TestClient, status: u16, from: u16) {
    wait_until("the phase changes", || {
        let answer = submit_intent(client, CHANNEL, None);
        assert!([status, from].contains(&answer.status), "{answer:?}");
        answer.status == status
    });
}

// 5.1: S1-34 to S1-39
#[test]
fn phase_changes_on_sighup_without_rejecting_intents() {
    let home = IntentsFixture::new(IntentsSetup::with(WorkerMode::InProcess));
    let mut client = home.client();
    let first = accepted_session(&submit_intent(&mut client, CHANNEL, None));
    wait_for_states(&mut client, &first, &["RUNNING"]);

    home.set_intents_setting("api_leases = true");
    home.server().signal("HUP");
    ask_until(&mut client, 409, 202);
    let answers = at_once(&home, 2, &intent_body(OTHER_CHANNEL, None));
    assert_eq!(statuses(&answers), [202, 409], "{answers:?}");
    let second = accepted_session(answers.iter().find(|answer| answer.status == 202).unwrap());
    wait_for_states(&mut client, &second, &["RUNNING"]);

    home.set_intents_setting("api_leases = false");
    home.server().signal("HUP");
    ask_until(&mut client, 202, 409);
    for (channel, id) in [(CHANNEL, &first), (OTHER_CHANNEL, &second)] {
        let answers = at_once(&home, 2, &intent_body(channel, None));
        assert!(
            answers.iter().all(|answer| accepted_session(answer) == *id),
            "it goes on, whatever the phase"
        );
        assert_eq!(get_session(&mut client, id)["state"], "RUNNING");
    }
    assert_eq!(tuner_leases(&home), 2);
    home.assert_no_violation();
}
