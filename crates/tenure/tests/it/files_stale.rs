//! A write over what somebody else wrote in between objects, once.

use serde_json::{Value, json};

use crate::hook_stage::{FakeAgent, Stage};

fn whole(stage: &Stage, session: &str, file: &str) -> Value {
    let mut payload = stage.edit(session, file);
    payload["tool_name"] = json!("Write");
    payload["tool_input"] = json!({"file_path": stage.repository(file), "content": "mine\n"});
    payload
}

fn read(stage: &Stage, session: &str, file: &str) -> Value {
    let mut payload = stage.wrote(session, file);
    payload["tool_name"] = json!("Read");
    payload["tool_input"] = json!({"file_path": stage.repository(file)});
    payload
}

/// `one` has read `a`, and `two` has changed it since, and let go.
fn changed() -> (Stage, FakeAgent) {
    let stage = Stage::with_seconds(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&stage, "one"), FakeAgent::start(&stage, "two"));
    one.hook(&stage.event("s1", "SessionStart"));
    one.hook(&read(&stage, "s1", "a"));
    two.edits(&stage, "s2", "a", "theirs\n");
    two.hook(&stage.event("s2", "SessionEnd"));
    (stage, one)
}

#[test]
fn a_write_over_a_change_that_was_not_read_objects_and_passes_after_reading() {
    let (stage, mut one) = changed();
    let said = one.hook(&whole(&stage, "s1", "a"));
    let reason = said.reason();
    assert!(reason.contains("has changed since") && reason.contains("Read the file again"), "{reason}");
    assert!(!said.output.contains("\"continue\""), "the turn goes on: {said:?}");
    one.hook(&read(&stage, "s1", "a"));
    let said = one.hook(&whole(&stage, "s1", "a"));
    assert!(said.allows(), "{said:?}");
}

#[test]
fn it_objects_once_and_not_for_ever() {
    let (stage, mut one) = changed();
    assert!(!one.hook(&whole(&stage, "s1", "a")).allows());
    assert!(one.hook(&whole(&stage, "s1", "a")).allows());
}

#[test]
fn an_edit_of_a_part_and_a_write_of_what_was_never_read_pass() {
    let (stage, mut one) = changed();
    assert!(one.hook(&stage.edit("s1", "a")).allows(), "it names what it replaces");
    let mut three = FakeAgent::start(&stage, "three");
    assert!(three.hook(&whole(&stage, "s3", "b")).allows(), "nothing is known of it");
}

#[test]
fn what_one_wrote_oneself_is_known() {
    let stage = Stage::with_seconds(1, 30);
    let mut one = FakeAgent::start(&stage, "one");
    one.edits(&stage, "s1", "a", "mine\n");
    assert!(one.hook(&whole(&stage, "s1", "a")).allows());
    // A person changed it since.
    std::fs::write(stage.repository("a"), "a person's\n").unwrap();
    assert!(!one.hook(&whole(&stage, "s1", "a")).allows());
}
