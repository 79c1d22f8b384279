//! What a server is told about intents: by its environment at the start, and by its file while it runs.

use std::fs;
use std::path::Path;

use tenure_testkit::{ServerProcess, run_expecting_failure, serve_command};

const LINE: &str = "POST /api/v3/intents";

fn admin(folder: &Path) -> String {
    fs::read_to_string(folder.join("data/admin.token")).unwrap().trim_end().to_owned()
}

/// The statuses of two equal intents, one after the other, that nobody sent before.
fn two(served: &ServerProcess, token: &str, channel: u32) -> [u16; 2] {
    let intent = format!(r#"{{"serviceRef":"channel-{channel}","profileID":"hd"}}"#);
    [(); 2].map(|()| served.request(LINE, token, &intent).status)
}

/// Says so in the file, and waits until it counts.
fn say(
    served: &ServerProcess,
    config: &Path,
    token: &str,
    text: &str,
    expected: [u16; 2],
    channels: &mut u32,
) {
    fs::write(config, text).unwrap();
    served.signal("HUP");
    // Nobody says when the signal was heard.
    for _ in 0..10_000 {
        *channels += 1;
        if two(served, token, *channels) == expected {
            return;
        }
    }
    panic!("{text} does not count");
}

// S1-34, S1-35, S1-36
#[test]
fn api_leases_setting_is_reloaded_on_sighup_without_rejecting_intents() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    fs::write(&config, "[intents]\napi_leases = false\n").unwrap();
    let mut command = serve_command(folder.path());
    command.arg("--config").arg(&config).env("XG2G_V3_API_LEASES", "true");
    let served = ServerProcess::start(&mut command);
    let token = admin(folder.path());
    let mut channels = 0;
    assert_eq!(two(&served, &token, channels), [202, 409], "the environment says how it starts");
    say(&served, &config, &token, "[intents]\napi_leases = false\n", [202, 202], &mut channels);
    say(&served, &config, &token, "[intents]\napi_leases = true\n", [202, 409], &mut channels);
    // Nothing and nonsense change nothing.
    fs::write(&config, "").unwrap();
    served.signal("HUP");
    assert_eq!(two(&served, &token, channels + 1), [202, 409]);
    fs::write(&config, "[intents]\napi_leases = 'perhaps'\n").unwrap();
    served.signal("HUP");
    assert_eq!(two(&served, &token, channels + 2), [202, 409]);
    say(
        &served,
        &config,
        &token,
        "[intents]\napi_leases = false\n",
        [202, 202],
        &mut channels.saturating_add(10),
    );
    served.signal("TERM");
    let (code, _, errors) = served.wait_for_exit();
    assert_eq!(code, Some(0));
    for message in ["it is false from the next intent on", "it is true from the next intent on"] {
        assert!(errors.contains(message), "{errors}");
    }
}

// S1-23, S1-45
#[test]
fn missing_intent_secret_is_warned_about_and_a_rotated_one_finds_earlier_intents() {
    let folder = tempfile::tempdir().unwrap();
    let intent = r#"{"serviceRef":"a","profileID":"hd"}"#;
    let session = |served: &ServerProcess| {
        served.request(LINE, &admin(folder.path()), intent).expect_status(202)["session_id"].clone()
    };
    let with = |variables: &[(&str, &str)]| {
        let mut command = serve_command(folder.path());
        command.env_remove("TENURE_IDEM_SECRET").envs(variables.iter().copied());
        command
    };
    let ended = |served: ServerProcess| {
        served.signal("TERM");
        let (code, _, errors) = served.wait_for_exit();
        assert_eq!(code, Some(0));
        errors
    };
    let served = ServerProcess::start(&mut with(&[("XG2G_IDEM_SECRET", "a-first-secret")]));
    let first = session(&served);
    assert_eq!(ended(served), "");
    let rotated =
        [("TENURE_IDEM_SECRET", "a-second-secret"), ("XG2G_IDEM_SECRET_PREVIOUS", "a-first-secret")];
    let served = ServerProcess::start(&mut with(&rotated));
    assert_eq!(session(&served), first);
    assert_eq!(ended(served), "");
    let served = ServerProcess::start(&mut with(&[]));
    assert_ne!(session(&served), first);
    let errors = ended(served);
    assert!(errors.contains("WARNING") && errors.contains("after a restart"), "{errors}");
    let different = [("XG2G_IDEM_SECRET", "a-first-secret"), ("TENURE_IDEM_SECRET", "a-second-secret")];
    let (code, errors) = run_expecting_failure(&mut with(&different));
    assert_eq!(code, 78, "{errors}");
    assert!(errors.contains("differ") && !errors.contains("-secret"), "{errors}");
}
