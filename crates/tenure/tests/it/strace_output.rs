//! What the system tells of the calls that a process and all that it starts make: strace, which knows nothing of leases.

use std::fs;
use std::path::{Path, PathBuf};

/// Runs `$SCRIPT` in a shell, and writes each process's calls that may change a file into a file of its own, `$TRACE.PID`: with when
/// each began and how long it took, and with the paths of descriptors.
pub const TRACED: &str = "exec strace -ff -qq -y -ttt -T -o \"$TRACE\" \
     -e trace=open,openat,openat2,creat,truncate,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,\
     chmod,fchmodat,mknod,mknodat sh -c \"$SCRIPT\"";

/// A call that changed a file of the folder.
#[derive(Debug)]
pub struct TracedChange {
    /// By its name in the folder.
    pub file: String,
    /// When it was made, in seconds since 1970.
    pub began_at: f64,
    /// When it came back.
    pub ended: f64,
    /// As it was told.
    pub call: String,
}

/// What the processes of this trace changed in this folder.
pub fn traced_changes(traces: &Path, name: &str, folder: &Path) -> Vec<TracedChange> {
    let beginning = format!("{name}.");
    let own = fs::read_dir(traces).unwrap().map(|entry| entry.unwrap());
    let own = own.filter(|entry| entry.file_name().to_str().unwrap().starts_with(&beginning));
    let texts = own.map(|entry| fs::read_to_string(entry.path()).unwrap());
    texts.flat_map(|text| text.lines().flat_map(|line| changes(line, folder)).collect::<Vec<_>>()).collect()
}

/// What one line says: `1794968213.760693 unlinkat(4</tree/crowd>, "f000", 0) = 0 <0.000089>`.
fn changes(line: &str, folder: &Path) -> Vec<TracedChange> {
    let parts = line.split_once(' ').and_then(|(at, call)| {
        let (name, rest) = call.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        Some((at.parse::<f64>().ok()?, name, arguments, result))
    });
    // What is no call is a signal or an end.
    let Some((began_at, name, arguments, result)) = parts else { return Vec::new() };
    if result.starts_with("-1") || result.starts_with('?') {
        return Vec::new();
    }
    let took = result.rsplit_once('<').and_then(|(_, took)| took.strip_suffix('>')?.parse::<f64>().ok());
    let ended = began_at + took.unwrap_or_else(|| panic!("how long did it take? {line}"));
    let paths = if name.starts_with("open") || name == "creat" {
        let flags = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"];
        let writes = name == "creat" || flags.iter().any(|flag| arguments.contains(flag));
        // The descriptor that was made says best what it is.
        let opened = result.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(path, _)| path);
        opened.filter(|_| writes).map(PathBuf::from).into_iter().collect()
    } else {
        names(arguments, folder)
    };
    let own = paths.iter().filter(|path| path.parent() == Some(folder));
    let name_of = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    // Beside the files there are those that are written to be renamed: their names are longer.
    let is_file = |file: &String| file.len() == 4 && file.starts_with('f');
    own.map(name_of)
        .filter(is_file)
        .map(|file| TracedChange { file, began_at, ended, call: line.to_owned() })
        .collect()
}

/// The paths among the arguments of a call: `4</tree/crowd>, "f000"`. One that nobody can place is taken to be in the folder, and
/// in the one above it too: those are where the processes work.
fn names(arguments: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let unplaced: Vec<&Path> = folder.ancestors().take(2).collect();
    let (mut rest, mut above) = (arguments, unplaced.clone());
    while let Some(next) = rest.find(['<', '"']) {
        let closing = if rest[next..].starts_with('<') { '>' } else { '"' };
        let (text, after) = rest[next + 1..].split_once(closing).expect("it is closed");
        if closing == '>' {
            above = vec![Path::new(text)];
        } else {
            found.extend(above.iter().map(|above| above.join(text)));
            above = unplaced.clone();
        }
        rest = after;
    }
    // A whole path is the same from everywhere.
    found.dedup();
    found
}

#[test]
fn trace_lines_are_parsed_into_changed_files() {
    let folder = Path::new("/t/crowd");
    let files = |line: &str| -> Vec<String> {
        changes(line, folder).into_iter().map(|changed| changed.file).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(files(r#"1.5 unlinkat(4</t/crowd>, "f000", 0) = 0 <0.25>"#), ["f000"]);
    assert_eq!(files(r#"1.5 unlinkat(4</t/other>, "f000", 0) = 0 <0.25>"#), none);
    assert_eq!(files(r#"1.5 unlink("/t/crowd/f000") = -1 EBUSY (Device or resource busy) <0.25>"#), none);
    assert_eq!(files(r#"1.5 rename(".f001.x", "f001") = 0 <0.25>"#), ["f001"]);
    assert_eq!(files(r#"1.5 rename("crowd/f001~2", "crowd/f001") = 0 <0.25>"#), ["f001"]);
    assert_eq!(files(r#"1.5 unlink("/t/crowd/f001") = 0 <0.25>"#), ["f001"]);
    let renamed = r#"1.5 renameat2(AT_FDCWD</t>, "/t/crowd/f001", AT_FDCWD</t>, "/t/crowd/f002", RENAME_NOREPLACE) = 0 <0.25>"#;
    assert_eq!(files(renamed), ["f001", "f002"]);
    let opened = r#"1.5 openat(AT_FDCWD</t>, "/proc/self/fd/9/f000", O_WRONLY|O_APPEND, 0666) = 3</t/crowd/f000> <0.25>"#;
    assert_eq!(files(opened), ["f000"]);
    assert_eq!(files(&opened.replace("O_WRONLY|O_APPEND", "O_RDONLY")), none);
    assert_eq!(files("1.5 +++ exited with 0 +++"), none);
    let times = changes(opened, folder).remove(0);
    assert_eq!((times.began_at, times.ended), (1.5, 1.75));
}
