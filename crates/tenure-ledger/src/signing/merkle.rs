//! One signature for many leases: a tree of hashes whose root is signed.
//!
//! An inner node is `BLAKE3("tenure.node.v1" | left | right)`, and a leaf's own prefix is another, so no inner
//! node passes for a leaf. A node without a sibling moves up as it is, and nothing is ever doubled. The shape
//! follows from the number of leaves alone, which is signed together with the root.

use std::iter;

use thiserror::Error;

use super::leaf::Leaf;

/// The most leaves of one tree. With more, a path and its signature would not fit into an event.
pub const MAX_LEAVES: u16 = 4096;

/// The most steps from a leaf to the root.
pub const MAX_PATH_LENGTH: usize = 12;

const PREFIX: &[u8; 14] = b"tenure.node.v1";

/// A hash in the tree.
pub type Node = [u8; 32];

/// Why there is no tree, or no way through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MerkleError {
    /// A batch without leases is not signed.
    #[error("there is nothing to sign: no lease is issued or renewed")]
    Empty,
    /// The caller puts fewer leases into a batch.
    #[error("{leaves} leases are too many for one signature; at most {MAX_LEAVES} are allowed")]
    TooManyLeaves {
        /// How many there are.
        leaves: usize,
    },
    /// Two leases have the same terms, which no two leases of one ledger have.
    #[error("the same lease stands twice in one batch")]
    DuplicateLeaf,
    /// There are not so many leaves.
    #[error("there is no leaf {index} among {count}")]
    NoSuchLeaf {
        /// Which was asked for, counted from 0.
        index: u16,
        /// How many there are.
        count: u16,
    },
    /// The path does not fit the leaf's place.
    #[error("a path of {found} steps was given where {expected} are expected")]
    PathLength {
        /// How many steps were given.
        found: usize,
        /// How many there are from this place.
        expected: usize,
    },
    /// The way up ends somewhere else.
    #[error("the leaf is not in the tree")]
    LeafNotFound,
}

/// Which leaf of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafPosition {
    index: u16,
    count: u16,
}

/// On which side a sibling stands.
#[derive(Clone, Copy)]
enum SiblingSide {
    Left,
    Right,
}

impl LeafPosition {
    /// Leaf `index`, counted from 0, of `count`.
    pub fn new(index: u16, count: u16) -> Result<LeafPosition, MerkleError> {
        match count {
            0 => Err(MerkleError::Empty),
            _ if count > MAX_LEAVES => Err(MerkleError::TooManyLeaves { leaves: count.into() }),
            _ if index >= count => Err(MerkleError::NoSuchLeaf { index, count }),
            _ => Ok(LeafPosition { index, count }),
        }
    }

    /// Which leaf, counted from 0.
    pub fn index(self) -> u16 {
        self.index
    }

    /// How many leaves there are.
    pub fn leaf_count(self) -> u16 {
        self.count
    }

    /// How many steps lead from here to the root.
    pub fn path_length(self) -> usize {
        self.steps().count()
    }

    /// Where the siblings stand, from the leaf upwards.
    fn steps(self) -> impl Iterator<Item = SiblingSide> {
        let (mut index, mut width) = (self.index, self.count);
        let levels = iter::from_fn(move || {
            let side = if index % 2 == 1 { SiblingSide::Left } else { SiblingSide::Right };
            let is_alone = index % 2 == 0 && index + 1 == width;
            let is_root = width == 1;
            (index, width) = (index / 2, width.div_ceil(2));
            (!is_root).then_some((!is_alone).then_some(side))
        });
        levels.flatten()
    }
}

/// A tree with all its levels, from which a path is read off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MerkleTree {
    /// From the leaves to the root.
    levels: Vec<Vec<Node>>,
    root: Node,
    count: u16,
}

impl MerkleTree {
    /// The tree over `leaves`, in this order.
    pub fn new(leaves: &[Leaf]) -> Result<MerkleTree, MerkleError> {
        let too_many = MerkleError::TooManyLeaves { leaves: leaves.len() };
        let count = u16::try_from(leaves.len()).map_err(|_| too_many)?;
        if count > MAX_LEAVES {
            return Err(too_many);
        }
        let mut levels = Vec::with_capacity(MAX_PATH_LENGTH);
        let mut level: Vec<Node> = leaves.iter().map(|leaf| leaf.0).collect();
        loop {
            match level.as_slice() {
                [] => return Err(MerkleError::Empty),
                [root] => return Ok(MerkleTree { root: *root, levels, count }),
                nodes => {
                    let above = nodes.chunks(2).map(parent).collect::<Result<_, _>>()?;
                    levels.push(std::mem::replace(&mut level, above));
                }
            }
        }
    }

    /// How many leaves it has.
    pub fn leaf_count(&self) -> u16 {
        self.count
    }

    /// Its root.
    pub fn root(&self) -> Node {
        self.root
    }

    /// The siblings on the way from leaf `index`, counted from 0, to the root.
    pub fn path(&self, index: u16) -> Result<Vec<Node>, MerkleError> {
        let mut index = usize::from(LeafPosition::new(index, self.count)?.index);
        let mut path = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            path.extend(level.get(index ^ 1));
            index /= 2;
        }
        Ok(path)
    }
}

/// The root of the tree over `leaves`.
pub fn root(leaves: &[Leaf]) -> Result<Node, MerkleError> {
    MerkleTree::new(leaves).map(|tree| tree.root)
}

/// The siblings on the way from leaf `index` to the root. Who needs several keeps the [`MerkleTree`].
pub fn path(leaves: &[Leaf], index: u16) -> Result<Vec<Node>, MerkleError> {
    MerkleTree::new(leaves)?.path(index)
}

/// Where `path` leads from `leaf` at `place`.
pub fn root_from_path(leaf: Leaf, place: LeafPosition, path: &[Node]) -> Result<Node, MerkleError> {
    let needed = place.path_length();
    if path.len() != needed {
        return Err(MerkleError::PathLength { found: path.len(), expected: needed });
    }
    place.steps().zip(path).try_fold(leaf.0, |node, (side, sibling)| match side {
        SiblingSide::Left => parent(&[*sibling, node]),
        SiblingSide::Right => parent(&[node, *sibling]),
    })
}

/// Whether `leaf` stands at `place` in the tree with this root.
pub fn verify(leaf: Leaf, place: LeafPosition, path: &[Node], root: &Node) -> Result<(), MerkleError> {
    if root_from_path(leaf, place, path)? == *root { Ok(()) } else { Err(MerkleError::LeafNotFound) }
}

/// What stands above one or two neighbours.
fn parent(children: &[Node]) -> Result<Node, MerkleError> {
    match children {
        // Equal neighbours could change places, and one proof would have two forms.
        [left, right] if left == right => Err(MerkleError::DuplicateLeaf),
        [left, right] => {
            let mut bytes = [0; PREFIX.len() + 64];
            bytes[..PREFIX.len()].copy_from_slice(PREFIX);
            bytes[PREFIX.len()..PREFIX.len() + 32].copy_from_slice(left);
            bytes[PREFIX.len() + 32..].copy_from_slice(right);
            Ok(*blake3::hash(&bytes).as_bytes())
        }
        [alone] => Ok(*alone),
        _ => Err(MerkleError::Empty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: u8) -> Vec<Leaf> {
        (0..count).map(|number| Leaf([number; 32])).collect()
    }

    // The attack on trees without prefixes: a tree of the inner nodes has the same root as the tree itself.
    #[test]
    fn an_interior_node_does_not_verify_as_a_leaf() {
        let four = MerkleTree::new(&leaves(4)).unwrap();
        let interior: Vec<_> = four.levels[1].iter().map(|node| Leaf(*node)).collect();
        let place = LeafPosition::new(0, 2).unwrap();
        assert_eq!(verify(interior[0], place, &[interior[1].0], &four.root), Ok(()), "only as leaf 0 of 2");
        let place = LeafPosition::new(0, 4).unwrap();
        let found = verify(interior[0], place, &[interior[1].0], &four.root);
        assert_eq!(found, Err(MerkleError::PathLength { found: 1, expected: 2 }), "and 4 is what was signed");
    }

    // CVE-2012-2459: where the last node is doubled, the lists a b c and a b c c have one root.
    #[test]
    fn a_duplicated_last_leaf_is_rejected() {
        for count in [1, 3, 5, 6, 7] {
            let mut doubled = leaves(count);
            let tail = if count == 6 { 2 } else { 1 };
            doubled.extend_from_within(doubled.len() - tail..);
            assert_eq!(root(&doubled), Err(MerkleError::DuplicateLeaf), "{count} leaves");
        }
    }

    #[test]
    fn leaf_and_node_prefixes_differ_within_the_shorter_one() {
        assert_ne!(&PREFIX[..], &b"tenure.lease.v1"[..PREFIX.len()]);
    }
}
