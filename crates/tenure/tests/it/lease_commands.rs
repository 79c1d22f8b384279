//! Commands that ask a server one thing.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::Value;
use tenure_testkit::{TestHome, wait_until};

#[test]
fn lease_is_acquired_renewed_transferred_and_released() {
    let home = TestHome::new();
    let granted =
        home.json(&["acquire", "db:a", "--ttl", "1m", "--holder", "ann", "--label", "k=v", "--json"]);
    let id = granted["lease"]["id"].as_str().unwrap();
    assert_eq!((&granted["lease"]["fence"], &granted["lease"]["ttlMs"]), (&1.into(), &60_000.into()));
    let token = granted["token"].as_str().unwrap();

    let shown = home.run(&["show", id]);
    assert!(shown.output.contains("ann") && shown.output.contains("k=v"), "{shown:?}");
    assert!(!shown.output.contains(token));

    let mut renew = home.command(&["renew", id, "--ttl", "2m", "--json"]);
    let renewed = renew.env("TENURE_LEASE_TOKEN", token).output().unwrap();
    let renewed: Value = serde_json::from_slice(&renewed.stdout).unwrap();
    assert_eq!(renewed["lease"]["ttlMs"], 120_000);

    let mut transfer = home.command(&["transfer", id, "--to", "bob", "--json"]);
    let handed = transfer.env("TENURE_LEASE_TOKEN", token).output().unwrap();
    let handed: Value = serde_json::from_slice(&handed.stdout).unwrap();
    assert_eq!((&handed["lease"]["holder"], &handed["lease"]["fence"]), (&"bob".into(), &2.into()));

    let mut stale = home.command(&["renew", id]);
    assert_eq!(stale.env("TENURE_LEASE_TOKEN", token).status().unwrap().code(), Some(76), "it was handed on");

    let (id, token) = (handed["lease"]["id"].as_str().unwrap(), handed["token"].as_str().unwrap());
    let mut wrong = home.command(&["release", id]);
    assert_eq!(wrong.env("TENURE_LEASE_TOKEN", "wrong").status().unwrap().code(), Some(77));
    assert_eq!(home.run(&["release", id]).code, Some(64), "without a token");
    assert_eq!(
        home.run(&["release", id, "--token", "-wrong"]).code,
        Some(77),
        "one token in 64 begins with `-`"
    );
    let released = home.run(&["release", id, "--token", token, "--reason", "aborted"]);
    assert_eq!(released.code, Some(0), "{released:?}");
    assert!(released.output.contains("ABORTED"), "{released:?}");
    assert_eq!(home.run(&["show", "4f1d09aa-9"]).code, Some(1));
}

#[test]
fn token_file_is_readable_by_its_owner_only() {
    let home = TestHome::new();
    // A file that everybody can read does not stay so.
    std::fs::write(home.path("token"), "old").unwrap();
    let granted = home.run(&["acquire", "db:a", "--token-file", "token"]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let token = std::fs::read_to_string(home.path("token")).unwrap();
    let mode = home.path("token").metadata().unwrap().permissions().mode();
    assert_eq!((mode & 0o777, token.trim().len() > 20), (0o600, true));
    assert!(!granted.output.contains(token.trim()) && !granted.errors.contains(token.trim()));
    let id = granted.output.lines().find_map(|line| line.strip_prefix("lease")).unwrap().trim();
    assert_eq!(home.run(&["release", id, "--token-file", "token"]).code, Some(0));
}

#[test]
fn several_resources_are_acquired_atomically() {
    let home = TestHome::new();
    let both = home.json(&["acquire", "db:a", "db:b", "--holder", "ann", "--json"]);
    assert_eq!(both["leases"].as_array().unwrap().len(), 2);
    assert_eq!(home.run(&["acquire", "db:c", "db:b", "--holder", "bob"]).code, Some(75));
    assert_eq!(home.run(&["who", "db:c"]).code, Some(1));
}

#[test]
fn same_idempotency_key_returns_the_same_lease() {
    let home = TestHome::new();
    let acquire = ["acquire", "db:a", "--holder", "ann", "--key", "job-1", "--json"];
    assert_eq!(home.json(&acquire)["lease"]["id"], home.json(&acquire)["lease"]["id"]);
    let other = home.run(&["acquire", "db:b", "--holder", "ann", "--key", "job-1"]);
    assert_eq!(other.code, Some(64), "{other:?}");
}

#[test]
fn holder_query_of_a_free_resource_exits_with_one() {
    let home = TestHome::new();
    let free = home.run(&["who", "db:a"]);
    assert_eq!((free.code, free.output.as_str()), (Some(1), "Nobody holds db:a.\n"));
    home.json(&["acquire", "db:a", "--holder", "ann", "--mode", "shared", "--json"]);
    home.json(&["acquire", "db:a", "--holder", "bob", "--mode", "shared", "--json"]);
    let held = home.run(&["who", "db:a"]);
    assert_eq!((held.code, held.output.lines().count()), (Some(0), 2));
    assert!(held.output.starts_with("ann (shared, fence 1, lease "), "{held:?}");
    assert_eq!(home.json(&["who", "db:a", "--json"])["leases"].as_array().unwrap().len(), 2);
}

#[test]
fn list_reads_all_pages_and_stops_when_its_reader_closes() {
    let home = TestHome::new();
    let mut client = home.client();
    // More than the server tells at once.
    for number in 0..1_005 {
        client.acquire(&format!("db:{number}"), 600_000, None).unwrap().held_lease();
    }
    assert_eq!(home.json(&["list", "--json"])["leases"].as_array().unwrap().len(), 1_005);
    assert_eq!(home.run(&["list"]).output.lines().count(), 1_006);
    assert_eq!(home.run(&["list", "--resource", "db:7"]).output.lines().count(), 2);
    assert_eq!(home.run(&["list", "--holder", "nobody"]).output, "No leases.\n");
    let mut list = home.command(&["list"]).spawn().unwrap();
    drop(list.stdout.take());
    let done = list.wait_with_output().unwrap();
    assert_eq!((done.status.code(), String::from_utf8(done.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn tables_have_no_escape_sequences_without_a_terminal() {
    let home = TestHome::new();
    home.json(&["acquire", "db:a", "--json"]);
    let list = home.run(&["list"]);
    assert!(list.output.starts_with("LEASE") && !list.output.contains('\x1b'), "{list:?}");
}

#[test]
fn explain_shows_the_same_as_text_and_json() {
    let home = TestHome::new();
    home.json(&["acquire", "db:a", "--holder", "ann", "--json"]);
    assert_eq!(home.run(&["acquire", "db:a", "--holder", "bob"]).code, Some(75));
    let explained = home.run(&["explain", "db:a"]);
    assert!(explained.output.contains("ann") && explained.output.contains("bob"), "{explained:?}");
    let explained = home.json(&["explain", "db:a", "--json"]);
    assert_eq!(explained["lastRefusal"]["holder"], "bob");
}

#[test]
fn watch_shows_past_and_live_events() {
    let home = TestHome::new();
    home.json(&["acquire", "db:a", "--holder", "ann", "--json"]);
    let output = std::fs::File::create(home.path("seen")).unwrap();
    let mut command = home.command(&["watch", "--resource", "db:b", "--json"]);
    let mut watching = command.stdout(output).spawn().unwrap();
    let past = std::fs::File::create(home.path("past")).unwrap();
    let mut command = home.command(&["watch", "--from", "1", "--resource", "db:a"]);
    let mut past = command.stdout(Stdio::from(past)).spawn().unwrap();
    let read = |name: &str| std::fs::read_to_string(home.path(name)).unwrap();
    wait_until("what was before is told", || {
        read("past").contains("lease.issued") && read("past").contains("ann")
    });
    let mut number = 0;
    wait_until("what happens is told", || {
        number += 1;
        home.run(&["acquire", "db:b", "--holder", &format!("bob-{number}")]);
        read("seen").contains("lease.issued")
    });
    let first: Value = serde_json::from_str(read("seen").lines().next().unwrap()).unwrap();
    assert_eq!(first["lease"]["resource"], "db:b");
    for process in [&mut watching, &mut past] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn local_commands_use_the_socket_without_configuration() {
    let home = TestHome::new();
    let local = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env_remove("TENURE_URL").env_remove("TENURE_TOKEN");
        command
    };
    let done = local(&["run", "--on", "db:a", "--", "echo", "it runs"]).output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "it runs\n");
    let unreachable = local(&["list"]).env("TENURE_SOCKET", "/nowhere/tenure.sock").output().unwrap();
    let errors = String::from_utf8(unreachable.stderr).unwrap();
    assert_eq!(unreachable.status.code(), Some(69), "{errors}");
    assert!(errors.contains("/nowhere/tenure.sock") && errors.contains("tenure serve"), "{errors}");
}

#[test]
fn token_is_limited_to_its_scopes_until_it_is_revoked() {
    let home = TestHome::new();
    let made = home.run(&["token", "create", "ci", "--scope", "leases:write", "--resource", "deploy:"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let secret = made.output.trim_end();
    assert!(
        secret.starts_with("tnr_") && !made.errors.contains(secret),
        "the secret alone goes to standard output"
    );
    let code =
        |arguments: &[&str]| home.command(arguments).env("TENURE_TOKEN", secret).status().unwrap().code();
    assert_eq!(code(&["run", "--on", "deploy:prod", "--quiet", "--", "true"]), Some(0));
    assert_eq!(code(&["acquire", "db:a"]), Some(77), "another prefix");
    assert_eq!(code(&["token", "list"]), Some(77), "another scope");
    let listed = home.run(&["token", "list"]);
    assert!(listed.output.contains("deploy:") && !listed.output.contains(secret), "{listed:?}");
    let listed = home.json(&["token", "list", "--json"]);
    let id = listed["tokens"][0]["id"].as_str().unwrap();
    assert_eq!(code(&["acquire", "deploy:prod", "--ttl", "1h"]), Some(0));
    let revoked = home.json(&["token", "revoke", id, "--json"]);
    assert_eq!(revoked["revokedLeases"], 1);
    assert_eq!(code(&["acquire", "deploy:test"]), Some(77));
    assert_eq!(home.run(&["who", "deploy:prod"]).code, Some(1));
}

#[test]
fn completions_and_manual_pages_cover_every_command() {
    let home = TestHome::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = home.run(&["completions", shell]).output;
        assert!(text.contains("transfer") && !text.contains("__watchdog"), "{shell}");
    }
    assert_eq!(home.run(&["completions", "man", "--to", "pages"]).code, Some(0));
    assert!(home.path("pages/tenure-run.1").exists() && home.path("pages/tenure-token-create.1").exists());
}
