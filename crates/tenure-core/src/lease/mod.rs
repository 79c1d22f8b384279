//! Leases as an event-sourced projection: the library of the work face.
