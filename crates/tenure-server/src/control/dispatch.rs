//! From a message to what it does: read it, look it up in the table, ask the gate, obey.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenure_control::commands::{self, CommandDefinition};
use tenure_control::{CommandClass, CommandError, Problem, ProblemCode};
use tenure_gateway::RelayHandle;
use tokio_tungstenite::tungstenite::Message;

use super::connection::Connection;
use super::message::{self, to_raw_json};
use super::{connection, lease_commands};
use crate::app::App;
use crate::http::body::read_object;

/// The longest `requestId`, in bytes.
const MAX_REQUEST_ID_BYTES: usize = 128;

/// What goes back for a text message.
pub(super) async fn handle_text(app: &App, connection: &mut Connection, text: &str) -> String {
    let mut fields = match read_object(text.as_bytes()) {
        Ok(fields) => fields,
        Err(error) => return message::error(None, &error.into()),
    };
    let request_id = match request_id(&mut fields) {
        Ok(request_id) => request_id,
        Err(problem) => return message::error(None, &problem.into()),
    };
    let request_id = request_id.as_deref();
    match obey(app, connection, fields).await {
        Ok((kind, data)) => message::success(kind, request_id, &data),
        Err(blocked) => message::error(request_id, &blocked),
    }
}

pub(super) fn handle_frame(app: &App, connection: &Connection, bytes: &[u8]) -> Result<(), CommandError> {
    lease_commands::require_control_permission(&connection.caller)?;
    let permit = app.control.controller.permit_frame(&connection.identity)?;
    app.control.controller.accept_frame(permit, bytes)
}

/// Sends a message on to somebody else's device, if the lease allows it.
pub(super) fn relay(
    app: &App,
    connection: &Connection,
    link: Option<&mut RelayHandle>,
    message: Message,
) -> Result<(), CommandError> {
    let (Some(gateway), Some(link)) = (&app.control.gateway, link) else { return Ok(()) };
    let class = gateway.classify_message(&message);
    if class != CommandClass::Reads {
        lease_commands::require_control_permission(&connection.caller)?;
    }
    let pass = app.control.controller.permit_websocket(&connection.identity, class)?;
    link.send(pass, message)
}

/// Does it. The answer has a type of its own where clients know one.
async fn obey(
    app: &App,
    connection: &mut Connection,
    mut fields: Map<String, Value>,
) -> Result<(&'static str, Box<RawValue>), CommandError> {
    let row = command(&mut fields)?;
    let data = match row.name {
        "control.acquire" => {
            return Ok(("control.acquired", lease_commands::acquire(app, connection, fields).await?));
        }
        "control.heartbeat" => {
            return Ok(("control.heartbeatAck", lease_commands::heartbeat(app, connection, fields).await?));
        }
        "control.release" => {
            return Ok(("control.released", lease_commands::release(app, connection, fields).await?));
        }
        "control.status" => lease_commands::status(app),
        "auth.status" => to_raw_json(&connection::status(&connection.caller)),
        "auth.login" => to_raw_json(&connection::login(app, connection, fields)?),
        "auth.logout" => to_raw_json(&connection::logout(app, connection)?),
        name => {
            if row.may_change {
                lease_commands::require_control_permission(&connection.caller)?;
            }
            let pass = app.control.controller.permit_websocket(&connection.identity, row.class)?;
            to_raw_json(&app.control.controller.execute(pass, name, fields).await?)
        }
    };
    Ok((row.name, data))
}

fn request_id(fields: &mut Map<String, Value>) -> Result<Option<String>, Problem> {
    match fields.remove("requestId") {
        None => Ok(None),
        Some(Value::String(text)) if text.len() <= MAX_REQUEST_ID_BYTES => Ok(Some(text)),
        Some(Value::String(_)) => {
            let range = format!("has at most {MAX_REQUEST_ID_BYTES} bytes");
            Err(Problem::of_field(ProblemCode::InvalidValue, "requestId", range))
        }
        Some(_) => Err(Problem::of_field(ProblemCode::InvalidType, "requestId", "must be a string")),
    }
}

fn command(fields: &mut Map<String, Value>) -> Result<&'static CommandDefinition, Problem> {
    let name = match fields.remove("type") {
        Some(Value::String(name)) => name,
        Some(_) => return Err(Problem::of_field(ProblemCode::InvalidType, "type", "must be a string")),
        None => return Err(Problem::of_field(ProblemCode::MissingField, "type", "is missing")),
    };
    commands::find_command(&name).filter(|row| row.on_websocket).ok_or_else(|| {
        Problem::new(
            ProblemCode::UnknownCommand,
            "there is no command of this type; `tenure control matrix` prints all of them",
        )
    })
}
