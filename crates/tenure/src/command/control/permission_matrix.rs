//! `tenure control matrix`.

use clap::Args;
use serde_json::{Value, json};
use tenure_control::permission_matrix::{MATRIX, PermissionVerdict};
use tenure_control::{COMMANDS, CommandDefinition, OwnershipStatus};

use crate::failure::Failure;
use crate::output::{Format, Table, write_json, write_table, write_text};

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
