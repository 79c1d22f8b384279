//! The server of this machine, as hooks of agents find it: over its local socket alone, and started where nobody listens.

mod detached;
mod local;
mod note;
mod question;
mod start;

pub use self::detached::{NAME, NAME as DETACHED, run};
pub use self::local::Local;
pub use self::note::keep;
pub use self::question::{BY_HAND, LOOK, Questions, Unanswered, may_be_gone};
pub use self::start::{listens, start};
