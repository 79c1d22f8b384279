//! In which folders a shell may be while it goes through a script.

use crate::tokenizer::ShellWord;

/// Folders that are possible, from where the script starts (that one is empty). `None`: any folder.
pub(super) type PossibleFolders = Option<Vec<String>>;

/// In how many folders a command may run before it counts as any folder.
const MAX_FOLDERS: usize = 16;

/// The longest folder, in bytes: no system knows longer ones, and thousands of `cd` would make it grow for ever.
const MAX_FOLDER_BYTES: usize = 4096;

pub(super) struct CwdTracker {
    pub current: PossibleFolders,
    /// Where the shell may be after any of the commands of this list: if one of them failed, it stayed there.
    reachable: PossibleFolders,
    /// The same around the brackets that are open.
    outer: Vec<(PossibleFolders, PossibleFolders)>,
    /// Whether the next command runs only if all before it in its list succeeded.
    is_certain: bool,
}

impl CwdTracker {
    /// A script that starts in one of these.
    pub fn new(folders: PossibleFolders) -> Self {
        Self { reachable: folders.clone(), current: folders, outer: Vec::new(), is_certain: true }
    }

    /// `;` or the end of a line: what comes next runs whatever happened, so it may be anywhere that was seen.
    pub fn end_list(&mut self) {
        self.current = union(self.current.take(), &self.reachable);
        self.reachable = self.current.clone();
        self.is_certain = true;
    }

    /// `||` or `|`: from here on nothing says that what comes before was done, or by whom.
    pub fn end_or_pipe(&mut self) {
        self.current = union(self.current.take(), &self.reachable);
        self.is_certain = false;
    }

    /// `(`: what happens inside stays there.
    pub fn enter_subshell(&mut self) {
        self.outer.push((self.current.clone(), self.reachable.clone()));
        self.reachable = self.current.clone();
    }

    /// `)`. Whether there was something to leave.
    pub fn leave_subshell(&mut self) -> bool {
        let outer = self.outer.pop();
        let was_inside = outer.is_some();
        if let Some(outer) = outer {
            (self.current, self.reachable) = outer;
        }
        was_inside
    }

    pub fn depth(&self) -> usize {
        self.outer.len()
    }

    /// `popd`: back to somewhere.
    pub fn set_unknown(&mut self) {
        self.current = None;
    }

    /// `cd`: exactly one plain folder, or nobody knows where.
    pub fn change_folder(&mut self, words: &[ShellWord]) {
        let words: Vec<&ShellWord> = words.iter().filter(|word| word.text != "--").collect();
        let plain = match words.as_slice() {
            [word] if !word.expands && !word.text.starts_with(['-', '~']) => Some(word.text.as_str()),
            _ => None,
        };
        let folder = plain.filter(|folder| !folder.is_empty() && !folder.contains(['*', '?', '[', '{']));
        let went = match (folder, &self.current) {
            (Some(folder), Some(now)) => Some(now.iter().map(|from| join(from, folder)).collect::<Vec<_>>()),
            _ => None,
        };
        let went = went.filter(|folders| folders.iter().all(|folder| folder.len() <= MAX_FOLDER_BYTES));
        self.current = if self.is_certain { went } else { union(went, &self.current) };
        self.reachable = union(self.reachable.take(), &self.current);
    }
}

fn join(from: &str, folder: &str) -> String {
    if from.is_empty() || folder.starts_with('/') { folder.to_owned() } else { format!("{from}/{folder}") }
}

fn union(one: PossibleFolders, other: &PossibleFolders) -> PossibleFolders {
    let (mut all, other) = (one?, other.as_ref()?);
    for folder in other {
        if !all.contains(folder) {
            all.push(folder.clone());
        }
    }
    (all.len() <= MAX_FOLDERS).then_some(all)
}
