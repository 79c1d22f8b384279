//! What a system call would change: from a call that waits to the files that it means, as its process sees them.
//!
//! ```text
//! read      which names a call changes, and what it does to each
//! sight     the whole path that such a name means to that process, from where we are
//! place     what is there, by its real path; nothing is changed and nothing is created
//! temporary which new names are no files of anybody
//! ```

mod place;
mod read;
mod sight;

use std::ffi::OsString;

pub use place::{Seen, look, looks_temporary};
pub use read::read;
pub use sight::{is_own_open, whole};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    Nothing,
    /// It changes what these names mean.
    Changes(Vec<Name>),
    /// It runs a program in place of the one that calls.
    Executes(Program),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub folder: Folder,
    /// As the process wrote it. Empty: the descriptor itself.
    pub text: OsString,
    /// Whether what a link of this name leads to is meant, and not the link.
    pub follows: bool,
    pub change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    Working,
    /// In the folder of this descriptor.
    Descriptor(i32),
}

/// What becomes of what a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Something is added at its end, it is linked, or its mode changes: what is in it stays.
    Touched,
    /// What is in it is lost, or may be: written over, emptied, removed, or another one takes its name.
    Lost,
    Moved,
    /// It is made, and must not be there before.
    Made,
    /// It is made if it is not there; what is there stays as it is.
    Ensured,
}

/// A program that is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub file: Name,
    /// How it is called; at most the first few hundred words.
    pub arguments: Vec<OsString>,
    /// Of its environment, what says to git where it is and what it is set to.
    pub environment: Vec<(OsString, OsString)>,
}
