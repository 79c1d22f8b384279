//! What is told where not everything can be watched.

use std::fs;
use std::process::Command;

use tenure_host::paths::work_tree_of;
use tenure_host::watch::{TreeWatch, WatchCoverage};

use crate::git::support::Repository;

/// How many folders the system lets this very program watch, when it is run as a child.
const LIMITED: &str = "TENURE_TEST_WATCHES";

fn with_folders(count: usize) -> Repository {
    let repository = Repository::new();
    (0..count).for_each(|number| repository.write(format!("folder-{number}/file"), "text"));
    repository
}

#[test]
fn folders_beyond_the_limit_are_counted_and_watched_later() {
    let repository = with_folders(8);
    let tree = work_tree_of(&repository.root).unwrap().unwrap();
    let mut watch = TreeWatch::open_with_limit(&tree, 4).unwrap();
    assert_eq!(watch.coverage(), WatchCoverage { folders: 4, beyond_limit: 5, ..WatchCoverage::default() });
    (0..8).filter(|number| number % 2 == 0).for_each(|number| {
        fs::remove_dir_all(repository.root.join(format!("folder-{number}"))).unwrap();
    });
    watch.read();
    watch.rescan();
    let coverage = watch.coverage();
    assert_eq!((coverage.folders, coverage.beyond_limit), (4, 1), "{coverage:?}");
}

/// In a namespace of its own, where the system's own limit is small.
#[test]
fn the_system_watch_limit_is_not_fatal() {
    if let Ok(tree) = std::env::var(LIMITED) {
        let watch = TreeWatch::open(&work_tree_of(tree.as_ref()).unwrap().unwrap()).unwrap();
        let coverage = watch.coverage();
        println!("{} {}", coverage.folders, coverage.beyond_limit);
        return;
    }
    let repository = with_folders(8);
    let script = r#"echo 5 > /proc/sys/user/max_inotify_watches && exec "$0" --exact --nocapture watch_limits::the_system_watch_limit_is_not_fatal"#;
    let program = std::env::current_exe().unwrap();
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(program)
        .env(LIMITED, &repository.root)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    if !output.contains("running 1 test") {
        eprintln!("skipped: this system gives no namespaces: {}", String::from_utf8_lossy(&run.stderr));
        return;
    }
    // One watch is git's folder.
    assert!(run.status.success() && output.lines().any(|line| line == "4 5"), "{output}");
}

// S4-15
#[test]
fn queue_overflow_is_counted_and_new_folders_are_still_watched() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    if limit > 100_000 {
        eprintln!("skipped: {limit} events would have to happen");
        return;
    }
    let repository = Repository::new();
    let mut watch = TreeWatch::open(&work_tree_of(&repository.root).unwrap().unwrap()).unwrap();
    let (one, other) = (repository.root.join("one"), repository.root.join("other"));
    for _ in 0..limit {
        fs::write(&one, "").unwrap();
        fs::write(&other, "").unwrap();
    }
    repository.write("late/file", "text");
    while !watch.read().is_drained {}
    let coverage = watch.coverage();
    assert_eq!((coverage.missed, coverage.folders), (1, 2), "{coverage:?}");
    repository.write("late/file", "more");
    assert!(!watch.read().changes.is_empty());
}
