//! The single writer.
