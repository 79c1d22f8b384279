//! The numbers in calls, by their names in the system's headers.

use rustix::fs::OFlags;

/// Flags of an `open`, of which only the lower half is ever used. What has no name here does not matter.
pub(super) fn of_open(number: u64) -> OFlags {
    OFlags::from_bits_retain(u32::try_from(number & 0xffff_ffff).unwrap_or_default())
}

/// Whether an `open` with these flags can change anything.
pub(super) fn changes(flags: OFlags) -> bool {
    let is_only_a_place = flags.contains(OFlags::PATH);
    !is_only_a_place && flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)
}

/// Whether it makes a file that has no name.
pub(super) fn has_no_name(flags: OFlags) -> bool {
    flags.contains(OFlags::TMPFILE)
}

/// The number of a descriptor. Those below zero mean the working folder, or nothing at all.
pub(super) fn descriptor(number: u64) -> i32 {
    // The system looks at the lower half alone.
    u32::try_from(number & 0xffff_ffff).unwrap_or_default().cast_signed()
}

pub(super) fn has(number: u64, bit: rustix::fs::AtFlags) -> bool {
    number & u64::from(bit.bits()) != 0
}
