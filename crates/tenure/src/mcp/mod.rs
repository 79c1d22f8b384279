//! `tenure mcp`: the agents API as tools of the Model Context Protocol, over stdio or HTTP (`http`).
//!
//! ```text
//! arguments                            arguments of tools, and what a path in them means
//! declare, heartbeat, release, report  one tool each
//! status                               the tools `status` and `who`
//! response                             results and errors: text for the model, and the same as data
//! ```
//!
//! It has no state between two calls: the agent and its leases are arguments, or defaults from the start. All decisions are
//! the server's.

mod arguments;
mod declare;
mod heartbeat;
mod http;
mod release;
mod report;
mod response;
mod status;

use std::sync::Arc;

use arguments::INSTRUCTIONS;
use hyper::http::request::Parts;
use response::ToolError;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::stdio_pipes;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenure_client::Client;
use thiserror::Error;

pub use self::arguments::PathResolver;
pub use self::http::{HttpSettings, serve};

/// Who asks, if a call does not say it.
#[derive(Debug, Clone, Default)]
pub struct CallerDefaults {
    pub agent: Option<String>,
    pub session: Option<String>,
}

/// The session of whoever names none.
const DEFAULT_SESSION: &str = "mcp";

/// Every tool, for any number of clients: it remembers nothing.
#[derive(Clone)]
pub struct Tools {
    shared: Arc<ToolState>,
}

struct ToolState {
    /// Who speaks, unless the request says it.
    client: Client,
    defaults: CallerDefaults,
    places: PathResolver,
}

pub struct ToolCall<'a> {
    /// Speaks to the Tenure server as the caller.
    pub client: &'a Client,
    pub paths: &'a PathResolver,
    defaults: &'a CallerDefaults,
}

impl Tools {
    /// `client` speaks for every caller who brought no token.
    pub fn new(client: Client, defaults: CallerDefaults, places: PathResolver) -> Self {
        Self { shared: Arc::new(ToolState { client, defaults, places }) }
    }

    /// What is told of the tools.
    pub fn list(&self) -> Vec<Tool> {
        let has_agent = self.shared.defaults.agent.is_some();
        vec![
            declare::tool(has_agent),
            status::tool(has_agent),
            status::resource_tool(),
            heartbeat::tool(has_agent),
            release::tool(has_agent),
            report::tool(has_agent),
        ]
    }
}

impl ToolCall<'_> {
    /// The arguments, read strictly: a word that nobody reads may have been an important one. What is `null` was left
    /// out: some models fill in every field.
    pub fn read<T: DeserializeOwned>(&self, mut arguments: JsonObject) -> Result<T, ToolError> {
        arguments.retain(|_, value| !value.is_null());
        serde_json::from_value(Value::Object(arguments.clone()))
            .map_err(|error| ToolError::unreadable_argument(&error, culprit::<T>(&arguments)))
    }

    pub fn agent(&self, argument: Option<String>) -> Result<String, ToolError> {
        argument.or_else(|| self.defaults.agent.clone()).ok_or_else(|| {
            ToolError::invalid_argument(
                "`agent_id` is missing: choose a name that no other agent has, and keep it in every call",
            )
        })
    }

    pub fn session(&self, argument: Option<String>) -> String {
        argument.or_else(|| self.defaults.session.clone()).unwrap_or_else(|| DEFAULT_SESSION.to_owned())
    }
}

/// Which argument cannot be read: the one without which the rest can be, or is only too little.
fn culprit<T: DeserializeOwned>(arguments: &JsonObject) -> Option<&str> {
    let is_it = |name: &&String| {
        let mut rest = arguments.clone();
        rest.remove(*name);
        match serde_json::from_value::<T>(Value::Object(rest)) {
            Ok(_) => true,
            Err(error) => error.to_string() == format!("missing field `{name}`"),
        }
    };
    arguments.keys().find(is_it).map(String::as_str)
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let program = Implementation::new("tenure", env!("CARGO_PKG_VERSION")).with_title("Tenure");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(program)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.list().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Over HTTP, each request has its own caller.
        let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Client>());
        let ToolState { client, defaults, places } = &*self.shared;
        let call = ToolCall { client: caller.unwrap_or(client), paths: places, defaults };
        let arguments = request.arguments.unwrap_or_default();
        let result = match &*request.name {
            "declare" => declare::call(&call, arguments).await,
            "status" => status::call(&call, arguments).await,
            "who" => status::call_resource(&call, arguments).await,
            "heartbeat" => heartbeat::call(&call, arguments).await,
            "release" => release::call(&call, arguments).await,
            "report" => report::call(&call, arguments).await,
            _ => return Err(ErrorData::invalid_params("there is no such tool; tools/list names them", None)),
        };
        Ok(result.unwrap_or_else(ToolError::into_response).into_result().into())
    }
}

/// The client does not speak the protocol. What it said is not repeated.
#[derive(Debug, Error)]
#[error(
    "what came on standard input is not the Model Context Protocol; a client is to start this, not a person"
)]
pub struct ProtocolError;

/// Answers until the client closes its end. Nothing but answers goes to standard output.
pub async fn serve_stdio(tools: Tools) -> Result<(), ProtocolError> {
    match tools.serve(stdio_pipes()).await {
        // Whether it ended because nobody asks any more or because nobody listens: it ended.
        Ok(service) => {
            let _ = service.waiting().await;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(_) => Err(ProtocolError),
    }
}
