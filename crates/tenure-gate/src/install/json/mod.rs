//! JSON as people wrote it: read with the place of everything, changed in that place alone.
//!
//! A settings file belongs to the person. So nothing is parsed and printed again: what we add goes in as text, what we take
//! out leaves as text, and every other byte stays.

mod comment;
mod edit;
mod scanner;
mod value;

pub(super) use comment::first_comment_line;
pub(super) use edit::{append, insert_member, remove};
pub(super) use scanner::{Node, NotJson, scan};
pub(super) use value::Json;
