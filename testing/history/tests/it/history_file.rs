//! Histories are kept in files.

use tenure_history::History;

use crate::history_syntax::parse_history;

#[test]
fn a_history_file_round_trips() {
    let written = parse_history(
        "
        a  0..5      acquire db:1,db:2 x 100 wait 5 key k -> granted 1,2
        a  6..       renew 1 db:1 200
        a  7..8      transfer 1 db:1 b x -> granted 3 200
        a  9..10     change 3 db:1 s -> held c
        a  11..12    release 2 db:2 -> over
        b  11..12    revoke 2 db:2 -> unknown
        b  13..14    show 2 db:2 -> 2 a x expired 0
        b  13..14    list db:2 -> nothing
        b  15..16    acquire db:2 s 100 -> refused BUSY
    ",
    );
    let mut file = Vec::new();
    written.write(&mut file).unwrap();
    assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), 1 + written.operations.len());
    assert_eq!(History::read(&file[..]).unwrap(), written);
}

#[test]
fn reading_an_invalid_line_reports_its_number() {
    let error = History::read(&b"{\"clock\":null}\n\n{\"client\":1}\n"[..]).unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
}
