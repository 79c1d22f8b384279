//! Which session wrote the lines that are not committed yet, over the content of real files and commits.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tenure_host::blame::{AgentAuthor, AttributionStore, LineAttribution, LineAuthor};
use tenure_host::git::head_content;

use crate::git::support::Repository;

fn author(session: &str, at: u64) -> AgentAuthor {
    AgentAuthor { session: session.to_owned(), agent: "claude".to_owned(), at, task: None }
}

/// One letter for each line: `.` committed, `?` unknown, else the first letter of the session.
fn blame_letters(attribution: &LineAttribution, now: &str, head: Option<&str>) -> String {
    let lines = attribution.blame_lines(now.as_bytes(), head.map(str::as_bytes));
    let numbers: Vec<_> = lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, now.lines().collect::<Vec<_>>());
    let letter = |author: &LineAuthor| match author {
        LineAuthor::Committed => '.',
        LineAuthor::Unknown => '?',
        LineAuthor::Session(author) => author.session.chars().next().unwrap(),
    };
    lines.iter().map(|line| letter(&line.author)).collect()
}

// S4-61
#[test]
fn each_line_is_attributed_to_the_session_that_wrote_it() {
    let head = "one\ntwo\nthree\nfour\n";
    let start = LineAttribution::unchanged(head.as_bytes());
    assert_eq!(blame_letters(&start, head, Some(head)), "....");

    let by_anna = "one\nTWO\nthree\nfour\nfive\n";
    let start = start.after_edit(by_anna.as_bytes(), &author("anna", 1));
    assert_eq!(blame_letters(&start, by_anna, Some(head)), ".a..a");

    let by_both = "zero\none\nTWO\nthree\nfour and more\nfive\n";
    let both = start.after_edit(by_both.as_bytes(), &author("bert", 2));
    assert_eq!(blame_letters(&both, by_both, Some(head)), "b.a.ba");

    // Somebody whom no hook sees, and then a commit of all.
    let manual = "zero\none\nTWO\nby hand\nfour and more\nfive\n";
    assert_eq!(blame_letters(&both, manual, Some(head)), "b.a?ba");
    assert_eq!(blame_letters(&both, by_both, Some(by_both)), "......");
    assert_eq!(blame_letters(&both, by_both, Some(by_anna)), "b...b.");
    assert_eq!(blame_letters(&both, by_both, None), "b?a?ba", "without HEAD nothing is committed");

    // Written back to how it was: nothing to blame.
    let back = both.after_edit(head.as_bytes(), &author("bert", 3));
    assert_eq!(blame_letters(&back, head, Some(head)), "....");
}

#[test]
fn a_new_file_belongs_to_its_author_and_unchanged_content_is_not_an_edit() {
    let new = LineAttribution::unchanged(b"").after_edit(b"a\nb\n", &author("anna", 1));
    assert_eq!(blame_letters(&new, "a\nb\n", None), "aa");
    assert_eq!(new.after_edit(b"a\nb\n", &author("bert", 2)), new);
    let shorter = new.after_edit(b"b\n", &author("bert", 2));
    assert_eq!(blame_letters(&shorter, "b\n", None), "a");
    assert_eq!(blame_letters(&shorter, "", None), "");
}

#[test]
fn binary_and_large_files_have_one_author() {
    let large = "x\n".repeat(600_000);
    for (first, second) in [
        (b"\x00\x01".to_vec(), b"\x00\x02".to_vec()),
        (large.clone().into_bytes(), (large + "y").into_bytes()),
    ] {
        let start = LineAttribution::unchanged(&first);
        let report = |attribution: &LineAttribution, now: &[u8], head: &[u8]| {
            let lines = attribution.blame_lines(now, Some(head));
            assert_eq!((lines.len(), lines[0].number, lines[0].text.as_str()), (1, 0, ""));
            lines[0].author.clone()
        };
        assert_eq!(report(&start, &first, &first), LineAuthor::Committed);
        assert_eq!(report(&start, &second, &first), LineAuthor::Unknown);
        let changed = start.after_edit(&second, &author("anna", 1));
        assert_eq!(report(&changed, &second, &first), LineAuthor::Session(author("anna", 1)));
        assert_eq!(report(&changed, &second, &second), LineAuthor::Committed);
        assert_eq!(changed.after_edit(&second, &author("bert", 2)), changed, "the same content is no edit");
        // It becomes a text: all of that is new.
        let text = changed.after_edit(b"a\nb\n", &author("bert", 2));
        assert_eq!(blame_letters(&text, "a\nb\n", None), "bb");
        assert_eq!(blame_letters(&changed, "a\nb\n", None), "??");
    }
}

#[test]
fn lines_committed_to_head_are_blamed_as_committed() {
    let repository = Repository::new();
    repository.commit(&[("a.txt", "one\ntwo\n")]);
    let path = Path::new("a.txt");
    let head = || head_content(&repository.root, path).unwrap();
    let start = LineAttribution::unchanged(&head().unwrap());
    repository.write(path, "one\n2\nthree\n");
    let now = fs::read(repository.root.join(path)).unwrap();
    let edited = start.after_edit(&now, &author("anna", 1));
    let letters = |head: Option<&[u8]>| {
        blame_letters(&edited, "one\n2\nthree\n", head.map(|head| std::str::from_utf8(head).unwrap()))
    };
    assert_eq!(letters(head().as_deref()), ".aa");
    repository.commit(&[]);
    assert_eq!(letters(head().as_deref()), "...");
}

#[test]
fn attributions_round_trip_and_damaged_files_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/here");
    let store = AttributionStore::open(&folder).unwrap();
    let task = AgentAuthor { task: Some("the \"task\"\n".to_owned()), ..author("anna", 7) };
    let known = LineAttribution::unchanged(b"a\nb\n")
        .after_edit(b"a\nc\nd\n", &task)
        .after_edit(b"a\nc\ne\n", &author("bert", 8));
    let whole = LineAttribution::unchanged(b"\0").after_edit(b"\0\0", &task);
    assert_eq!(store.load("FILE:x/a"), None);
    store.save("FILE:x/a", &known).unwrap();
    store.save("FILE:x/b", &whole).unwrap();
    let again = AttributionStore::open(&folder).unwrap();
    assert_eq!(again.load("FILE:x/a").as_ref(), Some(&known));
    assert_eq!(again.load("FILE:x/b").as_ref(), Some(&whole));
    again.forget("FILE:x/b").unwrap();
    again.forget("FILE:x/b").unwrap();
    assert_eq!(store.load("FILE:x/b"), None);

    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let good = fs::read_to_string(&file).unwrap();
    assert!(!good.contains("\"c\""), "no content is kept");
    for damaged in [
        String::new(),
        "null".to_owned(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"version\":1", "\"version\":2"),
        good.replace("FILE:x/a", "FILE:x/z"),
        good.replace("[1,0]", "[1,9]"),
        good.replace("[1,0]", "[99999999999,0]"),
        good.replace("[1,0]", "[2,0]"),
        good.replacen("\"lines\":\"", "\"lines\":\"ü", 1),
    ] {
        assert_ne!(damaged, good);
        fs::write(&file, damaged).unwrap();
        assert_eq!(store.load("FILE:x/a"), None);
    }
    store.save("FILE:x/a", &known).unwrap();
    assert_eq!(store.load("FILE:x/a"), Some(known));
}

#[test]
fn the_oldest_attributions_are_removed_above_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let store = AttributionStore::with_max_files(folder.path(), 40).unwrap();
    let known = LineAttribution::unchanged(b"a\n");
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
    for number in 0..60 {
        store.save(&format!("FILE:{number}"), &known).unwrap();
        if number < 20 {
            for entry in fs::read_dir(folder.path()).unwrap() {
                let file = fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
                file.set_modified(old).unwrap();
            }
        }
        assert!(fs::read_dir(folder.path()).unwrap().count() <= 40, "{number}");
    }
    let kept = |number: u32| store.load(&format!("FILE:{number}")).is_some();
    assert!((0..20).all(|number| !kept(number)), "the old ones are gone");
    assert!((22..60).all(kept), "the new ones are there");
    // One that is written again takes no place of another.
    (0..100).for_each(|_| store.save("FILE:59", &known).unwrap());
    assert!((22..60).all(kept));
}

proptest! {
    #[test]
    fn random_edits_attribute_every_line_and_round_trip(
        edits in prop::collection::vec((prop::collection::vec(0..5_u8, 0..8), 0..3_u64), 1..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let store = AttributionStore::open(folder.path()).unwrap();
        let mut known = LineAttribution::unchanged(b"");
        let mut written = std::collections::HashSet::new();
        let mut text = String::new();
        for (lines, session) in edits {
            text = lines.iter().map(|line| format!("{line}\n")).collect();
            known = known.after_edit(text.as_bytes(), &author(&session.to_string(), session));
            written.extend(lines.into_iter().map(|line| (line.to_string(), session.to_string())));
            store.save("r", &known).unwrap();
            prop_assert_eq!(store.load("r"), Some(known.clone()));
        }
        for line in known.blame_lines(text.as_bytes(), None) {
            // Nobody is blamed for a line that they never wrote.
            let LineAuthor::Session(author) = line.author else { panic!("{line:?}") };
            prop_assert!(written.contains(&(line.text, author.session)));
        }
        prop_assert!(known.blame_lines(text.as_bytes(), Some(text.as_bytes())).iter().all(|line| line.author == LineAuthor::Committed));
    }
}
