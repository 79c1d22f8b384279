//! A real client of the Model Context Protocol, speaking to the real program.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion, Tool};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, UnixSocketHttpClient};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::Value;
use tempfile::TempDir;
use tenure_testkit::{ServerProcess, leak_recorder};
use tokio::io::copy_bidirectional;
use tokio::net::unix::pipe;
use tokio::net::{TcpStream, UnixListener};
use tokio::runtime::Runtime;

/// An agent with a connection of its own.
pub struct McpAgent {
    runtime: Runtime,
    service: Option<RunningService<RoleClient, ()>>,
    child: Option<Child>,
    _folder: Option<TempDir>,
}

/// What a tool said.
#[derive(Debug)]
pub struct ToolResult {
    pub text: String,
    pub data: Value,
    pub is_error: bool,
}

/// How a client begins: with a handshake, or with requests that say everything themselves.
pub fn lifecycle_modes() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

impl McpAgent {
    /// Starts the program, as the programs of agents do, and speaks over its standard streams.
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command, ClientLifecycleMode::Initialize)
    }

    pub fn start_with(command: &mut Command, begin: ClientLifecycleMode) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let runtime = runtime();
        let service = runtime.block_on(async {
            let reads = pipe::Receiver::from_owned_fd(OwnedFd::from(output)).unwrap();
            let writes = pipe::Sender::from_owned_fd(OwnedFd::from(input)).unwrap();
            ().serve_with_lifecycle((reads, writes), begin).await.unwrap()
        });
        Self { runtime, service: Some(service), child: Some(child), _folder: None }
    }

    /// Speaks over HTTP.
    pub fn connect_http(address: &str, token: Option<&str>, begin: ClientLifecycleMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = runtime();
        let socket = folder.path().join("socket");
        forward(&runtime, socket.clone(), address.to_owned());
        let url = format!("http://{address}/mcp");
        let mut configuration = StreamableHttpClientTransportConfig::with_uri(url.clone());
        if let Some(token) = token {
            configuration = configuration.auth_header(token);
        }
        let client = UnixSocketHttpClient::new(socket.to_str().unwrap(), &url);
        let service = runtime.block_on(async {
            let transport = StreamableHttpClientTransport::with_client(client, configuration);
            ().serve_with_lifecycle(transport, begin).await.unwrap()
        });
        Self { runtime, service: Some(service), child: None, _folder: Some(folder) }
    }

    fn service(&self) -> &RunningService<RoleClient, ()> {
        self.service.as_ref().unwrap()
    }

    pub fn tools(&self) -> Vec<Tool> {
        self.runtime.block_on(self.service().list_all_tools()).unwrap()
    }

    pub fn instructions(&self) -> String {
        self.service().peer_info().unwrap().instructions.clone().unwrap()
    }

    /// Calls a tool, which answers.
    pub fn call(&self, name: &str, arguments: Value) -> ToolResult {
        let result = self.try_call(name, arguments).unwrap();
        let text = result.content.iter().map(|block| block.as_text().unwrap().text.as_str()).collect();
        let answer = ToolResult {
            text,
            data: result.structured_content.unwrap_or_default(),
            is_error: result.is_error.unwrap_or_default(),
        };
        leak_recorder::record_output(format!("{answer:?}").as_bytes());
        answer
    }

    /// The same, and it goes well.
    pub fn call_successfully(&self, name: &str, arguments: Value) -> ToolResult {
        let result = self.call(name, arguments);
        assert!(!result.is_error, "{result:?}");
        result
    }

    /// The same, and it does not.
    pub fn call_with_error(&self, name: &str, arguments: Value) -> ToolResult {
        let result = self.call(name, arguments);
        assert!(result.is_error, "{result:?}");
        result
    }

    pub fn try_call(&self, name: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        self.runtime.block_on(self.service().call_tool(request))
    }

    /// Hangs up, and waits for the program's end: its exit code, and what it said on standard error.
    pub fn disconnect(mut self) -> (Option<i32>, String) {
        let service = self.service.take().unwrap();
        let _ = self.runtime.block_on(service.cancel());
        let done = self.child.take().unwrap().wait_with_output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        tenure_testkit::signal(self.child.as_ref().unwrap().id(), name);
    }

    /// Waits for the end of a program that was told to.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.as_mut().unwrap().wait().unwrap().code()
    }
}

impl Drop for McpAgent {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl ToolResult {
    /// What a `declare` led to.
    pub fn verdict(&self) -> &str {
        self.data["verdict"].as_str().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// The ids of the leases that it gave.
    pub fn leases(&self) -> Vec<String> {
        let leases = self.data["leases"].as_array().unwrap_or_else(|| panic!("{self:?}"));
        leases.iter().map(|lease| lease["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// `tenure mcp --listen`, which says where in the way that `tenure serve` does.
pub fn start_listening(command: &mut Command) -> (ServerProcess, String) {
    let served = ServerProcess::start(command);
    let address = served.address.strip_suffix("/mcp").unwrap().to_owned();
    (served, address)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// The client's library reaches a network only with many more dependencies; a socket is enough, byte for byte.
fn forward(runtime: &Runtime, socket: PathBuf, address: String) {
    let listener = runtime.block_on(async { UnixListener::bind(socket) }).unwrap();
    runtime.spawn(async move {
        while let Ok((mut local, _)) = listener.accept().await {
            let address = address.clone();
            tokio::spawn(async move {
                let mut remote = TcpStream::connect(address).await.unwrap();
                let _ = copy_bidirectional(&mut local, &mut remote).await;
            });
        }
    });
}
