//! `tenure control`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure_api::ControlStatus;
use tenure_control::permission_matrix::{MATRIX, PermissionVerdict};
use tenure_control::{COMMANDS, CommandDefinition, OwnershipStatus};

use crate::client::with_client;
use crate::duration::format_short;
use crate::failure::Failure;
use crate::output::{Format, Table, write_json, write_table, write_text};

/// Shows who may move the device, and who does.
///
/// The device is moved by one hand at a time. Whoever wants it takes the control lease over a WebSocket; docs/guides/control.md
/// shows how.
#[derive(Debug, Args)]
pub struct Control {
    #[command(subcommand)]
    command: ControlCommand,
}

#[derive(Debug, Subcommand)]
enum ControlCommand {
    Status(Status),
    Matrix(PermissionMatrixArguments),
}

impl Control {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ControlCommand::Status(status) => status.run(),
            ControlCommand::Matrix(matrix) => matrix.run(),
        }
    }
}

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

/// Shows which commands get through to the device: from where, and under whose lease.
///
/// First what happens to each class of commands from each source, then the class of every command and under which
/// addresses REST knows it; a name in brackets is one that no WebSocket can send. This is the table by which the server
/// decides, and it needs no server to be shown.
///
/// Example: tenure control matrix --json
#[derive(Debug, Args)]
pub struct PermissionMatrixArguments {
    #[command(flatten)]
    format: Format,
}

impl PermissionMatrixArguments {
    /// Prints it.
    pub fn run(self) -> Result<(), Failure> {
        if self.format.json {
            write_json(&json!({ "matrix": matrix_values(), "commands": command_values() }))?;
        } else {
            write_table(&matrix_table())?;
            write_text("\n")?;
            write_table(&command_table())?;
        }
        Ok(())
    }
}

fn matrix_table() -> Table {
    let [inactive, owner, other] = OwnershipStatus::ALL.map(|standing| standing.as_str().to_uppercase());
    let mut table = Table::with_header(&["SOURCE", "COMMANDS", &inactive, &owner, &other]);
    for (source, class, verdicts) in MATRIX {
        let [inactive, owner, other] = verdicts.map(|verdict| word_of(verdict).to_owned());
        table.row([source.as_str().to_owned(), class.as_str().to_owned(), inactive, owner, other]);
    }
    table
}

fn command_table() -> Table {
    let mut table = Table::with_header(&["COMMAND", "CLASS", "REST", "WHAT IT DOES"]);
    for row in COMMANDS {
        let mut addresses = addresses(row);
        let first = addresses.next().unwrap_or_else(|| "-".to_owned());
        table.row([name_of(row), row.class.as_str().to_owned(), first, row.summary.to_owned()]);
        for address in addresses {
            table.row([String::new(), String::new(), address, String::new()]);
        }
    }
    table
}

/// One that no WebSocket can send has its name only inside.
fn name_of(row: &CommandDefinition) -> String {
    if row.on_websocket { row.name.to_owned() } else { format!("({})", row.name) }
}

fn addresses(row: &CommandDefinition) -> impl Iterator<Item = String> {
    row.rest.iter().map(|rest| format!("{} {}", rest.method, rest.path))
}

fn matrix_values() -> Vec<Value> {
    let value = |(source, class, verdicts): &(
        tenure_control::CommandSource,
        tenure_control::CommandClass,
        [PermissionVerdict; 3],
    )| {
        let [inactive, owner, other] = verdicts.map(word_of);
        let (source, class) = (source.as_str(), class.as_str());
        json!({ "source": source, "class": class, "inactive": inactive, "owner": owner, "nonOwner": other })
    };
    MATRIX.iter().map(value).collect()
}

fn command_values() -> Vec<Value> {
    let value = |row: &CommandDefinition| {
        let addresses: Vec<_> = addresses(row).collect();
        json!({
            "name": row.name,
            "class": row.class.as_str(),
            "webSocket": row.on_websocket,
            "rest": addresses,
            "summary": row.summary,
        })
    };
    COMMANDS.iter().map(value).collect()
}

fn word_of(verdict: PermissionVerdict) -> &'static str {
    match verdict {
        PermissionVerdict::Allow => "allow",
        PermissionVerdict::Block => "block",
    }
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

    /// The row of a table whose cells begin like this, without the blanks between.
    fn row(table: &Table, begin: &[&str]) -> String {
        let text = table.to_string();
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut found = lines.filter(|cells| cells.starts_with(begin));
        let row = found.next().unwrap_or_else(|| panic!("no {begin:?} in\n{text}"));
        assert!(found.next().is_none(), "two of {begin:?}");
        row[begin.len()..].join(" ")
    }

    // S0-73, S0-74, S0-75, S0-76, S0-77
    #[test]
    fn matrix_table_shows_the_verdict_for_each_source_and_class() {
        let table = matrix_table();
        for (source, class, verdicts) in [
            ("ws", "mutates", "allow allow block"),
            ("rest", "mutates", "allow allow block"),
            ("local.encoder", "mutates", "allow block block"),
            ("local.serial", "mutates", "allow block block"),
            ("rest", "reads", "allow allow allow"),
            ("ws", "reads", "allow allow allow"),
        ] {
            assert_eq!(row(&table, &[source, class]), verdicts, "{source} {class}");
        }
        assert_eq!(table.to_string().lines().count(), 1 + MATRIX.len());
        assert_eq!(matrix_values().len(), MATRIX.len());
    }

    #[test]
    fn every_command_is_listed_with_all_its_rest_addresses() {
        let table = command_table();
        let text = table.to_string();
        for command in COMMANDS {
            assert!(text.contains(command.name), "{}", command.name);
            for address in addresses(command) {
                assert!(text.contains(&address), "{address}");
            }
        }
        assert_eq!(row(&table, &["effects.setCurrent"]), "mutates POST /api/v1/effects/set Select an effect");
        assert_eq!(row(&table, &["render.stream.start"]), "streams - Start a render stream");
        let values = command_values();
        let set = values.iter().find(|value| value["name"] == "parameters.set").unwrap();
        assert_eq!(set["rest"], json!(["POST /api/v1/parameters", "PATCH /api/v1/parameters"]));
    }
}
