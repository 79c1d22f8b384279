//! What the audit sees of a tree in which agents are at work, and what it leaves alone.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tenure_server::FileSettings;
use tenure_testkit::event_stream::SseStream;
use tenure_testkit::files::{FileAgent, FilesApiServer};
use tenure_testkit::{open_event_stream, wait_until};

/// A stage that is watched: `one` has `a`.
struct Watched {
    stage: FilesApiServer,
    one: FileAgent,
    violation: SseStream,
    sentinels: usize,
}

/// A violation: the path, the session that did it, what was seen.
#[derive(Debug)]
struct Violation {
    path: String,
    session: Option<String>,
    owner: Option<String>,
    detail: String,
}

impl Watched {
    fn new() -> Self {
        let stage = FilesApiServer::start();
        git(&stage, &["add", "a", "b"]);
        git(&stage, &["commit", "--quiet", "--message", "first"]);
        let violation = open_event_stream(&stage.server, "/v1/events?type=file.violated", None);
        let mut one = FileAgent::start(&stage, "one");
        assert_eq!(one.acquire(None, &["a"]), "GRANTED");
        wait_until("the tree is watched", || trees(&stage)[0]["folders"].as_u64() > Some(0));
        Self { stage, one, violation, sentinels: 0 }
    }

    fn next(&mut self) -> Violation {
        let data = self.violation.expect("file.violated").data;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let file = &data["file"];
        let resource = text(&file["resource"]).unwrap_or_else(|| panic!("{data}"));
        Violation {
            path: resource.split_once('/').unwrap().1.to_owned(),
            session: text(&file["session"]),
            owner: text(&file["owner"]),
            detail: text(&data["detail"]).unwrap(),
        }
    }

    /// Everything that was told of what happened until now. Twice something happens that is told for certain, each time after all
    /// that was judged before.
    fn so_far(&mut self) -> Vec<Violation> {
        let mut found = Vec::new();
        for _ in 0..2 {
            self.sentinels += 1;
            let name = format!("sentinel-{}", self.sentinels);
            self.shell(&format!("echo x > {name}"));
            loop {
                let violation = self.next();
                if violation.path == name {
                    break;
                }
                if !violation.path.starts_with("sentinel-") {
                    found.push(violation);
                }
            }
        }
        found
    }

    /// Somebody whom nobody knows.
    fn shell(&self, script: &str) {
        let mut shell = Command::new("sh");
        assert!(shell.args(["-c", script]).current_dir(self.stage.file("")).status().unwrap().success());
    }
}

fn trees(stage: &FilesApiServer) -> Value {
    stage.request_as_human("GET /v1/files", &json!({})).json()["audit"].clone()
}

fn git(stage: &FilesApiServer, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A Person", "-c", "user.email=person@example.com"]).args(arguments);
    let run = git.current_dir(stage.file("")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

// S4-15
#[test]
fn a_change_without_a_lease_is_a_violation_without_owner_or_session() {
    let mut watched = Watched::new();
    watched.shell("echo x >> b");
    let violation = watched.next();
    assert_eq!(
        (&*violation.path, &violation.session, &violation.owner),
        ("b", &None, &None),
        "{violation:?}"
    );
    assert!(violation.detail.contains("no session had it"), "{violation:?}");
    // However it is changed: in new folders, by links, by being moved and removed.
    watched.shell("mkdir -p new/deep && echo x > new/deep/file");
    watched.shell("ln -s a link");
    watched.shell("chmod +x b && mv b c && rm c");
    let mut paths: Vec<String> = watched.so_far().into_iter().map(|violation| violation.path).collect();
    // Whether it is told a second time depends on how long ago that was.
    paths.retain(|path| path != "b");
    paths.sort();
    paths.dedup();
    assert_eq!(paths, ["c", "link", "new/deep/file"]);
}

// S4-15
#[test]
fn changes_by_the_owner_before_and_right_after_its_release_are_no_violations() {
    let mut watched = Watched::new();
    watched.one.run_shell_line(&format!("cd {}", watched.stage.file("").display()));
    watched.one.run_shell_line("echo x >> a");
    watched.one.run_shell_line("exec 7>> a; echo y >&7; exec 7>&-");
    // As editors write: beside it, and then over it.
    watched.one.run_shell_line("echo z > a.tmp.4242 && mv a.tmp.4242 a");
    watched.one.run_shell_line("echo z > a-new && mv a-new a");
    assert_eq!(watched.one.commit(&["a"]), json!(["a"]));
    watched.one.run_shell_line("echo right after >> a");
    let violations = watched.so_far();
    assert!(violations.is_empty(), "{violations:?}");
}

// S4-15
#[test]
fn changes_by_git_and_of_ignored_files_are_no_violations() {
    let mut watched = Watched::new();
    git(&watched.stage, &["checkout", "--quiet", "-b", "other"]);
    fs::write(watched.stage.file(".git/info/exclude"), "*.log\nbuild/\n").unwrap();
    watched.shell("echo x > x.log; mkdir build; echo x > build/y; echo x > tmp.Ab3xYz; echo x > b.Ab3xYz");
    // Who commits has changed `b` before, and that is told. What git writes then is not.
    watched.shell("echo two > b");
    assert_eq!(watched.next().path, "b");
    git(&watched.stage, &["commit", "--quiet", "--all", "--message", "second"]);
    let names: Vec<String> = (0..50).map(|number| format!("many-{number}")).collect();
    let blob = "blob=$(git hash-object -w --stdin < b)";
    let index: Vec<String> =
        names.iter().map(|name| format!("git update-index --add --cacheinfo 100644,$blob,{name}")).collect();
    watched.shell(&format!("{blob}; {}", index.join(" && ")));
    git(&watched.stage, &["commit", "--quiet", "--message", "many"]);
    git(&watched.stage, &["checkout", "--quiet", "--", "."]);
    assert!(names.iter().all(|name| watched.stage.file(name).exists()));
    git(&watched.stage, &["checkout", "--quiet", "HEAD~2"]);
    assert!(!watched.stage.file("many-1").exists());
    git(&watched.stage, &["checkout", "--quiet", "other"]);
    let violations = watched.so_far();
    assert!(violations.is_empty(), "{violations:?}");
}

/// Somebody who opens a file, writes, and stays.
fn writer_that_stays_open(stage: &FilesApiServer, file: &str) -> Child {
    let script = format!("exec 7>> {file}; echo x >&7; echo ready; read line");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(stage.file("")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut line_read = String::new();
    BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut line_read).unwrap();
    assert_eq!(line_read, "ready\n");
    shell
}

// S4-15
#[test]
fn a_process_that_holds_an_owned_file_open_is_named_in_the_violation() {
    let mut watched = Watched::new();
    let mut shell = writer_that_stays_open(&watched.stage, "a");
    let violation = watched.next();
    assert_eq!((&*violation.path, &violation.session), ("a", &None), "{violation:?}");
    assert!(violation.owner.as_ref().unwrap().starts_with("claude/one@"), "{violation:?}");
    assert!(violation.detail.contains(&format!("bash (pid {})", shell.id())), "{violation:?}");
    drop(shell.stdin.take());
    shell.wait().unwrap();
}

// S4-15
#[test]
fn a_background_process_of_the_owner_is_reported_without_blame() {
    let mut watched = Watched::new();
    watched.one.run_shell_line(&format!("cd {}", watched.stage.file("").display()));
    let hold = watched.stage.file(".git/hold");
    watched.one.run_shell_line(&format!("mkfifo {}", hold.display()));
    watched.one.run_shell_line("(setsid sh -c 'exec 7>> a; echo x >&7; read line < .git/hold' &)");
    let violation = watched.next();
    assert_eq!((&*violation.path, &violation.session), ("a", &None), "{violation:?}");
    assert!(
        violation.detail.contains("not known") && !violation.detail.contains("did not start"),
        "{violation:?}"
    );
    fs::write(hold, "done").unwrap();
}

// S4-15
#[test]
fn a_change_by_another_agent_is_reported_with_its_session() {
    let mut watched = Watched::new();
    let mut two = FileAgent::start(&watched.stage, "two");
    assert_eq!(two.acquire(None, &["b"]), "GRANTED");
    two.run_shell_line(&format!("cd {}; exec 7>> a; echo x >&7", watched.stage.file("").display()));
    let violation = watched.next();
    assert_eq!(violation.path, "a");
    assert!(violation.owner.unwrap().starts_with("claude/one@"));
    assert_eq!(violation.session.as_deref(), Some("two"));
    // Nor has it asked for this one.
    two.run_shell_line("exec 8> other; echo x >&8");
    let violation = watched.next();
    assert_eq!((&*violation.path, &violation.owner), ("other", &None), "{violation:?}");
    assert_eq!(violation.session.as_deref(), Some("two"));
}

#[test]
fn watched_trees_are_listed_and_none_if_the_audit_is_off() {
    let watched = Watched::new();
    let root = fs::canonicalize(watched.stage.file("")).unwrap();
    let expected = json!([{"root": root, "folders": 1, "unwatched": 0, "missed": 0}]);
    assert_eq!(trees(&watched.stage), expected);
    fs::create_dir_all(watched.stage.file("x/y")).unwrap();
    wait_until("new folders are watched", || trees(&watched.stage)[0]["folders"] == json!(3));

    let stage = FilesApiServer::start_with(FileSettings { audit: false, ..FileSettings::default() });
    let mut agent = FileAgent::start(&stage, "one");
    assert_eq!(agent.acquire(None, &["a"]), "GRANTED");
    assert_eq!(trees(&stage), json!([]));
}
