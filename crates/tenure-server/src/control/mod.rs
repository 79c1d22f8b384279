//! The control face: sockets and a clock around `tenure-control`.

#[cfg_attr(not(test), expect(dead_code, reason = "whoever holds the lease's state calls it"))]
pub(crate) mod gateway;
