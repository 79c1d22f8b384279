//! The server of this machine, as hooks of agents find it: over its local socket alone, and started where nobody listens.

mod detached;
mod local;
mod note;
mod start;

pub use self::detached::{NAME, run};
pub use self::local::Local;
pub use self::note::keep;
pub use self::start::{listens, start};
