//! A network between client and server that can be cut at chosen points.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFault {
    /// All goes well.
    None,
    /// It ends before anything is sent on.
    CloseBeforeRequest,
    /// The request arrives; when the answer comes, the connection ends without it.
    CloseBeforeResponse,
    /// It ends in the middle of the answer.
    CloseDuringResponse,
    /// The request arrives, and the answer is swallowed, without a word.
    DropResponse,
    /// Nothing goes through, without a word.
    DropEverything,
}

/// A way to the server. It ends with its last copy.
#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    /// Of the next connections; after them all goes well.
    faults: Arc<Mutex<VecDeque<ConnectionFault>>>,
    /// Of all connections there are: while it is cut, nothing goes through.
    network: Arc<watch::Sender<NetworkState>>,
    /// What was asked, as `POST /v1/leases`.
    requests: RequestLog,
}

type RequestLog = Arc<Mutex<Vec<String>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NetworkState {
    is_cut: bool,
    /// Connections older than this have ended.
    generation: u64,
}

impl Proxy {
    /// The server takes only what is meant for it: our address has as many characters as its own, so that it can be
    /// put in place.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 2], server.port()))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let network = Arc::new(watch::Sender::new(NetworkState { is_cut: false, generation: 0 }));
        let faults: Arc<Mutex<VecDeque<ConnectionFault>>> = Arc::default();
        let (watched, next_faults) = (network.subscribe(), faults.clone());
        let requests = RequestLog::default();
        let request_log = requests.clone();
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                let fault = next_faults.lock().unwrap().pop_front().unwrap_or(ConnectionFault::None);
                connections.spawn(forward(client, server, fault, watched.clone(), request_log.clone()));
            }
        });
        Self { address, faults, network, requests }
    }

    pub fn inject_faults(&self, faults: &[ConnectionFault]) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// What was asked since this was last called, in its order.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    /// From now on nothing goes through, without an error.
    pub fn set_cut(&self, is_cut: bool) {
        self.network.send_modify(|network| network.is_cut = is_cut);
    }

    /// Ends all connections that there are.
    pub fn close_connections(&self) {
        self.network.send_modify(|network| network.generation += 1);
    }
}

async fn forward(
    mut client: TcpStream,
    server: SocketAddr,
    fault: ConnectionFault,
    network: watch::Receiver<NetworkState>,
    requests: RequestLog,
) {
    let mut ends = network.clone();
    let born = network.borrow().generation;
    let carried = async {
        if fault == ConnectionFault::CloseBeforeRequest {
            let mut some = [0; 16];
            return client.read(&mut some).await.map(drop);
        }
        if fault == ConnectionFault::DropEverything {
            return std::future::pending().await;
        }
        let mut upstream = TcpStream::connect(server).await?;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = upstream.split();
        let there = async {
            let mut bytes = vec![0; 1 << 16];
            loop {
                let count = from_client.read(&mut bytes).await?;
                if count == 0 {
                    return Ok::<_, io::Error>(());
                }
                wait_until_connected(&network).await;
                requests.lock().unwrap().extend(request_line(&bytes[..count]));
                to_server.write_all(&rewrite_host(&bytes[..count])).await?;
            }
        };
        let back = async {
            let mut bytes = vec![0; 1 << 16];
            loop {
                let count = from_server.read(&mut bytes).await?;
                wait_until_connected(&network).await;
                match fault {
                    _ if count == 0 => return Ok(()),
                    ConnectionFault::CloseBeforeResponse => return Ok(()),
                    ConnectionFault::CloseDuringResponse => {
                        return to_client.write_all(&bytes[..count / 2]).await;
                    }
                    ConnectionFault::DropResponse => {}
                    _ => to_client.write_all(&bytes[..count]).await?,
                }
            }
        };
        tokio::select! { ended = there => ended, ended = back => ended }
    };
    tokio::select! {
        _ = carried => {}
        _ = ends.wait_for(|network| network.generation > born) => {}
    }
}

async fn wait_until_connected(network: &watch::Receiver<NetworkState>) {
    let _ = network.clone().wait_for(|network| !network.is_cut).await;
}

/// The request that begins here, if one does.
fn request_line(bytes: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\r').next()?);
    Some(line.strip_suffix(" HTTP/1.1")?.to_owned())
}

fn rewrite_host(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let ours = b"127.0.0.2:";
    if let Some(index) = bytes.windows(ours.len()).position(|window| window == ours) {
        bytes[index + 8] = b'1';
    }
    bytes
}
