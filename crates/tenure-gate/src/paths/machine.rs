//! Which machine this is. Keys of files hold it, so that they mean nothing on another one.

use std::fs;
use std::sync::OnceLock;

/// A short digest of the machine's id. The id itself is not for others to see.
pub(super) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| digest("tenure machine", &[identity().as_bytes()]))
}

/// The first sixteen hex digits of a hash over all of this. The label says what it is for, the lengths where each part ends.
pub(super) fn digest(label: &str, parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(label);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// What the system calls itself, else its host name.
fn identity() -> String {
    let places = ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"];
    let known = places.iter().filter_map(|place| fs::read_to_string(place).ok());
    let mut known = known.map(|text| text.trim().to_owned());
    // An image that was never started has this instead of an id.
    known.find(|text| !text.is_empty() && text != "uninitialized").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_short_name_and_its_id_is_not_in_it() {
        assert_eq!(machine().len(), 16);
        assert_eq!(machine(), machine());
        assert!(!identity().contains(machine()));
    }

    #[test]
    fn parts_are_told_apart() {
        assert_ne!(digest("a", &[b"xy", b"z"]), digest("a", &[b"x", b"yz"]));
        assert_ne!(digest("a", &[b"x"]), digest("b", &[b"x"]));
    }
}
