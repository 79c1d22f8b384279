//! One tree for many leases: each leaf is found at its own place, and nowhere else.

use proptest::prelude::*;
use tenure_ledger::signing::Leaf;
use tenure_ledger::signing::merkle::{
    LeafPosition, MAX_LEAVES, MAX_PATH_LENGTH, MerkleError, MerkleTree, path, root, root_from_path, verify,
};

use crate::signing::fixtures::{LEDGER, hex, leaves, three_leases};

// Computed by another program, from the description alone.
#[test]
fn golden_roots() {
    let leaves = three_leases().map(|lease| Leaf::of_issued(LEDGER, &lease));
    assert_eq!(root(&leaves[..1]).unwrap(), *leaves[0].as_bytes(), "one leaf is its own root");
    assert_eq!(
        hex(&root(&leaves[..2]).unwrap()),
        "1db6afc939e900882e80ff5bed506afec86db5e203071b3d65ba66b9f346d620"
    );
    assert_eq!(
        hex(&root(&leaves).unwrap()),
        "6c019faf024d4bf4136bd0496cd4026c29fed36c3394a2fab4fe8f32b04bf366"
    );
}

#[test]
fn a_leaf_verifies_only_at_its_own_position() {
    let all = leaves(33);
    for count in 1..=33 {
        let tree = MerkleTree::new(&all[..usize::from(count)]).unwrap();
        for index in 0..count {
            let path = tree.path(index).unwrap();
            let (leaf, place) = (all[usize::from(index)], LeafPosition::new(index, count).unwrap());
            assert_eq!(verify(leaf, place, &path, &tree.root()), Ok(()), "{index} of {count}");
            for (other_index, other_count) in
                (0..count).map(|other| (other, count)).chain([(index, count + 1)])
            {
                let other = LeafPosition::new(other_index, other_count).unwrap();
                let found = root_from_path(leaf, other, &path);
                // With one leaf more the way may be the same; that is why the count is signed too.
                let is_same = other == place || (other_count > count && found == Ok(tree.root()));
                assert!(is_same || found != Ok(tree.root()), "{index} of {count} passes for {other:?}");
            }
            let foreign = all[usize::from(index + 1) % 33];
            assert_ne!(
                root_from_path(foreign, place, &path),
                Ok(tree.root()),
                "another leaf passes for {index}"
            );
        }
    }
}

#[test]
fn leaf_counts_outside_1_to_4096_are_rejected() {
    let max_leaves = usize::from(MAX_LEAVES);
    let all = leaves(max_leaves + 1);
    assert_eq!(root(&[]), Err(MerkleError::Empty));
    assert_eq!(root(&all), Err(MerkleError::TooManyLeaves { leaves: max_leaves + 1 }));
    assert_eq!(
        root(&vec![all[0]; 65_537]),
        Err(MerkleError::TooManyLeaves { leaves: 65_537 }),
        "more than a u16"
    );
    let tree = MerkleTree::new(&all[..max_leaves]).unwrap();
    for index in [0, 1, 2047, 2048, MAX_LEAVES - 1] {
        let path = tree.path(index).unwrap();
        assert_eq!(path.len(), MAX_PATH_LENGTH);
        let place = LeafPosition::new(index, MAX_LEAVES).unwrap();
        assert_eq!(verify(all[usize::from(index)], place, &path, &tree.root()), Ok(()));
    }
    let none = MerkleError::NoSuchLeaf { index: MAX_LEAVES, count: MAX_LEAVES };
    assert_eq!(tree.path(MAX_LEAVES), Err(none));
    assert_eq!(LeafPosition::new(MAX_LEAVES, MAX_LEAVES), Err(none));
    assert_eq!(LeafPosition::new(0, 0), Err(MerkleError::Empty));
    assert_eq!(
        LeafPosition::new(0, MAX_LEAVES + 1),
        Err(MerkleError::TooManyLeaves { leaves: max_leaves + 1 })
    );
}

#[test]
fn a_path_of_the_wrong_length_is_rejected() {
    let all = leaves(5);
    let (place, last) = (LeafPosition::new(2, 5).unwrap(), LeafPosition::new(4, 5).unwrap());
    assert_eq!((place.path_length(), last.path_length()), (3, 1), "the last of five moves up twice");
    let mut path = path(&all, 2).unwrap();
    let too_long = MerkleError::PathLength { found: 4, expected: 3 };
    path.push([0; 32]);
    assert_eq!(root_from_path(all[2], place, &path), Err(too_long));
    let too_short = MerkleError::PathLength { found: 2, expected: 3 };
    assert_eq!(root_from_path(all[2], place, &path[..2]), Err(too_short));
}

#[test]
fn a_leaf_as_its_own_sibling_is_rejected() {
    let all = leaves(1);
    let place = LeafPosition::new(0, 2).unwrap();
    assert_eq!(root_from_path(all[0], place, &[*all[0].as_bytes()]), Err(MerkleError::DuplicateLeaf));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_change_of_the_leaves_changes_the_root(count in 1_usize..200, one: prop::sample::Index, other: prop::sample::Index) {
        let all = leaves(count + 1);
        let whole = root(&all[..count]).unwrap();
        prop_assert_ne!(root(&all), Ok(whole), "one more");
        let (one, other) = (one.index(count), other.index(count));
        let mut swapped = all[..count].to_vec();
        swapped.swap(one, other);
        prop_assert_eq!(root(&swapped) == Ok(whole), one == other);
        let mut replaced = all[..count].to_vec();
        replaced[one] = all[count];
        prop_assert_ne!(root(&replaced), Ok(whole));
        let mut shorter = all[..count].to_vec();
        shorter.remove(one);
        prop_assert_ne!(root(&shorter), Ok(whole));
    }

    #[test]
    fn a_path_with_a_flipped_bit_does_not_verify(count in 2_u16..300, index: prop::sample::Index, bit: prop::sample::Index) {
        let all = leaves(count.into());
        let index = u16::try_from(index.index(count.into())).unwrap();
        let tree = MerkleTree::new(&all).unwrap();
        let mut path = tree.path(index).unwrap();
        let bit = bit.index(path.len() * 256);
        path[bit / 256][bit % 256 / 8] ^= 1 << (bit % 8);
        let place = LeafPosition::new(index, count).unwrap();
        prop_assert_eq!(
            verify(all[usize::from(index)], place, &path, &tree.root()),
            Err(MerkleError::LeafNotFound)
        );
    }

    #[test]
    fn computing_a_root_from_any_path_does_not_panic(index: u16, count: u16, path: Vec<[u8; 32]>) {
        if let Ok(place) = LeafPosition::new(index, count) {
            prop_assert!(place.path_length() <= MAX_PATH_LENGTH);
            let _ = root_from_path(leaves(1)[0], place, &path);
        }
    }
}
