//! What the wire promises.

mod codes;
mod shapes;
