//! Ways in which a program changes a file.

/// How one process changes the file `$F` so that the line `$L` is in it afterwards, and nothing else is lost. Each is one command
/// under a guard of its own.
pub const SCRIPTS: &[(&str, &str)] = &[
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
pub const STATIC: &str = r#"
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
