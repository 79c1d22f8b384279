use std::collections::BTreeSet;
use std::path::Path;

use super::{
    DONE, RequirementId, check_done_requirements, format_ranges, parse_requirements, range,
    requirement_ids_in, test_part,
};

fn names(ids: &BTreeSet<RequirementId>) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn check(text: &str, expected: &str) {
    assert_eq!(names(&requirement_ids_in(text)), expected, "{text:?}");
}

#[test]
fn requirement_id_is_found_in_text() {
    check("// S2-41", "S2-41");
    check("// S2-41, S0-3 and O-14.", "O-14 S0-3 S2-41");
    check("(S2-41)", "S2-41");
    check("fn ends_at_S2() {}", "");
}

#[test]
fn similar_text_is_not_a_requirement_id() {
    for text in
        ["XS2-41", "S2-41a", "S2-41_b", "S2-", "S22-1", "T2-1", "S2 -41", "PRO-14", "_O-14", "S+-1", "ÄO-1é"]
    {
        check(text, "");
    }
}

#[test]
fn range_names_every_requirement_in_it() {
    for text in
        ["S2-5 to S2-8", "S2-5 to 8", "S2-5..=8", "S2-5..S2-8", "S2-5..=S2-8", "S2-5 – S2-8", "S2-5–8"]
    {
        check(text, "S2-5 S2-6 S2-7 S2-8");
    }
}

#[test]
fn invalid_range_names_only_its_ends() {
    check("S2-5 to S3-8", "S2-5 S3-8");
    check("S2-8 to S2-5", "S2-5 S2-8");
    check("S2-5 together", "S2-5");
}

#[test]
fn too_wide_range_names_only_its_ends() {
    assert_eq!(requirement_ids_in("S2-1 to S2-31").len(), 31);
    check("S2-1 to S2-32", "S2-1 S2-32");
    check("S2-1 to 4294967295", "S2-1");
}

#[test]
fn several_ranges_in_one_sentence_are_separate() {
    check("S2-1 to S2-2, S2-4 to S2-5; O-15", "O-15 S2-1 S2-2 S2-4 S2-5");
}

#[test]
fn requirements_are_stated_at_the_start_of_a_line() {
    let text =
        "# Rows of S0-9\n- S0-1 [M] first\n- S2-41 [I] see S0-7\n  - S0-2 inner\n- O-14 (S2) hole\n- other\n";
    assert_eq!(names(&parse_requirements(text)), "O-14 S0-1 S2-41");
}

#[test]
fn only_the_tests_of_a_file_count() {
    let text = "// S0-1\nfn a() {} // S0-2\n/// S0-3\n#[cfg(test)]\nmod tests {\n    // S0-4\n}\n// S0-5\n";
    assert_eq!(names(&requirement_ids_in(&test_part(Path::new("crates/a/src/lib.rs"), text))), "S0-4");
    assert_eq!(requirement_ids_in(&test_part(Path::new("crates/a/tests/all.rs"), text)).len(), 5);
    assert_eq!(requirement_ids_in(&test_part(Path::new("crates/a/src/lib_tests.rs"), text)).len(), 5);
    assert_eq!(requirement_ids_in(&test_part(Path::new("crates/a/src/lib_tests/limits.rs"), text)).len(), 5);
    assert_eq!(requirement_ids_in(&test_part(Path::new("clients/tests/client.py"), text)).len(), 5);
    assert!(test_part(Path::new("clients/client.py"), text).is_empty());
}

#[test]
fn done_requirement_must_be_stated_and_named_by_a_test() {
    let done: BTreeSet<RequirementId> =
        DONE.iter().flat_map(|(face, first, last)| range(face, *first, *last)).collect();
    assert!(check_done_requirements(&done, &done).is_ok());

    let mut fewer = done.clone();
    fewer.remove(&RequirementId { group: "S2".to_owned(), number: 41 });
    let problem = check_done_requirements(&done, &fewer).expect_err("S2-41 is not named").to_string();
    assert!(problem.contains("no test names these rows, which are done: S2-41\n"), "{problem}");
    let problem = check_done_requirements(&fewer, &done).expect_err("S2-41 is not stated").to_string();
    assert!(problem.contains("does not state S2-41\n"), "{problem}");
}

#[test]
fn consecutive_requirements_are_formatted_as_a_range() {
    let ids = requirement_ids_in("O-1, S2-1, S2-3 to S2-5, S2-7, S2-8, S3-9");
    let ids: Vec<_> = ids.iter().collect();
    assert_eq!(format_ranges(&ids), "O-1, S2-1, S2-3 to S2-5, S2-7 to S2-8, S3-9");
    assert_eq!(format_ranges(&[]), "");
}
