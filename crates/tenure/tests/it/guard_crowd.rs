//! Many processes change many files through the gate: nobody writes what it does not hold, and no line is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::client::now;
use crate::hook_stage::Stage;

/// How one process changes the file `$F` so that the line `$L` is in it afterwards, and nothing else is lost. Each is one command
/// under a guard of its own.
const WAYS: &[(&str, &str)] = &[
    ("append", r#"echo "$L" >> "$F""#),
    ("tee", r#"echo "$L" | tee -a "$F" > /dev/null"#),
    ("sed", r#"sed -i "\$a $L" "$F""#),
    ("sed, one process", r#"exec sed -i "\$a $L" "$F""#),
    ("dd", r#"echo "$L" | dd of="$F" oflag=append conv=notrunc status=none"#),
    ("cp", r#"t=$(mktemp) && cp "$F" "$t" && echo "$L" >> "$t" && cp "$t" "$F""#),
    ("mv", r#"cp "$F" "$F.tmp.$$" && echo "$L" >> "$F.tmp.$$" && mv -f "$F.tmp.$$" "$F""#),
    ("ln", r#"t=$F.$$; cp "$F" "$t" && echo "$L" >> "$t" && ln -f "$t" "$F" && rm -f "$t""#),
    ("truncate", r#"t=$(cat "$F"; echo "$L") && truncate -s 0 "$F" && echo "$t" >> "$F""#),
    ("rewritten by the shell", r#"t=$(cat "$F") && { echo "$t"; echo "$L"; } > "$F""#),
    // Perl ends well also if it found no file, or could not write it.
    ("perl", r#"perl -pi -e 'print "$ENV{L}\n" if $. == 1; END { $? ||= !$. }' "$F""#),
    (
        "python",
        r#"python3 -c 'import os; f = os.environ["F"]; t = open(f).read(); open(f, "w").write(t + os.environ["L"] + "\n")'"#,
    ),
    (
        "python, an editor",
        r#"python3 -c 'import os, tempfile; f = os.environ["F"]; t = open(f).read(); d, n = tempfile.mkstemp(dir=os.path.dirname(f)); os.write(d, (t + os.environ["L"] + "\n").encode()); os.fsync(d); os.rename(n, f)'"#,
    ),
    (
        "python, a descriptor of the folder",
        r#"python3 -c 'import os; d = os.open(os.path.dirname(os.environ["F"]), os.O_RDONLY); n = os.path.basename(os.environ["F"]); os.write(os.open(n, os.O_WRONLY | os.O_APPEND, dir_fd=d), (os.environ["L"] + "\n").encode())'"#,
    ),
    ("/proc/self/fd", r#"exec 9< "$(dirname "$F")"; echo "$L" >> "/proc/self/fd/9/$(basename "$F")""#),
    (
        "threads",
        r#"python3 -c 'import os, threading
def w():
  with open(os.environ["F"], "a") as f: f.write(os.environ["L"] + "\n")
e = []
threading.excepthook = lambda x: e.append(x)
t = threading.Thread(target=w); t.start(); t.join(); exit(len(e))'"#,
    ),
    ("deep below", r#"sh -c 'sh -c "sh -c \"sh -c '\''echo \\\$L >> \\\$F'\''\""'"#),
    ("a static program", r#""$STATIC" "$F" "$L""#),
    (
        "git apply",
        r#"t=$F.$$.tmp; { cat "$F"; echo "$L"; } > "$t"; git diff --no-index --no-prefix "$F" "$t" | sed "s,^+++ .*,+++ $R," | sed "s,^--- .*,--- $R," | git apply -p0 --unidiff-zero --recount --whitespace=nowarn; c=$?; rm -f "$t"; exit $c"#,
    ),
    (
        "rsync",
        r#"t=$(mktemp -d) && cp "$F" "$t" && echo "$L" >> "$t/$(basename "$F")" && rsync -q --ignore-times "$t/$(basename "$F")" "$F""#,
    ),
    (
        "tar",
        r#"t=$(mktemp -d) && n=$(basename "$F") && cp "$F" "$t" && echo "$L" >> "$t/$n" && tar -C "$t" -cf "$t/t.tar" "$n" && tar -C "$(dirname "$F")" -xf "$t/t.tar""#,
    ),
];

/// Appends its second word, in one `write`, by `vfork` of itself.
const STATIC: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count == 3) {
        char *again[] = {words[0], words[1], words[2], "child", 0};
        int status = 1;
        pid_t child = vfork();
        if (child == 0) { execv("/proc/self/exe", again); _exit(1); }
        waitpid(child, &status, 0);
        return status != 0;
    }
    char line[256];
    int length = strlen(strcat(strcpy(line, words[2]), "\n"));
    int file = open(words[1], O_WRONLY | O_APPEND);
    return file < 0 || write(file, line, length) != length;
}
"#;

const PROCESSES: usize = 20;
const FILES: usize = 200;

/// A crowd for so long.
fn crowd(duration: Duration, files: usize) {
    let stage = Stage::new();
    stage.configure("[files]\nretry_seconds = 1\n");
    fs::create_dir(stage.repository("crowd")).unwrap();
    let names: Vec<String> = (0..files).map(|number| format!("crowd/f{number:03}")).collect();
    names.iter().for_each(|name| fs::write(stage.repository(name), "begin\n").unwrap());
    fs::write(stage.path("static.c"), STATIC).unwrap();
    let said = stage.shell("cc -static -o ../static ../static.c && git add . && git commit -qm crowd && \"$TENURE\" guard -- true");
    assert_eq!(said.code, Some(0), "{said:?}");
    let end = now() + duration;
    let workers = (0..PROCESSES).map(|worker| {
        let stage = &stage;
        let names = &names;
        move || work(stage, names, worker, end)
    });
    let written: Vec<Vec<Attempt>> = std::thread::scope(|scope| {
        workers
            .map(|work| scope.spawn(work))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    check(&stage, &names, &written.concat());
}

/// One try to write a line.
#[derive(Debug, Clone)]
struct Attempt {
    file: String,
    line: String,
    way: &'static str,
    is_done: bool,
    errors: String,
}

/// Changes one file after the other, each by another way, until it is time.
fn work(stage: &Stage, names: &[String], worker: usize, end: std::time::Instant) -> Vec<Attempt> {
    let mut done = Vec::new();
    let mut number = worker.wrapping_mul(7919);
    while now() < end {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (file, (way, script)) = (&names[(number >> 33) % names.len()], WAYS[(number >> 17) % WAYS.len()]);
        let line = format!("w{worker}-{}", done.len());
        // By its first words, the ledger tells whose session it was.
        let script = format!(": {line}; {script}");
        let mut command = stage.shell_command("exec \"$TENURE\" guard -- sh -c \"$SCRIPT\"");
        command.env("SCRIPT", script);
        command
            .env("L", &line)
            .env("F", stage.repository(file))
            .env("R", file)
            .env("STATIC", stage.path("static"));
        command.env("TMPDIR", stage.path(""));
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        done.push(Attempt { file: file.clone(), line, way, is_done: output.status.success(), errors });
    }
    done
}

fn check(stage: &Stage, names: &[String], attempts: &[Attempt]) {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for attempt in attempts {
        let count = counts.entry(attempt.way).or_default();
        if attempt.is_done { count.0 += 1 } else { count.1 += 1 }
    }
    let late = attempts.iter().filter(|attempt| attempt.errors.contains("after this command began")).count();
    eprintln!(
        "done and refused by way: {counts:?}; of these, {late} were refused because they had read before"
    );
    let content: BTreeMap<&String, BTreeSet<String>> = names
        .iter()
        .map(|name| {
            let text = fs::read_to_string(stage.repository(name)).unwrap_or_default();
            (name, text.lines().map(str::to_owned).collect())
        })
        .collect();
    let held = held(stage);
    for attempt in attempts {
        let is_there = content[&attempt.file].contains(&attempt.line);
        assert!(
            !attempt.is_done || is_there,
            "a line is lost: {attempt:?}; who held it then: {:?}",
            after(attempt, &held, attempts)
        );
        // Some ways remove a file before they make it anew: whoever looks in between finds none.
        let is_explained = attempt.errors.contains("tenure: ") || attempt.errors.contains("No such file");
        assert!(attempt.is_done || is_explained, "it failed without a reason: {attempt:?}");
    }
    for (way, (done, _)) in &counts {
        assert!(*done > 0, "{way} never got through");
    }
    assert!(content.iter().all(|(_, lines)| lines.contains("begin")));
    for attempt in attempts.iter().filter(|attempt| content[&attempt.file].contains(&attempt.line)) {
        let is_held = held.contains(&(attempt.file.clone(), attempt.line.clone()));
        assert!(is_held, "it was written by somebody who did not hold it: {attempt:?}");
    }
}

/// Who held the file of this attempt next, for people who look for whoever undid it.
fn after(attempt: &Attempt, held: &[(String, String)], attempts: &[Attempt]) -> Vec<String> {
    let next =
        held.iter().filter(|(file, _)| *file == attempt.file).skip_while(|(_, line)| *line != attempt.line);
    let way = |line: &String| {
        attempts.iter().find(|other| other.line == *line).map(|other| (other.way, other.is_done))
    };
    next.take(4).map(|(_, line)| format!("{line}: {:?}", way(line))).collect()
}

/// Which line's process held which file, by the ledger and in its order; which shows too that no file had two owners at once.
fn held(stage: &Stage) -> Vec<(String, String)> {
    let said = stage.run(&["log", "--json"]);
    assert_eq!(said.code, Some(0), "{:?}", said.errors);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // By their names: which line a session was for, which resource a lease is on, who has a resource.
    let (mut lines, mut leases, mut owners) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut held = Vec::new();
    for event in said.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let (file, lease) = (&event["file"], &event["lease"]);
        match event["type"].as_str().unwrap() {
            "file.began" => {
                let task = text(&file["task"]);
                let line = task.strip_prefix("sh -c : ").and_then(|rest| rest.split(';').next());
                lines.insert(text(&file["id"]), line.unwrap_or_default().to_owned());
            }
            "lease.issued" => {
                let (id, resource, holder) =
                    (text(&lease["id"]), text(&lease["resource"]), text(&lease["holder"]));
                let before = owners.insert(resource.clone(), holder.clone());
                assert_eq!(before, None, "two owners at once: {event}");
                let path = resource.split_once('/').map(|(_, path)| path.to_owned()).unwrap_or_default();
                held.push((path, lines[&holder].clone()));
                leases.insert(id, resource);
            }
            "lease.released" | "lease.expired" | "lease.revoked" => {
                let resource = leases.remove(&text(&lease["id"])).unwrap_or_else(|| panic!("{event}"));
                owners.remove(&resource);
            }
            _ => {}
        }
    }
    held
}

// S4-15, S4-55
#[test]
fn twenty_processes_lose_no_line_and_write_nothing_that_they_do_not_hold() {
    crowd(Duration::from_secs(20), 12);
}

#[test]
fn long_twenty_processes_and_two_hundred_files_for_a_minute() {
    crowd(Duration::from_secs(60), FILES);
}
