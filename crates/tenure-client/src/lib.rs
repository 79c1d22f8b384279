//! The client.
