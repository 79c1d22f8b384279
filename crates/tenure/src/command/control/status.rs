//! `tenure control status`.

use clap::Args;
use tenure_api::ControlStatus;

use crate::client::with_client;
use crate::duration::format_short;
use crate::failure::Failure;
use crate::output::{Format, Table};

/// Says who has the device, and for how long.
///
/// Exit code 0, whether somebody has it or not: `active` in the JSON says which.
///
/// Example: tenure control status --json
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    format: Format,
}

impl Status {
    /// Asks and answers.
    pub fn run(self) -> Result<(), Failure> {
        let status = with_client(async |client| Ok(client.control_status().await?))?;
        self.format.print(&status, text)
    }
}

fn text(status: &ControlStatus) -> String {
    if !status.active {
        return "Nobody has the control lease; whoever asks next gets it.\n".to_owned();
    }
    let mut table = Table::default();
    table.field("owner", &status.owner_client_name);
    table.field("instance", &status.owner_instance_id);
    table.field("connection", status.owner_ws_client_id);
    table.field("lease", &status.lease_id);
    table.field("scope", &status.scope);
    table.field("left", format!("{}, unless a heartbeat comes", format_short(status.remaining_ms.into())));
    table.field("lasts", format!("{} from each heartbeat", format_short(status.ttl_ms.into())));
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // S0-23, S0-54
    #[test]
    fn status_text_shows_the_owner_and_the_remaining_time() {
        let status = ControlStatus {
            active: true,
            lease_id: "cl_9f4a2137c1d6".into(),
            scope: "global".into(),
            owner_client_name: "K1 Composer\x1b[2J".into(),
            owner_instance_id: "6f0d84a3".into(),
            owner_ws_client_id: 12,
            remaining_ms: 2_140,
            ttl_ms: 5_000,
            heartbeat_interval_ms: 1_000,
            takeover_allowed: false,
        };
        let text = text(&status);
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words[..3], ["owner", "K1", "Composer"], "{text}");
        assert!(!text.contains('\x1b'), "what a client calls itself does not steer a terminal");
        assert!(text.contains("2s, unless a heartbeat comes") && text.contains("cl_9f4a2137c1d6"), "{text}");
    }

    #[test]
    fn inactive_status_says_that_no_client_holds_the_lease() {
        assert!(text(&ControlStatus::default()).starts_with("Nobody has the control lease"));
    }
}
