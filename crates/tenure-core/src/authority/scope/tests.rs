use proptest::prelude::*;

use super::*;

/// Few names, so that they meet, and parts that look alike.
fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", ".", "...", "a b", "é"]), 1..4)
        .prop_map(|parts| parts.join("/"))
}

/// What somebody might ask about.
fn candidate_name() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec!["a", "b", "ab", ".", "..", "...", ""]);
    prop::collection::vec(parts, 1..5).prop_map(|parts| parts.join("/"))
}

pub fn scope() -> impl Strategy<Value = LeaseScope> {
    let set = || prop::collection::vec(name(), 0..4);
    let limited = (set(), set(), set()).prop_map(|(work_ids, tools, namespaces)| {
        let text = |set: &[String]| set.to_vec();
        let (work_ids, tools, namespaces) = (text(&work_ids), text(&tools), text(&namespaces));
        LeaseScope::limited(
            work_ids.iter().map(String::as_str),
            tools.iter().map(String::as_str),
            namespaces.iter().map(String::as_str),
        )
        .expect("names of a scope")
    });
    prop_oneof![1 => Just(LeaseScope::Unlimited), 6 => limited]
}

/// The rule said a second time, part by part.
fn is_below(namespace: &str, above: &str) -> bool {
    let mut parts = namespace.split('/');
    above.split('/').all(|part| parts.next() == Some(part))
}

proptest! {
    // S2-107, O-16
    #[test]
    fn parent_scope_allows_everything_a_child_scope_allows(
        whole in scope(), part in scope(), candidate in candidate_name(),
    ) {
        if part.is_within(&whole) {
            prop_assert!(!part.allows_work(&candidate) || whole.allows_work(&candidate));
            prop_assert!(!part.allows_tool(&candidate) || whole.allows_tool(&candidate));
            prop_assert!(!part.allows_namespace(&candidate) || whole.allows_namespace(&candidate));
        } else {
            // There is something that only the part allows.
            let names = part.names();
            let everything = names.is_none();
            let more = names.is_some_and(|[work_ids, tools, namespaces]| {
                work_ids.iter().any(|name| !whole.allows_work(name))
                    || tools.iter().any(|name| !whole.allows_tool(name))
                    || namespaces.iter().any(|name| !whole.allows_namespace(name))
            });
            prop_assert!(everything || more);
        }
        prop_assert!(whole.is_within(&whole) && whole.is_within(&LeaseScope::Unlimited));
    }

    // S2-107
    #[test]
    fn namespace_allows_itself_and_its_descendants(scope in scope(), candidate in candidate_name()) {
        let up = candidate.split('/').any(|part| part == "..");
        let expected = match scope.names() {
            None => !up,
            Some([_, _, namespaces]) => !up && namespaces.iter().any(|above| is_below(&candidate, above)),
        };
        prop_assert_eq!(scope.allows_namespace(&candidate), expected);
    }

    // S2-110
    #[test]
    fn canonical_bytes_are_equal_only_for_equal_scopes(one in scope(), other in scope()) {
        prop_assert_eq!(one == other, one.canonical_bytes() == other.canonical_bytes());
        prop_assert_eq!(LeaseScope::from_canonical_bytes(&one.canonical_bytes()), Ok(one));
    }

    // S2-110
    #[test]
    fn parsed_canonical_bytes_encode_to_the_same_bytes(bytes in prop::collection::vec(0..3_u8, 0..40)) {
        if let Ok(scope) = LeaseScope::from_canonical_bytes(&bytes) {
            prop_assert_eq!(scope.canonical_bytes(), bytes);
        }
    }
}

// O-16
#[test]
fn parent_components_are_never_allowed_and_cannot_be_named() {
    for name in ["..", "a/..", "../a", "a/../b"] {
        let all = LeaseScope::Unlimited;
        assert!(!all.allows_work(name) && !all.allows_tool(name) && !all.allows_namespace(name), "{name}");
        assert!(LeaseScope::limited([name], [], []).is_err());
        assert!(LeaseScope::limited([], [name], []).is_err());
        assert!(LeaseScope::limited([], [], [name]).is_err());
    }
    for name in ["...", "a..b", "..a/b", "a"] {
        assert!(LeaseScope::Unlimited.allows_namespace(name), "{name}");
    }
}

#[test]
fn scope_size_limits_are_enforced() {
    let names: Vec<String> = (0..65).map(|number| format!("w-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(LeaseScope::limited(names[..64].iter().copied(), [], []).is_ok());
    assert!(LeaseScope::limited(names.iter().copied(), [], []).is_err());
    assert!(LeaseScope::limited(["x".repeat(257).as_str()], [], []).is_err());
    assert!(LeaseScope::limited([""], [], []).is_err() && LeaseScope::limited(["a\n"], [], []).is_err());
    let long: Vec<String> = (0..33).map(|number| format!("{number:0256}")).collect();
    assert!(LeaseScope::limited(long[..32].iter().map(String::as_str), [], []).is_ok());
    assert!(LeaseScope::limited(long.iter().map(String::as_str), [], []).is_err());
    for namespace in ["a/", "a//b", "/"] {
        assert!(LeaseScope::limited([], [], [namespace]).is_err(), "{namespace}");
    }
    assert!(LeaseScope::limited([], [], ["/home/a"]).is_ok());
}

#[test]
fn purpose_is_allowed_only_if_every_named_part_is_allowed() {
    let scope = LeaseScope::limited(["w"], ["t"], ["n"]).expect("a scope");
    let purpose = |work: &str, tool: &str| Purpose {
        work_id: Some(work.into()),
        tool: Some(tool.into()),
        namespace: None,
    };
    assert!(scope.allows(&Purpose::default()) && scope.allows(&purpose("w", "t")));
    assert!(!scope.allows(&purpose("w", "x")) && !scope.allows(&purpose("x", "t")));
    assert!(!scope.allows(&Purpose { namespace: Some("m".into()), ..purpose("w", "t") }));
}
