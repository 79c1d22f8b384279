//! Random trees of real files, and random names for what is in them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Random numbers from a seed, so that what failed can be repeated.
pub struct TestRng(pub u64);

impl TestRng {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Names that have been trouble to somebody.
fn name(random: &mut TestRng) -> OsString {
    let names: [&[u8]; 24] = [
        b"a",
        b"b",
        b"A",
        b"src",
        b"lib.rs",
        b"two words",
        b" x ",
        b"new\nline",
        b"tab\t",
        "ü".as_bytes(),
        "u\u{308}".as_bytes(),
        "日本".as_bytes(),
        b"100%",
        b"%41",
        b"%",
        b"[id].tsx",
        b"{a,b}",
        b"*",
        b"?",
        b".long",
        b"a (deleted)",
        b"\xff\xfe",
        b"...",
        "\u{85}\u{2028}".as_bytes(),
    ];
    OsStr::from_bytes(names[random.below(names.len())]).to_owned()
}

/// Two working trees, one of them with another one inside, and a folder outside of all.
pub struct RandomTree {
    pub folder: TempDir,
    /// The real roots, the inner one before the one around it.
    pub roots: Vec<PathBuf>,
}

impl RandomTree {
    pub fn new(random: &mut TestRng) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let roots: Vec<PathBuf> = ["one/inner", "one", "two"].iter().map(|name| real.join(name)).collect();
        for root in &roots {
            fs::create_dir_all(root.join(".git")).unwrap();
            fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let mut folders = roots.clone();
        folders.push(real.join("outside"));
        fs::create_dir(&folders[3]).unwrap();
        let mut files = Vec::new();
        for _ in 0..60 {
            let at = random.pick(&folders).join(name(random));
            if at.symlink_metadata().is_ok() {
                continue;
            }
            match random.below(8) {
                0 | 1 => {
                    fs::create_dir(&at).unwrap();
                    folders.push(at);
                }
                2 if !files.is_empty() => {
                    fs::hard_link(random.pick(&files), &at).unwrap();
                    files.push(at);
                }
                3 => link(random, &folders, &at),
                4 if !files.is_empty() => link(random, &files, &at),
                5 if random.below(3) == 0 => link(random, &[real.join("one/src/nothing")], &at),
                _ => {
                    fs::write(&at, "").unwrap();
                    files.push(at);
                }
            }
        }
        Self { folder, roots }
    }

    /// A name for something: it walks through folders and links as they come, turns back, and stays where it is. It ends at
    /// a file, at a link that leads nowhere, or at nothing.
    pub fn random_name(&self, random: &mut TestRng) -> PathBuf {
        let mut path = self.folder.path().as_os_str().to_owned();
        for depth in 0..14 {
            path.push(*random.pick(&["/", "/", "/", "//", "/./"]));
            if depth > 1 && random.below(5) == 0 && self.contains(Path::new(&path).join("..")) {
                path.push("..");
                continue;
            }
            let mut entries: Vec<OsString> =
                fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
            entries.sort();
            entries.retain(|entry| entry != ".git" || random.below(10) == 0);
            if entries.is_empty() || random.below(12) == 0 {
                break;
            }
            path.push(random.pick(&entries));
            if !Path::new(&path).is_dir() {
                return path.into();
            }
        }
        path.push("/");
        path.push(name(random));
        path.into()
    }

    /// Whether a folder is part of this world. Nobody walks out of it: what is there belongs to others.
    pub fn contains(&self, folder: PathBuf) -> bool {
        let world = self.folder.path().canonicalize().unwrap();
        folder.canonicalize().is_ok_and(|real| real.starts_with(world))
    }

    /// Whether a real path is in a working tree and not git's own.
    pub fn is_inside(&self, real: &Path) -> bool {
        let root = self.roots.iter().find(|root| real.starts_with(root));
        root.is_some_and(|root| !real.strip_prefix(root).unwrap().starts_with(".git"))
    }
}

fn link(random: &mut TestRng, candidates: &[PathBuf], at: &Path) {
    let target = random.pick(candidates);
    if random.below(2) == 0 {
        symlink(target, at).unwrap();
    } else {
        let up = at.components().count() - 2;
        let climbing: PathBuf = std::iter::repeat_n("..", up).collect();
        symlink(climbing.join(target.strip_prefix("/").unwrap()), at).unwrap();
    }
}

/// Device and number of what a name reaches, as the system follows it.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

/// The name with each `..` removed together with what stands before it, as some tools do.
pub fn without_dot_dot(path: &Path) -> PathBuf {
    let mut short = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            short.pop();
        } else {
            short.push(part);
        }
    }
    short
}
