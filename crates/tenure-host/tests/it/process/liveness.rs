//! Whether a process lives, with real ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tenure_core::kernel::{BootId, ProcessId};
use tenure_host::process::{
    self, Liveness, ProcessExitWatch, ancestors, descendants, is_descendant, liveness,
};

use crate::reexec;

/// A process that ends when its input does, so that none is left behind.
fn blocked_child() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn number(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Whether a process was seen to end, within this time.
fn ended(watch: &ProcessExitWatch, seconds: i64) -> bool {
    let mut watched = [PollFd::new(watch, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).unwrap() == 1
}

/// Waits until a child is over, but leaves it a zombie.
fn wait_for_its_end(child: &Child) {
    waitid(WaitId::Pid(number(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
}

// S4-13, S4-20
#[test]
fn a_killed_process_is_reported_and_a_zombie_is_dead() {
    let mut child = blocked_child();
    let process = process::of(child.id()).unwrap();
    let watch = ProcessExitWatch::of(&process).unwrap();
    assert_eq!(liveness(&process), Liveness::Alive);
    assert!(!ended(&watch, 0));
    kill_process(number(&child), Signal::KILL).unwrap();
    assert!(ended(&watch, 20), "its end was not seen");
    wait_for_its_end(&child);
    // Nobody has asked for its result yet, so it still has its pid.
    assert!(std::path::Path::new(&format!("/proc/{}", child.id())).exists());
    assert_eq!(liveness(&process), Liveness::Dead);
    assert!(ProcessExitWatch::of(&process).is_none() && ended(&watch, 0));
    child.wait().unwrap();
    assert_eq!(liveness(&process), Liveness::Dead);
    assert!(ProcessExitWatch::of(&process).is_none() && process::of(child.id()).is_err());
}

// S4-13
#[test]
fn a_stopped_process_is_suspended_until_it_resumes() {
    let mut child = blocked_child();
    let process = process::of(child.id()).unwrap();
    kill_process(number(&child), Signal::STOP).unwrap();
    waitid(WaitId::Pid(number(&child)), WaitIdOptions::STOPPED).unwrap();
    assert_eq!(liveness(&process), Liveness::Suspended);
    let watch = ProcessExitWatch::of(&process).unwrap();
    assert!(!ended(&watch, 0), "who stands still has not ended");
    kill_process(number(&child), Signal::CONT).unwrap();
    waitid(WaitId::Pid(number(&child)), WaitIdOptions::CONTINUED).unwrap();
    assert_eq!(liveness(&process), Liveness::Alive);
    drop(child.stdin.take());
    child.wait().unwrap();
}

// S4-20, S4-22
#[test]
fn a_reused_pid_is_a_different_process() {
    let own = process::own().unwrap();
    assert_eq!(liveness(&own), Liveness::Alive);
    let earlier = ProcessId { started: own.started - 1, ..own };
    let last_boot = ProcessId { boot: BootId::parse("00000000-0000-0000-0000-000000000000").unwrap(), ..own };
    let nonexistent = ProcessId { pid: u32::MAX, ..own };
    for other in [earlier, last_boot, nonexistent] {
        assert_eq!(liveness(&other), Liveness::Dead, "{other:?}");
        assert!(ProcessExitWatch::of(&other).is_none() && !other.is_same(&own));
    }
}

#[test]
fn own_process_id_round_trips_through_text() {
    let own = process::own().unwrap();
    assert_eq!(ProcessId::parse(&own.to_string()), Some(own));
    assert_eq!((own.pid, own.user), (std::process::id(), rustix::process::getuid().as_raw()));
    assert!(own.namespace > 0 && own.started > 0, "{own}");
}

/// The first thread has ended, others go on: the system shows such a process like a zombie.
#[test]
fn a_process_is_alive_while_any_thread_runs() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("threads");
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        #include <unistd.h>
        static pthread_t first;
        static void *other(void *nothing) {
            char byte;
            pthread_join(first, 0);
            write(1, "\n", 1);
            while (read(0, &byte, 1) > 0) {}
            _exit(0);
        }
        int main() {
            pthread_t thread;
            first = pthread_self();
            pthread_create(&thread, 0, other, 0);
            pthread_exit(0);
        }
    "#;
    let mut compiler = Command::new("cc");
    compiler.args(["-w", "-x", "c", "-pthread", "-o"]).arg(&program).arg("-").stdin(Stdio::piped());
    let mut compiling = compiler.spawn().unwrap();
    compiling.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    assert!(compiling.wait().unwrap().success());
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let process = process::of(child.id()).unwrap();
    assert_eq!(liveness(&process), Liveness::Alive);
    let watch = ProcessExitWatch::of(&process).unwrap();
    assert!(!ended(&watch, 0));
    drop(child.stdin.take());
    assert!(ended(&watch, 20));
    wait_for_its_end(&child);
    assert_eq!(liveness(&process), Liveness::Dead);
    child.wait().unwrap();
}

#[test]
fn ancestors_are_nearest_first_and_descendants_are_complete() {
    let script = "sh -c 'echo $$; read line; :'; :";
    let mut outer =
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(outer.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let leaf = process::of(line.trim().parse().unwrap()).unwrap();
    let (above, own) = (process::of(outer.id()).unwrap(), process::own().unwrap());
    let chain = ancestors(leaf.pid);
    assert_eq!(chain[..2], [above, own]);
    assert!(!chain.contains(&leaf));
    assert!(is_descendant(&leaf, &above) && is_descendant(&leaf, &own) && is_descendant(&above, &own));
    assert!(!is_descendant(&above, &leaf) && !is_descendant(&own, &own));
    let earlier = ProcessId { started: own.started - 1, ..own };
    assert!(!is_descendant(&leaf, &earlier) && descendants(&earlier).is_empty());
    assert!(descendants(&own).contains(&leaf.pid) && descendants(&above) == [leaf.pid]);
    drop(outer.stdin.take());
    outer.wait().unwrap();
    assert!(!is_descendant(&leaf, &own) && ancestors(u32::MAX).is_empty());
}

/// A daemon that has no descriptors left must not take from the living.
#[test]
fn an_unreadable_process_is_alive() {
    const NAME: &str = "process::liveness::an_unreadable_process_is_alive";
    if !reexec::is_inside() {
        return reexec::rerun(&["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"], NAME);
    }
    let mut child = blocked_child();
    let process = process::of(child.id()).unwrap();
    let mut all = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        all.push(file);
    }
    let (found, watch) = (liveness(&process), ProcessExitWatch::of(&process));
    drop(all);
    assert_eq!(found, Liveness::Alive);
    assert!(watch.is_none() && ProcessExitWatch::of(&process).is_some());
    drop(child.stdin.take());
    child.wait().unwrap();
}
