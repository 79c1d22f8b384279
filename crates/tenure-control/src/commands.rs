//! Every command of the device: what it is called, what it does as far as a lease is concerned, and under which address
//! REST knows it. A command that is not here does not exist.

use crate::permission_matrix::CommandClass::{self, Exempt, Mutates, Reads, Streams};

#[derive(Debug, Clone, Copy)]
pub struct CommandDefinition {
    pub name: &'static str,
    /// What it does, as far as a lease is concerned.
    pub class: CommandClass,
    /// Under which addresses REST knows it.
    pub rest: &'static [RestRoute],
    /// Whether a WebSocket can send it.
    pub on_websocket: bool,
    /// Whether it may change something, whatever the lease says: then a token that may only look is not enough.
    pub may_change: bool,
    pub summary: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestRoute {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// With what is variable in braces; such a part becomes a field of the command.
    pub path: &'static str,
}

const fn at(method: &'static str, path: &'static str) -> RestRoute {
    RestRoute { method, path }
}

const fn row(
    name: &'static str,
    class: CommandClass,
    rest: &'static [RestRoute],
    summary: &'static str,
) -> CommandDefinition {
    let may_change = !matches!(class, Reads);
    CommandDefinition { name, class, rest, on_websocket: true, may_change, summary }
}

const fn rest_only(
    name: &'static str,
    class: CommandClass,
    rest: &'static [RestRoute],
    summary: &'static str,
) -> CommandDefinition {
    CommandDefinition { on_websocket: false, ..row(name, class, rest, summary) }
}

/// A command that is exempt and changes nothing.
const fn read_only(row: CommandDefinition) -> CommandDefinition {
    CommandDefinition { may_change: false, ..row }
}

pub const COMMANDS: &[CommandDefinition] = &[
    row("control.acquire", Exempt, &[], "Acquire the control lease, or renew it"),
    row("control.heartbeat", Exempt, &[], "Renew the control lease"),
    row("control.release", Exempt, &[], "Release the control lease"),
    read_only(row("control.status", Exempt, &[at("GET", "/api/v1/control/status")], "Get the control owner")),
    read_only(row(
        "auth.status",
        Exempt,
        &[at("GET", "/api/v1/auth/status")],
        "Get the caller's principal and scopes",
    )),
    row("auth.login", Exempt, &[], "Switch the connection to another token"),
    row("auth.logout", Exempt, &[], "Switch back to the connection's first token"),
    read_only(row(
        "ota.version",
        Exempt,
        &[at("GET", "/api/v1/firmware/version")],
        "Get the firmware version",
    )),
    read_only(row(
        "ota.status",
        Exempt,
        &[at("GET", "/api/v1/firmware/status"), at("GET", "/update")],
        "Get the firmware upload status",
    )),
    row("ota.begin", Exempt, &[], "Begin a firmware upload in chunks"),
    row("ota.chunk", Exempt, &[], "Upload a chunk of firmware"),
    row("ota.finish", Exempt, &[], "Verify and store the uploaded firmware"),
    row("ota.abort", Exempt, &[at("POST", "/api/v1/firmware/abort")], "Abort a firmware upload"),
    rest_only(
        "ota.upload",
        Exempt,
        &[at("POST", "/api/v1/firmware/update"), at("POST", "/update")],
        "Upload, verify and store firmware",
    ),
    rest_only("ota.token", Exempt, &[at("POST", "/api/v1/device/ota-token")], "Create an upload token"),
    read_only(rest_only(
        "ota.tokens",
        Exempt,
        &[at("GET", "/api/v1/device/ota-token")],
        "Check for an active upload token",
    )),
    row("device.info", Reads, &[at("GET", "/api/v1/device/info")], "Get device information"),
    row("device.status", Reads, &[at("GET", "/api/v1/device/status")], "Get the device status"),
    row("device.frame", Reads, &[at("GET", "/api/v1/device/frame")], "Get the colours of all lights"),
    row("device.restart", Mutates, &[at("POST", "/api/v1/device/restart")], "Restart the device"),
    row("effects.list", Reads, &[at("GET", "/api/v1/effects")], "List the effects"),
    row("effects.getCurrent", Reads, &[at("GET", "/api/v1/effects/current")], "Get the current effect"),
    row("effects.setCurrent", Mutates, &[at("POST", "/api/v1/effects/set")], "Select an effect"),
    row("parameters.get", Reads, &[at("GET", "/api/v1/parameters")], "Get brightness, speed and others"),
    row(
        "parameters.set",
        Mutates,
        &[at("POST", "/api/v1/parameters"), at("PATCH", "/api/v1/parameters")],
        "Change parameters",
    ),
    row("presets.list", Reads, &[at("GET", "/api/v1/presets")], "List the presets"),
    row("presets.get", Reads, &[at("GET", "/api/v1/presets/{id}")], "Get a preset"),
    row("presets.save", Mutates, &[at("POST", "/api/v1/presets")], "Save the current effect as a preset"),
    row("presets.load", Mutates, &[at("POST", "/api/v1/presets/{id}/load")], "Load a preset"),
    row("presets.delete", Mutates, &[at("DELETE", "/api/v1/presets/{id}")], "Delete a preset"),
    row("transport.status", Reads, &[at("GET", "/api/v1/transport")], "Get the playback state and position"),
    row("transport.play", Mutates, &[at("POST", "/api/v1/transport/play")], "Start or resume playback"),
    row("transport.pause", Mutates, &[at("POST", "/api/v1/transport/pause")], "Pause the playback"),
    row(
        "transport.stop",
        Mutates,
        &[at("POST", "/api/v1/transport/stop")],
        "Stop playback and rewind to the start",
    ),
    row("settings.get", Reads, &[at("GET", "/api/v1/settings")], "Get persistent settings"),
    row(
        "settings.set",
        Mutates,
        &[at("PUT", "/api/v1/settings"), at("PATCH", "/api/v1/settings")],
        "Change persistent settings",
    ),
    row("render.stream.start", Streams, &[], "Start a render stream"),
    row("render.stream.stop", Streams, &[], "Stop the render stream"),
    row(
        "render.stream.status",
        Reads,
        &[at("GET", "/api/v1/render/stream")],
        "Get the status of the render stream",
    ),
];

/// What a binary message is, in the table's terms: a frame of a render stream.
pub const FRAME: CommandClass = Streams;

pub fn find_command(name: &str) -> Option<&'static CommandDefinition> {
    COMMANDS.iter().find(|row| row.name == name)
}

pub fn find_command_by_route(method: &str, path: &str) -> Option<&'static CommandDefinition> {
    COMMANDS.iter().find(|row| row.rest.iter().any(|rest| (rest.method, rest.path) == (method, path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_names_and_routes_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for row in COMMANDS {
            assert!(seen.insert(row.name.to_owned()), "{}", row.name);
            for rest in row.rest {
                assert!(seen.insert(format!("{} {}", rest.method, rest.path)), "{rest:?}");
                assert!(find_command_by_route(rest.method, rest.path).is_some());
            }
        }
    }

    #[test]
    fn routes_use_get_exactly_if_the_command_may_not_change_anything() {
        for row in COMMANDS {
            for rest in row.rest {
                assert_eq!(rest.method != "GET", row.may_change, "{} {}", rest.method, rest.path);
            }
        }
        assert!(COMMANDS.iter().all(|row| row.may_change || matches!(row.class, Reads | Exempt)));
    }

    // S0-63
    #[test]
    fn reading_commands_use_get_and_mutating_commands_do_not() {
        for row in COMMANDS {
            for rest in row.rest {
                match row.class {
                    Reads => assert_eq!(rest.method, "GET", "{}", row.name),
                    Mutates => assert_ne!(rest.method, "GET", "{}", row.name),
                    Streams => panic!("{} needs a connection", row.name),
                    Exempt => {}
                }
            }
        }
    }
}
