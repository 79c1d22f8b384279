//! Which signature belongs to an event.
//!
//! A batch is signed once, over a tree with a leaf for each lease that it issues or renews. The event
//! itself holds only which leaf is its own; the long form, signature and path, is made on the way out.

/// Version of the reference, so that another form can follow.
const LEAF: u8 = 1;

/// What stands in an event's `registrar_signature`: the number of its leaf in the batch that holds it.
pub fn leaf_reference(leaf: usize) -> [u8; 5] {
    let leaf = u32::try_from(leaf).expect("a batch has few events");
    let [a, b, c, d] = leaf.to_be_bytes();
    [LEAF, a, b, c, d]
}
