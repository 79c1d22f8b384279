//! One tree for many leases: each leaf is found at its own place, and nowhere else.

use proptest::prelude::*;
use tenure_ledger::signing::Leaf;
use tenure_ledger::signing::merkle::{
    LONGEST_PATH, MOST_LEAVES, Place, Tree, TreeError, climb, path, root, verify,
};

use crate::signing_samples::{LEDGER, hex, leaves, three};

// Computed by another program, from the description alone.
#[test]
fn golden_roots() {
    let leaves = three().map(|lease| Leaf::of_issued(LEDGER, &lease));
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
        let tree = Tree::new(&all[..usize::from(count)]).unwrap();
        for index in 0..count {
            let path = tree.path(index).unwrap();
            let (leaf, place) = (all[usize::from(index)], Place::new(index, count).unwrap());
            assert_eq!(verify(leaf, place, &path, &tree.root()), Ok(()), "{index} of {count}");
            for (other_index, other_count) in
                (0..count).map(|other| (other, count)).chain([(index, count + 1)])
            {
                let other = Place::new(other_index, other_count).unwrap();
                let found = climb(leaf, other, &path);
                // With one leaf more the way may be the same; that is why the count is signed too.
                let is_same = other == place || (other_count > count && found == Ok(tree.root()));
                assert!(is_same || found != Ok(tree.root()), "{index} of {count} passes for {other:?}");
            }
            let foreign = all[usize::from(index + 1) % 33];
            assert_ne!(climb(foreign, place, &path), Ok(tree.root()), "another leaf passes for {index}");
        }
    }
}

#[test]
fn leaf_counts_outside_1_to_4096_are_rejected() {
    let most = usize::from(MOST_LEAVES);
    let all = leaves(most + 1);
    assert_eq!(root(&[]), Err(TreeError::Empty));
    assert_eq!(root(&all), Err(TreeError::TooMany { leaves: most + 1 }));
    assert_eq!(root(&vec![all[0]; 65_537]), Err(TreeError::TooMany { leaves: 65_537 }), "more than a u16");
    let tree = Tree::new(&all[..most]).unwrap();
    for index in [0, 1, 2047, 2048, MOST_LEAVES - 1] {
        let path = tree.path(index).unwrap();
        assert_eq!(path.len(), LONGEST_PATH);
        let place = Place::new(index, MOST_LEAVES).unwrap();
        assert_eq!(verify(all[usize::from(index)], place, &path, &tree.root()), Ok(()));
    }
    let none = TreeError::NoSuchLeaf { index: MOST_LEAVES, count: MOST_LEAVES };
    assert_eq!(tree.path(MOST_LEAVES), Err(none));
    assert_eq!(Place::new(MOST_LEAVES, MOST_LEAVES), Err(none));
    assert_eq!(Place::new(0, 0), Err(TreeError::Empty));
    assert_eq!(Place::new(0, MOST_LEAVES + 1), Err(TreeError::TooMany { leaves: most + 1 }));
}

#[test]
fn a_path_of_the_wrong_length_is_rejected() {
    let all = leaves(5);
    let (place, last) = (Place::new(2, 5).unwrap(), Place::new(4, 5).unwrap());
    assert_eq!((place.path_length(), last.path_length()), (3, 1), "the last of five moves up twice");
    let mut path = path(&all, 2).unwrap();
    let too_long = TreeError::PathLength { found: 4, needed: 3 };
    path.push([0; 32]);
    assert_eq!(climb(all[2], place, &path), Err(too_long));
    let too_short = TreeError::PathLength { found: 2, needed: 3 };
    assert_eq!(climb(all[2], place, &path[..2]), Err(too_short));
}

#[test]
fn a_leaf_as_its_own_sibling_is_rejected() {
    let all = leaves(1);
    let place = Place::new(0, 2).unwrap();
    assert_eq!(climb(all[0], place, &[*all[0].as_bytes()]), Err(TreeError::Twice));
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
        let tree = Tree::new(&all).unwrap();
        let mut path = tree.path(index).unwrap();
        let bit = bit.index(path.len() * 256);
        path[bit / 256][bit % 256 / 8] ^= 1 << (bit % 8);
        let place = Place::new(index, count).unwrap();
        prop_assert_eq!(
            verify(all[usize::from(index)], place, &path, &tree.root()),
            Err(TreeError::NotInTree)
        );
    }

    #[test]
    fn computing_a_root_from_any_path_does_not_panic(index: u16, count: u16, path: Vec<[u8; 32]>) {
        if let Ok(place) = Place::new(index, count) {
            prop_assert!(place.path_length() <= LONGEST_PATH);
            let _ = climb(leaves(1)[0], place, &path);
        }
    }
}
