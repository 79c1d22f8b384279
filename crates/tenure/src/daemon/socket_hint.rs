//! Where the server of a ledger listens, written down beside the ledger.
//!
//! By itself a server listens in the folder that `XDG_RUNTIME_DIR` names, and not everybody has that variable: a terminal has
//! it, `su`, `cron` and many a container do not. An agent without it would look elsewhere, find nobody, start a second
//! server, and that one may not have the ledger. So whoever finds nobody looks here first.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::start::is_listening;

const MAX_BYTES: usize = 4096;

/// Writes down that the server of the ledger in `data` listens on `socket`.
pub fn write(data: &Path, socket: &Path) -> io::Result<()> {
    let socket = std::path::absolute(socket)?;
    let hint = hint_path(data);
    let mut temporary = hint.clone().into_os_string();
    temporary.push(format!(".{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(socket.as_os_str().as_encoded_bytes())?;
    fs::rename(temporary, hint)
}

/// Where else it listens, if nobody does on `socket`.
pub fn find_other_socket(data: &Path, socket: &Path) -> Option<PathBuf> {
    let bytes = fs::read(hint_path(data)).ok().filter(|bytes| bytes.len() <= MAX_BYTES)?;
    let noted = PathBuf::from(OsString::from_vec(bytes));
    // Almost always it is the same place, and then nothing more is asked.
    let is_other = noted.is_absolute() && noted != socket;
    (is_other && !is_listening(socket) && is_listening(&noted)).then_some(noted)
}

/// Beside the data directory, not in it: a copy of that would bring it along.
fn hint_path(data: &Path) -> PathBuf {
    let mut name = data.components().collect::<PathBuf>().into_os_string();
    name.push(".socket");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn socket_hint_is_used_when_nothing_listens_on_the_default_socket() {
        let folder = tempfile::tempdir().unwrap();
        let [data, usual, other] = ["data/", "usual", "other one"].map(|name| folder.path().join(name));
        let found = || find_other_socket(&data, &usual);
        assert_eq!(found(), None, "there is no note");
        write(&data, &other).unwrap();
        assert_eq!(found(), None, "nobody listens");
        let listener = UnixListener::bind(&other).unwrap();
        assert_eq!(found(), Some(other.clone()));
        let both = UnixListener::bind(&usual).unwrap();
        assert_eq!(found(), None, "the usual place comes first");
        drop(both);
        assert_eq!(found(), Some(other.clone()), "a dead socket is nobody");
        drop(listener);
        assert_eq!(found(), None, "nobody listens any more");
        for text in ["", "relative", "/\0"] {
            fs::write(hint_path(&data), text).unwrap();
            assert_eq!(found(), None, "{text:?}");
        }
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
    }
}
