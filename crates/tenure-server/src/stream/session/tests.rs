//! A caller that says nothing any more.

use std::io::Read as _;
use std::os::unix::net::UnixStream;

use tenure_core::kernel::Principal;

use super::*;
use crate::app::{Apis, Secrets};
use crate::control::{ControlApi, ControlSettings};
use crate::engine::acquire::tests::TestRegistrar;
use crate::files::{FileSettings, FilesApi};
use crate::leases::resource_pools::ResourcePools;
use crate::tokens::{AdminToken, LeaseTokenKey, TokenClockReading, TokenStore};

#[test]
fn a_silent_client_is_pinged_and_then_disconnected() {
    let TestRegistrar { registrar, runtime, folder } = TestRegistrar::open();
    let secrets = Secrets {
        token_key: LeaseTokenKey::open(folder.path()).unwrap(),
        admin: AdminToken::open(folder.path()).unwrap(),
        api_tokens: TokenStore::open(folder.path(), TokenClockReading::read()).unwrap(),
        intents: crate::intents::IntentSecrets::random().unwrap(),
    };
    let control = ControlApi::open(&ControlSettings::default(), folder.path(), &registrar).unwrap();
    let (intents, agents) = Default::default();
    let files = FilesApi::open(FileSettings::default(), folder.path());
    let apis = Apis { pools: ResourcePools::default(), control, intents, agents, files };
    let app = Arc::new(App::new(registrar, secrets, None, Vec::new(), apis));
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    runtime.block_on(async {
        let stream = Stream::Local(tokio::net::UnixStream::from_std(ours).unwrap());
        let caller = Caller::admin(Principal::parse("admin").unwrap());
        let mut session = StreamSession::new(app, caller, stream, Vec::new()).await;
        session.ping_time = Duration::from_millis(50);
        let (_go_on, stop) = watch::channel(false);
        timeout(Duration::from_secs(30), session.run(stop)).await.expect("it gives up by itself");
    });
    let mut received = Vec::new();
    theirs.read_to_end(&mut received).unwrap();
    let pings: Vec<_> = received.chunks(2).collect();
    assert!(pings.len() <= 2 && pings.iter().all(|ping| *ping == [0x89, 0]), "{} bytes", received.len());
}
