//! A caller that says nothing any more.

use std::io::Read as _;
use std::os::unix::net::UnixStream;

use tenure_core::kernel::Principal;

use super::*;
use crate::app::{Faces, Secrets};
use crate::control::{Control, ControlSettings};
use crate::files::{FileFace, FileSettings};
use crate::pools::Pools;
use crate::registrar::line::tests::Office;
use crate::tokens::{AdminToken, Now, TokenKey, TokenStore};

#[test]
fn a_silent_client_is_pinged_and_then_disconnected() {
    let Office { registrar, runtime, folder } = Office::open();
    let secrets = Secrets {
        tokens: TokenKey::open(folder.path()).unwrap(),
        admin: AdminToken::open(folder.path()).unwrap(),
        given: TokenStore::open(folder.path(), Now::read()).unwrap(),
        intents: crate::intents::IntentSecrets::random().unwrap(),
    };
    let control = Control::open(&ControlSettings::default(), folder.path(), &registrar).unwrap();
    let (intents, agents) = Default::default();
    let files = FileFace::open(FileSettings::default(), folder.path());
    let faces = Faces { pools: Pools::default(), control, intents, agents, files };
    let app = Arc::new(App::new(registrar, secrets, None, Vec::new(), faces));
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    runtime.block_on(async {
        let stream = Stream::Local(tokio::net::UnixStream::from_std(ours).unwrap());
        let caller = Caller::admin(Principal::parse("admin").unwrap());
        let mut session = Session::new(app, caller, stream, Vec::new()).await;
        session.ping_time = Duration::from_millis(50);
        let (_go_on, stop) = watch::channel(false);
        timeout(Duration::from_secs(30), session.run(stop)).await.expect("it gives up by itself");
    });
    let mut told = Vec::new();
    theirs.read_to_end(&mut told).unwrap();
    let pings: Vec<_> = told.chunks(2).collect();
    assert!(pings.len() <= 2 && pings.iter().all(|ping| *ping == [0x89, 0]), "{} bytes", told.len());
}
