//! What is said of the device's routes in the description of everything. It is made from the table of commands.

use serde_json::{Value, json};
use tenure_control::{COMMANDS, CommandClass, ControlRejectionCode, ProblemCode};

/// The field by which an operation says that its answers are described already. It does not go out.
pub(crate) const OWN_SHAPE: &str = "x-own-shape";

/// Where in a response the codes of the device are.
pub(crate) const CODES_OF_RESPONSE: &str =
    "/content/application~1json/schema/allOf/1/properties/error/properties/code/enum";

/// Adds every route of the device to the paths of a description.
pub(crate) fn add_device_routes(document: &mut Value) {
    let components = &mut document["components"];
    components["schemas"]["ControlError"] = error_schema();
    components["responses"]["DeviceDone"] = done();
    components["parameters"] = json!({
        "ControlLease": {
            "name": "X-Control-Lease",
            "in": "header",
            "description": "Token of the control lease. Required while a control lease is active",
            "schema": { "type": "string" },
        },
        "ControlLeaseId": {
            "name": "X-Control-Lease-Id",
            "in": "header",
            "description": "Id of the control lease that the token belongs to",
            "schema": { "type": "string" },
        },
    });
    for row in COMMANDS {
        for rest in row.rest {
            let mut operation = json!({
                "tags": ["control"],
                "summary": format!("{}.", row.summary),
                "operationId": operation_id(rest.method, rest.path),
                "description": description(row.name, row.class),
                "parameters": parameters(rest.path, row.class),
                "responses": responses(row.class),
            });
            if rest.method != "GET" && rest.method != "DELETE" {
                operation["requestBody"] = body(row.name);
            }
            // What goes wrong with a command is said in the shape of the device, not as a problem.
            operation[OWN_SHAPE] = true.into();
            document["paths"][rest.path][rest.method.to_ascii_lowercase()] = operation;
        }
    }
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(['/', '-']).filter(|word| !word.is_empty() && !["api", "v1"].contains(word));
    let name: String = words.map(|word| capitalize(word.trim_matches(['{', '}']))).collect();
    format!("{}Device{name}", method.to_ascii_lowercase())
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn description(name: &str, class: CommandClass) -> String {
    let lease = match class {
        CommandClass::Mutates => " Requires the lease token while a control lease is active.",
        CommandClass::Exempt => " Allowed regardless of the control lease.",
        CommandClass::Reads | CommandClass::Streams => " Changes nothing.",
    };
    format!("Runs `{name}`.{lease}")
}

fn parameters(path: &str, class: CommandClass) -> Value {
    let mut all = Vec::new();
    if path.contains("{id}") {
        let id = json!({ "type": "string" });
        let described = "Preset id, as returned by `presets.list`";
        all.push(
            json!({ "name": "id", "in": "path", "required": true, "schema": id, "description": described }),
        );
    }
    if class == CommandClass::Mutates {
        all.extend(["ControlLease", "ControlLeaseId"].map(|name| reference("parameters", name)));
    }
    Value::Array(all)
}

fn body(name: &str) -> Value {
    if name == "ota.upload" {
        let schema = json!({ "type": "string", "format": "binary" });
        return json!({ "content": { "application/octet-stream": { "schema": schema } }, "required": true });
    }
    json!({ "content": { "application/json": { "schema": { "type": "object" } } } })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn done() -> Value {
    let envelope = json!({
        "type": "object",
        "required": ["success", "data", "timestamp", "version"],
        "properties": {
            "success": { "const": true },
            "data": { "type": "object" },
            "timestamp": { "type": "integer", "description": "Device clock in milliseconds, wraps at 2^32." },
            "version": { "const": "2.0" },
        },
    });
    json!({ "description": "Command has succeeded", "content": { "application/json": { "schema": envelope } } })
}

fn responses(class: CommandClass) -> Value {
    let mut responses = json!({ "200": reference("responses", "DeviceDone") });
    // Frames and connections are not REST's.
    let is_rest =
        |code: &ProblemCode| !code.as_str().starts_with("STREAM_") && *code != ProblemCode::Unauthorized;
    for code in ProblemCode::ALL.into_iter().filter(is_rest) {
        add(&mut responses, code.status(), code.as_str());
    }
    if class == CommandClass::Mutates {
        for code in ControlRejectionCode::ALL {
            add(&mut responses, code.status(), code.as_str());
        }
    }
    responses
}

/// Adds a code to the answers of its status.
fn add(responses: &mut Value, status: u16, code: &str) {
    let response = &mut responses[status.to_string()];
    let before = response["description"].as_str();
    let before = before.map_or_else(|| "Device error ".to_owned(), |text| format!("{text}, "));
    response["description"] = format!("{before}`{code}`").into();
    let schema = &mut response["content"]["application/json"]["schema"];
    if schema.is_null() {
        let own = json!({ "properties": { "error": { "properties": { "code": { "enum": [] } } } } });
        *schema = json!({ "allOf": [{ "$ref": "#/components/schemas/ControlError" }, own] });
    }
    if let Some(names) =
        schema["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"].as_array_mut()
    {
        names.push(code.into());
    }
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "An error response of the device.",
        "required": ["success", "error", "timestamp", "version"],
        "properties": {
            "success": { "const": false },
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": { "type": "string", "description": "Error code of the device." },
                    "message": { "type": "string", "description": "Explanation of the error." },
                    "field": { "type": "string", "description": "Name of the invalid field, if any." },
                    "ownerClientName": { "type": "string", "description": "Client that owns the lease." },
                    "remainingMs": { "type": "integer", "description": "Remaining time in milliseconds." },
                    "scope": { "type": "string", "description": "Scope of the control lease: `global`." },
                    "requiredHeader": { "type": "string", "description": "Name of the required header." },
                },
            },
            "timestamp": { "type": "integer", "description": "Device clock in milliseconds, wraps at 2^32." },
            "version": { "const": "2.0" },
        },
    })
}
