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
pub enum Fate {
    /// All goes well.
    Passes,
    /// It ends before anything is sent on.
    EndsBeforeTheRequest,
    /// The request arrives; when the answer comes, the connection ends without it.
    EndsBeforeTheAnswer,
    /// It ends in the middle of the answer.
    EndsInTheAnswer,
    /// The request arrives, and the answer is swallowed, without a word.
    SwallowsTheAnswer,
    /// Nothing goes through, without a word.
    SwallowsAll,
}

/// A way to the server. It ends with its last copy.
#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    /// Of the next connections; after them all goes well.
    fates: Arc<Mutex<VecDeque<Fate>>>,
    /// Of all connections there are: while it is cut, nothing goes through.
    network: Arc<watch::Sender<Network>>,
    /// What was asked, as `POST /v1/leases`.
    asked: Asked,
}

type Asked = Arc<Mutex<Vec<String>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
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
        let network = Arc::new(watch::Sender::new(Network { is_cut: false, generation: 0 }));
        let fates: Arc<Mutex<VecDeque<Fate>>> = Arc::default();
        let (watched, given) = (network.subscribe(), fates.clone());
        let asked = Asked::default();
        let noted = asked.clone();
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                let fate = given.lock().unwrap().pop_front().unwrap_or(Fate::Passes);
                connections.spawn(carry(client, server, fate, watched.clone(), noted.clone()));
            }
        });
        Self { address, fates, network, asked }
    }

    pub fn next(&self, fates: &[Fate]) {
        self.fates.lock().unwrap().extend(fates);
    }

    /// What was asked since this was last called, in its order.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// From now on nothing goes through, without an error.
    pub fn cut(&self, is_cut: bool) {
        self.network.send_modify(|network| network.is_cut = is_cut);
    }

    /// Ends all connections that there are.
    pub fn end_connections(&self) {
        self.network.send_modify(|network| network.generation += 1);
    }
}

async fn carry(
    mut client: TcpStream,
    server: SocketAddr,
    fate: Fate,
    network: watch::Receiver<Network>,
    asked: Asked,
) {
    let mut ends = network.clone();
    let born = network.borrow().generation;
    let carried = async {
        if fate == Fate::EndsBeforeTheRequest {
            let mut some = [0; 16];
            return client.read(&mut some).await.map(drop);
        }
        if fate == Fate::SwallowsAll {
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
                until_it_is_whole(&network).await;
                asked.lock().unwrap().extend(request_in(&bytes[..count]));
                to_server.write_all(&renamed(&bytes[..count])).await?;
            }
        };
        let back = async {
            let mut bytes = vec![0; 1 << 16];
            loop {
                let count = from_server.read(&mut bytes).await?;
                until_it_is_whole(&network).await;
                match fate {
                    _ if count == 0 => return Ok(()),
                    Fate::EndsBeforeTheAnswer => return Ok(()),
                    Fate::EndsInTheAnswer => return to_client.write_all(&bytes[..count / 2]).await,
                    Fate::SwallowsTheAnswer => {}
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

async fn until_it_is_whole(network: &watch::Receiver<Network>) {
    let _ = network.clone().wait_for(|network| !network.is_cut).await;
}

/// The request that begins here, if one does.
fn request_in(bytes: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\r').next()?);
    Some(line.strip_suffix(" HTTP/1.1")?.to_owned())
}

fn renamed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let ours = b"127.0.0.2:";
    if let Some(place) = bytes.windows(ours.len()).position(|window| window == ours) {
        bytes[place + 8] = b'1';
    }
    bytes
}
