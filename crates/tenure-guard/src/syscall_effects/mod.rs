//! Decodes a pending system call: the files that it would change, as its process sees them.
//!
//! ```text
//! decode        the names that a call changes, and how
//! process_view  the absolute path of such a name, in the process's own view
//! path_lookup   what is at that path; nothing is changed and nothing is created
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
