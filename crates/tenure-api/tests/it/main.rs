//! What the wire promises.

mod error_codes;
mod golden;
mod json_field_names;
mod wire;
