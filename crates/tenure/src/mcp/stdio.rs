//! One client, which started this process and speaks over its standard streams.

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use thiserror::Error;

use super::service::Tools;

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
