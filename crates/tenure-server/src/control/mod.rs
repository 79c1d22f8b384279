//! The control face: what of it needs a disk.

#[cfg_attr(not(test), expect(dead_code, reason = "nothing opens the device yet"))]
mod store;

pub use self::store::StoreError;
