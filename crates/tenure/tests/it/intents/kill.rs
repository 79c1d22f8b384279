//! A worker that is killed: what it held is kept for as long as it could still use it, and free at once where it is known to be
//! gone.

use tenure_testkit::intents::CHANNEL;
use tenure_testkit::pipelines::{
    IntentsFixture, IntentsSetup, WorkerMode, accepted_session, get_session, submit_intent, wait_for_states,
};
use tenure_testkit::process::processes_using;
use tenure_testkit::{TestClient, is_file_unlocked, wait_until};

use crate::intents::ledger::{LedgerEvents, text};

/// Long enough to be seen, short enough to be waited for.
const TTL_MS: u64 = 3_000;

/// A session in state RUNNING whose pipeline holds its locks. The state alone says only that the process was started.
fn running(home: &IntentsFixture) -> (TestClient, String) {
    let mut client = home.client();
    let id = accepted_session(&submit_intent(&mut client, CHANNEL, None));
    let session = wait_for_states(&mut client, &id, &["RUNNING", "ENDED"]);
    assert_eq!(session["state"], "RUNNING", "{session}");
    wait_until("the pipeline holds its locks", || {
        home.read_or_empty("started").lines().any(|line| line == id)
    });
    (client, id)
}

/// What nobody may have yet, is had in the end; the leases were there to their last moment, and ended by themselves.
fn check_kept_until_the_end(home: &IntentsFixture, client: &mut TestClient, id: &str) {
    for resource in ["tuner:0".to_owned(), format!("service:{CHANNEL}")] {
        assert_eq!(
            client.acquire(&resource, 60_000, None).unwrap().status_and_code(),
            (409, "HELD"),
            "{resource}"
        );
    }
    assert_eq!(
        accepted_session(&submit_intent(client, CHANNEL, None)),
        id,
        "it is known, and not started again"
    );
    let ended = wait_for_states(client, id, &["ENDED"]);
    assert_eq!((&ended["reason"], &ended["outcome"]), (&"R_LEASE_EXPIRED".into(), &"LOST".into()), "{ended}");
    assert!(is_file_unlocked(&home.path("slot-0")), "the pipeline is gone before its tuner is free");
    assert_eq!(client.acquire("tuner:0", 60_000, None).unwrap().status, 201);
    let story = LedgerEvents::read_home(home);
    story.check_exclusive();
    let mut last = [0; 2];
    for (number, prefix) in ["tuner:", "service:"].into_iter().enumerate() {
        let lease = story.leases_on(prefix)[0];
        let renewals =
            story.of_type("lease.renewed").filter(|event| event["lease"]["fence"] == lease["fence"]);
        let expires = renewals.last().map_or(lease, |event| &event["lease"])["expiresTick"].as_u64().unwrap();
        let end = story.end_of(&lease["fence"]).unwrap();
        // The first of them to be over takes the other along.
        last[number] = if text(&end["type"]) == "lease.expired" { expires } else { u64::MAX };
        assert!(last[number] == u64::MAX || end["tick"].as_u64().unwrap() >= expires, "{end}");
    }
    assert!(last.iter().any(|expires| *expires != u64::MAX), "one of them ran out: {last:?}");
}

// 5.3 A: S1-42, O-11
#[test]
fn leases_of_a_killed_worker_last_until_they_expire() {
    let mut home = IntentsFixture::new(IntentsSetup {
        ttl_ms: TTL_MS,
        ..IntentsSetup::with(WorkerMode::SeparateProcess)
    });
    let (mut client, id) = running(&home);
    home.kill_worker();
    check_kept_until_the_end(&home, &mut client, &id);
    let next = accepted_session(&submit_intent(&mut client, CHANNEL, None));
    assert_ne!(next, id, "what is over is not found again");
    assert_eq!(get_session(&mut client, &next)["state"], "NEW", "and nobody is there to start it");
}

// 5.3 A: S1-42
#[test]
fn leases_of_a_worker_killed_with_its_server_last_until_they_expire() {
    let mut home =
        IntentsFixture::new(IntentsSetup { ttl_ms: TTL_MS, ..IntentsSetup::with(WorkerMode::InProcess) });
    let (_, id) = running(&home);
    home.set_worker_mode(WorkerMode::None);
    home.kill_server();
    home.start_server();
    check_kept_until_the_end(&home, &mut home.client(), &id);
}

// 5.3 A: S1-34, S1-42, S1-47
#[test]
fn in_phase_one_intents_are_busy_until_the_leases_of_a_killed_worker_expire() {
    let mut home = IntentsFixture::new(
        IntentsSetup { ttl_ms: TTL_MS, ..IntentsSetup::with(WorkerMode::SeparateProcess) }.with_api_leases(),
    );
    let (mut client, id) = running(&home);
    home.kill_worker();
    let mut refused = 0;
    wait_until("the lease runs out", || {
        let answer = submit_intent(&mut client, CHANNEL, Some("de"));
        refused += usize::from(answer.status_and_code() == (409, "LEASE_BUSY"));
        answer.status == 202
    });
    assert!(refused > 0, "it was held at first");
    assert_eq!(get_session(&mut client, &id)["reason"], "R_LEASE_EXPIRED");
    assert!(is_file_unlocked(&home.path("slot-0")));
}

/// A worker is killed and comes back at once: what it showed is over, and can be shown again long before leases run out.
fn check_free_at_once(mut home: IntentsFixture, restart: impl FnOnce(&mut IntentsFixture)) {
    // One that does not want to end, and one that leaves somebody behind.
    let channels = ["stubborn", "strays"];
    let mut client = home.client();
    let ids = channels.map(|channel| accepted_session(&submit_intent(&mut client, channel, None)));
    wait_until("both are shown", || home.read_or_empty("started").lines().count() == 2);
    ids.iter().for_each(|id| drop(wait_for_states(&mut client, id, &["RUNNING"])));
    restart(&mut home);
    client = home.client();
    for id in &ids {
        let ended = wait_for_states(&mut client, id, &["ENDED"]);
        assert_eq!((&ended["reason"], &ended["outcome"]), (&"R_WORKER_RESTARTED".into(), &"LOST".into()));
        let lock = home.path(&format!("slot-{}", ended["slot"]));
        assert!(is_file_unlocked(&lock), "it was seen gone before: {:?}", processes_using(&lock));
    }
    for channel in channels {
        let id = accepted_session(&submit_intent(&mut client, channel, Some("de")));
        let session = wait_for_states(&mut client, &id, &["RUNNING", "ENDED"]);
        assert_eq!(session["state"], "RUNNING", "{session}");
    }
    let story = LedgerEvents::read_home(&home);
    story.check_exclusive();
    for lease in story.leases_on("tuner:").iter().take(2).chain(story.leases_on("service:").iter().take(2)) {
        let end = story.end_of(&lease["fence"]).unwrap();
        assert_eq!(end["cause"], "WIPED", "{end}");
    }
    home.assert_no_violation();
}

// 5.3 B: S1-43, O-12
#[test]
fn restarted_worker_frees_its_leases_at_once() {
    check_free_at_once(IntentsFixture::new(IntentsSetup::with(WorkerMode::SeparateProcess)), |home| {
        home.kill_worker();
        home.start_worker();
    });
}

// 5.3 B: S1-43, O-12
#[test]
fn restarted_server_with_its_worker_frees_leases_at_once() {
    check_free_at_once(IntentsFixture::new(IntentsSetup::with(WorkerMode::InProcess)), |home| {
        home.kill_server();
        home.start_server();
    });
}

// 5.3 B, in phase 1: S1-43, S1-47
#[test]
fn in_phase_one_a_restarted_worker_frees_its_leases_at_once() {
    check_free_at_once(
        IntentsFixture::new(IntentsSetup::with(WorkerMode::SeparateProcess).with_api_leases()),
        |home| {
            home.kill_worker();
            home.start_worker();
        },
    );
}

// S1-5, S1-14, S1-19: the server alone is killed.
#[test]
fn separate_worker_continues_while_its_server_is_away() {
    let mut home = IntentsFixture::new(IntentsSetup::with(WorkerMode::SeparateProcess));
    let (mut client, id) = running(&home);
    let before = get_session(&mut client, &id);
    home.kill_server();
    assert!(!is_file_unlocked(&home.path("slot-0")), "it is shown on");
    home.start_server();
    client = home.client();
    let after = get_session(&mut client, &id);
    for name in ["state", "process", "slot", "revision"] {
        assert_eq!(after[name], before[name], "{after}");
    }
    assert_eq!(
        accepted_session(&submit_intent(&mut client, CHANNEL, None)),
        id,
        "the same wish, also after a restart"
    );
    client.request(&format!("DELETE /api/v3/sessions/{id}"), None, "").unwrap();
    let ended = wait_for_states(&mut client, &id, &["ENDED"]);
    assert_eq!(ended["reason"], "R_STOPPED", "its worker hears of it: {ended}");
    assert!(is_file_unlocked(&home.path("slot-0")));
    assert_eq!(home.read_or_empty("started").lines().count(), 1);
}
