//! Any two names that reach one file have a resource in common; names of different files have none. Which file a name really
//! reaches is asked of the system.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tenure_host::paths::{FileKey, PathTarget, target_of};

use crate::paths::random_tree::{RandomTree, TestRng, identity, without_dot_dot};

fn share(one: &FileKey, other: &FileKey) -> bool {
    one.resources().any(|resource| other.resources().any(|another| another == resource))
}

/// A name, written from `/` or from somewhere on its way.
fn random_target(random: &mut TestRng, name: &Path) -> PathTarget {
    let cwd = name.ancestors().nth(1 + random.below(4)).filter(|cwd| cwd.is_dir());
    let below = cwd.and_then(|cwd| Some((cwd, name.strip_prefix(cwd).ok()?)));
    match below {
        Some((cwd, below)) if random.below(2) == 0 => target_of(below, cwd).unwrap(),
        _ => target_of(name, Path::new("/nowhere")).unwrap(),
    }
}

/// A tool that removes `..` itself would reach something else with this name.
fn is_ambiguous(name: &Path) -> bool {
    identity(&without_dot_dot(name)) != identity(name)
}

// S4-17, S4-18
#[test]
fn paths_share_a_resource_exactly_if_they_reach_the_same_file() {
    let (mut same, mut different, mut outside) = (0, 0, 0);
    for seed in 1..=40 {
        let random = &mut TestRng(seed);
        let world = RandomTree::new(random);
        let mut files: BTreeMap<(u64, u64), Vec<(PathBuf, FileKey)>> = BTreeMap::new();
        for _ in 0..400 {
            let name = world.random_name(random);
            let Some(identity) = identity(&name).filter(|_| name.is_file()) else { continue };
            let real = name.canonicalize().unwrap();
            match random_target(random, &name) {
                PathTarget::File(file) => {
                    assert!(
                        is_ambiguous(&name) || world.is_inside(&real),
                        "seed {seed}: {name:?} is outside"
                    );
                    if world.is_inside(&real) {
                        assert_eq!(file.absolute, real, "seed {seed}: {name:?}");
                        assert_eq!(file.tree.root.join(&file.relative), real, "seed {seed}: {name:?}");
                        assert_eq!(file.identity, Some(identity), "seed {seed}: {name:?}");
                        files.entry(identity).or_default().push((name, file));
                    }
                }
                PathTarget::Outside => {
                    assert!(!world.is_inside(&real), "seed {seed}: {name:?} is inside");
                    outside += 1;
                }
            }
        }
        for names in files.values() {
            for (place, (name, file)) in names.iter().enumerate() {
                for (other_name, other) in &names[place + 1..] {
                    assert!(share(file, other), "seed {seed}: {name:?} {file:?}\n{other_name:?} {other:?}");
                    same += 1;
                }
            }
        }
        let plain = |names: &'_ [(PathBuf, FileKey)]| -> Vec<(PathBuf, FileKey)> {
            names.iter().filter(|(name, _)| !is_ambiguous(name)).cloned().collect()
        };
        let groups: Vec<_> = files.values().map(|names| plain(names)).collect();
        for (place, names) in groups.iter().enumerate() {
            for (name, file) in names {
                for (other_name, other) in groups[place + 1..].iter().flatten() {
                    assert!(!share(file, other), "seed {seed}: {name:?} {file:?}\n{other_name:?} {other:?}");
                    different += 1;
                }
            }
        }
    }
    println!("{same} pairs of one file, {different} of different ones, {outside} names outside");
    assert!(same >= 10_000 && different >= 1_000 && outside >= 100, "{same}, {different}, {outside}");
}

// S4-17
#[test]
fn a_file_has_the_same_resource_before_and_after_its_creation() {
    let mut created = 0;
    for seed in 1..=40 {
        let random = &mut TestRng(1_000 + seed);
        let world = RandomTree::new(random);
        for _ in 0..250 {
            let name = world.random_name(random);
            if name.exists() || is_ambiguous_when_new(&name) {
                continue;
            }
            let Ok(before) = target_of(&name, Path::new("/")) else { continue };
            let folder = name.parent().unwrap().to_path_buf();
            assert!(
                !folder.exists() || world.contains(folder),
                "seed {seed}: {name:?} leads out of the world"
            );
            // Where it really lands is seen by letting the system create it.
            if fs::OpenOptions::new().create(true).append(true).open(&name).is_err() {
                continue;
            }
            let real = name.canonicalize().unwrap();
            match (before, target_of(&real, Path::new("/")).unwrap()) {
                (PathTarget::File(before), PathTarget::File(after)) => {
                    assert_eq!(before.identity, None, "seed {seed}: {name:?}");
                    assert_eq!(before.resource, after.resource, "seed {seed}: {name:?}");
                    assert_eq!(
                        (before.absolute, before.aliases),
                        (real, after.aliases),
                        "seed {seed}: {name:?}"
                    );
                    created += 1;
                }
                (before, after) => assert_eq!(before, after, "seed {seed}: {name:?}"),
            }
        }
    }
    assert!(created >= 200, "{created}");
}

fn is_ambiguous_when_new(name: &Path) -> bool {
    let folder = |path: &Path| path.parent().and_then(identity);
    folder(name) != folder(&without_dot_dot(name)) || without_dot_dot(name).exists()
}

/// A name in which nothing has a meaning of its own is one that the kernel compares as a whole.
#[test]
fn resources_contain_no_patterns_and_no_control_characters() {
    let random = &mut TestRng(7);
    let world = RandomTree::new(random);
    let names = (0..500).map(|_| world.random_name(random)).collect::<Vec<_>>();
    let resolved = names.iter().filter_map(|name| target_of(name, Path::new("/")).ok());
    let mut seen = 0;
    for target in resolved {
        let PathTarget::File(file) = target else { continue };
        for resource in file.resources() {
            let has_meaning = |one: char| one.is_control() || "*?[]{}".contains(one);
            assert!(!resource.contains(has_meaning) && !resource.ends_with('/'), "{resource:?}");
            assert!(resource.starts_with("FILE:") && resource.len() <= 4096, "{resource:?}");
        }
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
}
