//! The stored events, compiled from `proto/tenure.proto`.
//!
//! prost drops fields that it does not know, so bytes are hashed and signed as they were read or
//! written, never after decoding and encoding again.
#![expect(clippy::large_enum_variant, reason = "generated; an event is read once and taken apart")]

include!(concat!(env!("OUT_DIR"), "/tenure.v1.rs"));
