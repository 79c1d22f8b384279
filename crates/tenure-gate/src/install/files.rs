//! Reading what is there.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::InstallError;

/// No settings file is larger. What is, is not one.
const MOST_BYTES: u64 = 4 << 20;

/// How many links are followed, as the kernel does.
const MOST_LINKS: usize = 40;

/// What is in the file, or nothing if there is none.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(InstallError::disk(path)(error)),
    };
    let mut content = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut content).map_err(InstallError::disk(path))?;
    if content.len() as u64 > MOST_BYTES {
        let what = format!("it is larger than {MOST_BYTES} bytes");
        return Err(InstallError::Strange { path: path.to_owned(), what });
    }
    Ok(Some(content))
}

/// The file that a name reaches: a link is followed, so that it stays one. Also where the file is not there yet.
pub fn behind_links(path: &Path) -> Result<PathBuf, InstallError> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(InstallError::Strange { path, what: "its links go round in a circle".to_owned() })
}

/// Where a link leads; nothing, if there is none of this name.
pub fn leads_to(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok()
}

/// Whether anything has this name, even a link that leads nowhere.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
