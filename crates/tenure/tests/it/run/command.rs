//! `tenure run`: what the command gets, and what comes back from it.

use tenure_testkit::{TestHome, read_or_empty, wait_until};

#[test]
fn exit_code_and_output_of_the_command_are_passed_on() {
    let home = TestHome::new();
    let done = home
        .command(&["run", "--on", "db:a", "--", "sh", "-c", "echo out; echo err >&2; exit 7"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(7));
    assert_eq!((done.stdout.as_slice(), done.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(home.run(&["run", "--on", "db:a", "--", "true"]).code, Some(0));
    assert_eq!(
        home.run_command_under_lease("db:a", &[], "kill -KILL $$").status().unwrap().code(),
        Some(137)
    );
}

#[test]
fn command_knows_its_lease_but_not_the_lease_token() {
    let home = TestHome::new();
    let done = home.run(&["run", "--on", "db:a", "--on", "db:b", "--", "env"]);
    let value = |name: &str| done.output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    assert_eq!(
        (value("TENURE_FENCE"), value("TENURE_RESOURCE")),
        (Some("1,2"), Some("db:a,db:b")),
        "{done:?}"
    );
    let ids: Vec<&str> = value("TENURE_LEASE").unwrap().split(',').collect();
    assert!(ids[0].ends_with("-1") && ids[1].ends_with("-2"), "{ids:?}");
    assert!(value("TENURE_URL").is_some(), "it may be a client itself");
    assert_eq!(value("TENURE_LEASE_TOKEN"), None);
    // With the token of requests taken out of the environment, none is left that a secret could be.
    let long = |line: &&str| {
        line.split_once('=').is_some_and(|(name, value)| name != "TENURE_TOKEN" && value.len() > 40)
    };
    assert_eq!(done.output.lines().find(long), None);
}

#[test]
fn lease_is_held_while_the_command_runs_and_released_with_its_result() {
    let home = TestHome::new();
    let command = home.start_under_lease(
        "db:a",
        &["--holder", "ann", "--label", "why=test"],
        "until [ -e go ]; do sleep 0.01; done; exit 1",
    );
    let held = home.json(&["list", "--json"]);
    let lease = &held["leases"][0];
    assert_eq!((&lease["resource"], &lease["holder"]), (&"db:a".into(), &"ann".into()));
    assert_eq!(lease["labels"]["why"], "test");
    std::fs::write(home.path("go"), "").unwrap();
    assert_eq!(command.end().code, Some(1));
    assert_eq!(home.run(&["run", "--on", "db:b", "--", "true"]).code, Some(0));
    let ended = home.json(&["list", "--all", "--json"]);
    let ends: Vec<_> =
        ended["leases"].as_array().unwrap().iter().map(|lease| lease["end"].as_str().unwrap()).collect();
    assert_eq!(ends, ["ABORTED", "COMPLETED"]);
}

#[test]
fn run_without_wait_fails_at_once_and_with_wait_is_granted_next() {
    let home = TestHome::new();
    let first = home.start_under_lease("db:a", &["--holder", "ann"], "until [ -e go ]; do sleep 0.01; done");
    let refused = home.run(&["run", "--on", "db:a", "--no-wait", "--", "touch", "ran"]);
    assert_eq!(refused.code, Some(75));
    assert!(refused.errors.contains("db:a") && refused.errors.contains("ann"), "{refused:?}");
    assert_eq!(home.run(&["run", "--on", "db:a", "--wait", "50ms", "--", "touch", "ran"]).code, Some(75));
    assert!(!home.path("ran").exists());
    let second = home.run_command_under_lease("db:a", &[], "echo second").spawn().unwrap();
    wait_until("the second one waits", || {
        home.json(&["list", "--json"])["leases"][0]["recall"]["waiting"] == 1
    });
    std::fs::write(home.path("go"), "").unwrap();
    assert_eq!(first.end().code, Some(0));
    let second = second.wait_with_output().unwrap();
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(0), &b"second\n"[..]));
}

#[test]
fn unrunnable_command_acquires_no_lease() {
    let home = TestHome::new();
    std::fs::write(home.path("plain"), "").unwrap();
    for (command, code) in [("no-such-command", 127), ("./plain", 126), ("./nowhere", 127)] {
        let done = home.run(&["run", "--on", "db:a", "--", command]);
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.errors.contains(command), "{done:?}");
    }
    // An interpreter that is not there is found out only by starting it.
    std::fs::write(home.path("script"), "#!/no/such/interpreter\n").unwrap();
    let path = home.path("script");
    assert!(std::process::Command::new("chmod").arg("+x").arg(path).status().unwrap().success());
    assert_eq!(home.run(&["run", "--on", "db:a", "--", "./script"]).code, Some(127));
    assert_eq!(home.json(&["list", "--all", "--json"])["leases"].as_array().unwrap().len(), 1);
    assert_eq!(home.run(&["who", "db:a"]).code, Some(1), "it was given back");
}

#[test]
fn own_failures_have_distinct_exit_codes() {
    let home = TestHome::new();
    let code = |arguments: &[&str]| home.run(arguments).code;
    assert_eq!(code(&["run", "--on", "db:a"]), Some(64), "no command");
    assert_eq!(code(&["run", "--", "true"]), Some(64), "no resource");
    assert_eq!(code(&["run", "--on", "db:a", "--ttl", "30", "--", "true"]), Some(64), "no unit");
    assert_eq!(code(&["run", "--on", "db:a", "--ttl", "1ms", "--", "true"]), Some(64), "too short");
    assert_eq!(code(&["run", "--on", "db:a", "--ttl", "4s", "--kill-after", "3s", "--", "true"]), Some(64));
    let mut denied = home.command(&["run", "--on", "db:a", "--", "true"]);
    assert_eq!(denied.env("TENURE_TOKEN", "wrong").status().unwrap().code(), Some(77));
    let mut away = home.command(&["run", "--on", "db:a", "--", "true"]);
    let away = away.env("TENURE_URL", "http://127.0.0.1:1").output().unwrap();
    let errors = String::from_utf8(away.stderr).unwrap();
    assert_eq!(away.status.code(), Some(69), "{errors}");
    assert!(errors.contains("127.0.0.1:1") && errors.contains("tenure serve"), "{errors}");
}

#[test]
fn signals_reach_the_command_and_its_exit_code_is_returned() {
    let home = TestHome::new();
    for (name, code) in
        [("INT", 130), ("TERM", 143), ("HUP", 129), ("QUIT", 131), ("USR1", 138), ("USR2", 140)]
    {
        let command = home.start_under_lease("db:a", &[], "sleep 60 & wait");
        command.signal(name);
        assert_eq!(command.end().code, Some(code), "{name}");
    }
    let script = "trap 'echo heard >> said; exit 5' TERM; while :; do sleep 0.01; done";
    let command = home.start_under_lease("db:a", &[], script);
    command.signal("TERM");
    let done = command.end();
    assert_eq!((done.code, read_or_empty(&home.path("said")).as_str()), (Some(5), "heard\n"), "heard once");
    assert_eq!(home.run(&["who", "db:a"]).code, Some(1), "it was given back");
}

#[test]
fn ignored_signals_stay_ignored_for_the_command() {
    let home = TestHome::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let script =
        "trap '' HUP; exec \"$0\" run --on db:a -- sh -c 'kill -HUP $$; kill -HUP $PPID; echo alive'";
    let mut shell = std::process::Command::new("sh");
    let environment = home.command(&[]);
    shell.args(["-c", script, tenure]).env_clear();
    shell.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "alive\n");
}

#[test]
fn interrupted_waiter_leaves_the_queue() {
    let home = TestHome::new();
    let held = home.client().acquire("db:a", 60_000, None).unwrap().held_lease();
    let mut waiting = home.run_command_under_lease("db:a", &[], "touch ran");
    let waiting = waiting.spawn().unwrap();
    let mut client = home.client();
    let mut waiting_count = move || client.show(&held.id).unwrap().body["lease"]["recall"]["waiting"].clone();
    wait_until("it waits", || waiting_count() == 1);
    tenure_testkit::signal(waiting.id(), "INT");
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(130));
    wait_until("nobody waits any more", || waiting_count().is_null());
    assert!(!home.path("ran").exists());
}
