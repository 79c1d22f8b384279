//! What a system call would change: from a call that waits to the files that it means, as its process sees them.
//!
//! ```text
//! decode        which names a call changes, and what it does to each
//! process_view  the whole path that such a name means to that process, from where we are
//! path_lookup   what is there, by its real path; nothing is changed and nothing is created
//! ```

mod decode;
mod path_lookup;
mod process_view;

use std::ffi::OsString;

pub use decode::decode_effect;
pub use path_lookup::{PathState, look_up};
pub use process_view::{absolute_path, is_own_writable_descriptor};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyscallEffect {
    Nothing,
    /// It changes what these names mean.
    Changes(Vec<PathArgument>),
    /// It runs a program in place of the one that calls.
    Executes(ExecutedProgram),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathArgument {
    pub folder: BaseFolder,
    /// As the process wrote it. Empty: the descriptor itself.
    pub text: OsString,
    /// Whether what a link of this name leads to is meant, and not the link.
    pub follows: bool,
    pub change: PathChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseFolder {
    Working,
    /// In the folder of this descriptor.
    Descriptor(i32),
}

/// What becomes of what a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathChange {
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
pub struct ExecutedProgram {
    pub file: PathArgument,
    /// How it is called; at most the first few hundred words.
    pub arguments: Vec<OsString>,
    /// Of its environment, what says to git where it is and what it is set to.
    pub environment: Vec<(OsString, OsString)>,
}
