//! A WebSocket that waits for what it reads.

use std::net::TcpStream;

pub use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::{Error, HandshakeError, WebSocket, client};

use crate::server::TestServer;

/// Opens a WebSocket at this path with this token. An error: the server refused it.
pub fn open(server: &TestServer, path: &str, token: &str) -> Result<WebSocket<TcpStream>, Error> {
    let host = server.address.to_string();
    let request = Request::builder().uri(format!("ws://{host}{path}")).header("Host", host);
    let request = request.header("Connection", "Upgrade").header("Upgrade", "websocket");
    let request = request.header("Sec-WebSocket-Version", "13").header("Sec-WebSocket-Key", generate_key());
    let request = request.header("Authorization", format!("Bearer {token}")).body(()).unwrap();
    let stream = server.connect();
    stream.set_nodelay(true).unwrap();
    match client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(error)) => Err(error),
        Err(_) => panic!("a blocking socket does not come back in the middle"),
    }
}
