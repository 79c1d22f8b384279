//! What the gate promises about this machine.

mod hooks;
