//! From a message to what it does: read it, look it up in the table, ask the gate, obey.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenure_control::table::{self, CommandRow};
use tenure_control::{Class, Problem, ProblemCode};
use tokio_tungstenite::tungstenite::Message;

use super::gateway::Link;
use super::message::{self, Blocked, raw};
use super::seat::Seat;
use super::{identity, lifecycle};
use crate::app::App;
use crate::http::json;

/// The longest `requestId`, in bytes.
const LONGEST_REQUEST_ID: usize = 128;

/// What goes back for a text message.
pub(super) async fn answer(app: &App, seat: &mut Seat, text: &str) -> String {
    let mut fields = match read(text) {
        Ok(fields) => fields,
        Err(problem) => return message::error(None, &problem.into()),
    };
    let request_id = match request_id(&mut fields) {
        Ok(request_id) => request_id,
        Err(problem) => return message::error(None, &problem.into()),
    };
    let request_id = request_id.as_deref();
    match obey(app, seat, fields).await {
        Ok((kind, data)) => message::success(kind, request_id, &data),
        Err(blocked) => message::error(request_id, &blocked),
    }
}

pub(super) fn frame(app: &App, seat: &Seat, bytes: &[u8]) -> Result<(), Blocked> {
    lifecycle::may_write(&seat.caller)?;
    let pass = app.control.desk.pass_frame(&seat.identity)?;
    app.control.desk.frame(pass, bytes)
}

/// Sends a message on to somebody else's device, if the lease allows it.
pub(super) fn relay(
    app: &App,
    seat: &Seat,
    link: Option<&mut Link>,
    message: Message,
) -> Result<(), Blocked> {
    let (Some(gateway), Some(link)) = (&app.control.gateway, link) else { return Ok(()) };
    let class = gateway.classify(&message);
    if class != Class::Reads {
        lifecycle::may_write(&seat.caller)?;
    }
    let pass = app.control.desk.pass_websocket(&seat.identity, class)?;
    link.send(pass, message)
}

/// Does it. The answer has a type of its own where clients know one.
async fn obey(
    app: &App,
    seat: &mut Seat,
    mut fields: Map<String, Value>,
) -> Result<(&'static str, Box<RawValue>), Blocked> {
    let row = command(&mut fields)?;
    let data = match row.name {
        "control.acquire" => return Ok(("control.acquired", lifecycle::acquire(app, seat, fields).await?)),
        "control.heartbeat" => {
            return Ok(("control.heartbeatAck", lifecycle::heartbeat(app, seat, fields).await?));
        }
        "control.release" => return Ok(("control.released", lifecycle::release(app, seat, fields).await?)),
        "control.status" => lifecycle::status(app),
        "auth.status" => raw(&identity::status(&seat.caller)),
        "auth.login" => raw(&identity::login(app, seat, fields)?),
        "auth.logout" => raw(&identity::logout(app, seat)?),
        name => {
            if row.may_change {
                lifecycle::may_write(&seat.caller)?;
            }
            let pass = app.control.desk.pass_websocket(&seat.identity, row.class)?;
            raw(&app.control.desk.carry_out(pass, name, fields).await?)
        }
    };
    Ok((row.name, data))
}

fn read(text: &str) -> Result<Map<String, Value>, Problem> {
    match json::parse(text.as_bytes()) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Problem::new(ProblemCode::InvalidJson, "send a JSON object with a `type`")),
        // The parser names a place and a rule, and repeats nothing of the text: it may have a token in it.
        Err(error) => {
            Err(Problem::new(ProblemCode::InvalidJson, format!("this is not JSON as we read it: {error}")))
        }
    }
}

fn request_id(fields: &mut Map<String, Value>) -> Result<Option<String>, Problem> {
    match fields.remove("requestId") {
        None => Ok(None),
        Some(Value::String(text)) if text.len() <= LONGEST_REQUEST_ID => Ok(Some(text)),
        Some(Value::String(_)) => {
            let range = format!("has at most {LONGEST_REQUEST_ID} bytes");
            Err(Problem::of_field(ProblemCode::InvalidValue, "requestId", range))
        }
        Some(_) => Err(Problem::of_field(ProblemCode::InvalidType, "requestId", "must be a string")),
    }
}

fn command(fields: &mut Map<String, Value>) -> Result<&'static CommandRow, Problem> {
    let name = match fields.remove("type") {
        Some(Value::String(name)) => name,
        Some(_) => return Err(Problem::of_field(ProblemCode::InvalidType, "type", "must be a string")),
        None => return Err(Problem::of_field(ProblemCode::MissingField, "type", "is missing")),
    };
    table::command(&name).filter(|row| row.on_websocket).ok_or_else(|| {
        Problem::new(
            ProblemCode::UnknownCommand,
            "there is no command of this type; `tenure control matrix` prints all of them",
        )
    })
}
