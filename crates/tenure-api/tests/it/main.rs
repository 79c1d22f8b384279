//! What the wire promises.

mod codes;
mod golden;
mod shapes;
mod wire;
