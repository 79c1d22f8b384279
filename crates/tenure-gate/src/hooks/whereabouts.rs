//! In which folders a shell may be while it goes through a script.

use super::words::Word;

/// Folders that are possible, from where the script starts (that one is empty). `None`: any folder.
pub(super) type Folders = Option<Vec<String>>;

/// In how many folders a command may run before it counts as any folder.
const MOST_FOLDERS: usize = 16;

/// The longest folder, in bytes: no system knows longer ones, and thousands of `cd` would make it grow for ever.
const MOST_LENGTH: usize = 4096;

pub(super) struct Whereabouts {
    pub now: Folders,
    /// Where the shell may be after any of the commands of this list: if one of them failed, it stayed there.
    seen: Folders,
    /// The same around the brackets that are open.
    outer: Vec<(Folders, Folders)>,
    /// Whether the next command runs only if all before it in its list succeeded.
    is_certain: bool,
}

impl Whereabouts {
    /// A script that starts in one of these.
    pub fn new(folders: Folders) -> Self {
        Self { seen: folders.clone(), now: folders, outer: Vec::new(), is_certain: true }
    }

    /// `;` or the end of a line: what comes next runs whatever happened, so it may be anywhere that was seen.
    pub fn end_list(&mut self) {
        self.now = union(self.now.take(), &self.seen);
        self.seen = self.now.clone();
        self.is_certain = true;
    }

    /// `||` or `|`: from here on nothing says that what comes before was done, or by whom.
    pub fn end_doubtful(&mut self) {
        self.now = union(self.now.take(), &self.seen);
        self.is_certain = false;
    }

    /// `(`: what happens inside stays there.
    pub fn enter(&mut self) {
        self.outer.push((self.now.clone(), self.seen.clone()));
        self.seen = self.now.clone();
    }

    /// `)`. Whether there was something to leave.
    pub fn leave(&mut self) -> bool {
        let outer = self.outer.pop();
        let was_inside = outer.is_some();
        if let Some(outer) = outer {
            (self.now, self.seen) = outer;
        }
        was_inside
    }

    pub fn depth(&self) -> usize {
        self.outer.len()
    }

    /// `popd`: back to somewhere.
    pub fn lose(&mut self) {
        self.now = None;
    }

    /// `cd`: exactly one plain folder, or nobody knows where.
    pub fn go(&mut self, words: &[Word]) {
        let words: Vec<&Word> = words.iter().filter(|word| word.text != "--").collect();
        let plain = match words.as_slice() {
            [word] if !word.expands && !word.text.starts_with(['-', '~']) => Some(word.text.as_str()),
            _ => None,
        };
        let folder = plain.filter(|folder| !folder.is_empty() && !folder.contains(['*', '?', '[', '{']));
        let went = match (folder, &self.now) {
            (Some(folder), Some(now)) => Some(now.iter().map(|from| join(from, folder)).collect::<Vec<_>>()),
            _ => None,
        };
        let went = went.filter(|folders| folders.iter().all(|folder| folder.len() <= MOST_LENGTH));
        self.now = if self.is_certain { went } else { union(went, &self.now) };
        self.seen = union(self.seen.take(), &self.now);
    }
}

fn join(from: &str, folder: &str) -> String {
    if from.is_empty() || folder.starts_with('/') { folder.to_owned() } else { format!("{from}/{folder}") }
}

fn union(one: Folders, other: &Folders) -> Folders {
    let (mut all, other) = (one?, other.as_ref()?);
    for folder in other {
        if !all.contains(folder) {
            all.push(folder.clone());
        }
    }
    (all.len() <= MOST_FOLDERS).then_some(all)
}
