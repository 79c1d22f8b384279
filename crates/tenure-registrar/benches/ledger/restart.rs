//! How long a start takes with many live leases: from a checkpoint alone, and with many events behind it.

use std::sync::mpsc;
use std::time::Duration;

use tenure_core::kernel::{Answer, Claim, Command, Fence, HashKey, Limits, Span, State};
use tenure_ledger::embedded::Opening;
use tenure_ledger::signing::NodeKey;
use tenure_registrar::Reply;
use tenure_registrar::shell::{Replay, Service, key_file};

use crate::clock::timed;
use crate::world::{Data, acquire_many, open, options};

/// What was measured.
pub struct Restart {
    pub leases: u64,
    /// With a checkpoint of everything.
    pub from_checkpoint: Duration,
    /// With so many events behind the checkpoint.
    pub events_behind: u64,
    pub with_events: Duration,
    pub checkpoint_bytes: u64,
}

const TTL: Span = Span::from_secs(20 * 3_600);

pub fn measure(leases: u64) -> Result<Restart, String> {
    let data = Data::new("restart")?;
    let service = open(data.path())?;
    let numbers: Vec<u64> = (0..leases).collect();
    let wanted = numbers.chunks(100).map(|part| acquire_many(part, TTL));
    ask_all(&service, wanted)?;
    service.stop().map_err(|error| error.to_string())?;
    let checkpoint_bytes = checkpoint(&data)?;

    let (service, from_checkpoint) = timed(|| open(data.path()));
    let service = service?;
    check(&service, leases)?;
    let before = service.feed().head().seq.0;
    let renewals = (1..=leases).map(|lease| Command::Renew {
        lease: Fence(lease),
        claim: Claim::Token,
        ttl: Some(Span::from_secs(24 * 3_600)),
    });
    ask_all(&service, renewals)?;
    let events_behind = service.feed().head().seq.0 - before;
    service.stop().map_err(|error| error.to_string())?;
    let (service, with_events) = timed(|| open(data.path()));
    let service = service?;
    check(&service, leases)?;
    service.stop().map_err(|error| error.to_string())?;
    Ok(Restart { leases, from_checkpoint, events_behind, with_events, checkpoint_bytes })
}

fn check(service: &Service, leases: u64) -> Result<(), String> {
    let found = service.view().read(State::live_leases) as u64;
    if found == leases { Ok(()) } else { Err(format!("{found} leases are there, not {leases}")) }
}

/// Asks everything, a few thousand at a time.
fn ask_all(service: &Service, commands: impl Iterator<Item = Command>) -> Result<(), String> {
    let handle = service.handle();
    let (sender, told) = mpsc::channel();
    let mut under_way = 0;
    let wait = || match told.recv() {
        Ok(Reply::Answered { answer: Answer::Granted { .. } | Answer::Renewed { .. }, .. }) => Ok(()),
        other => Err(format!("not granted: {other:?}")),
    };
    for command in commands {
        let sender = sender.clone();
        handle.ask(command, move |response| drop(sender.send(response.reply)));
        under_way += 1;
        if under_way == 2_000 {
            wait()?;
            under_way -= 1;
        }
    }
    (0..under_way).try_for_each(|_| wait())
}

/// What the housekeeper does, at a moment of our choice.
fn checkpoint(data: &Data) -> Result<u64, String> {
    let mut opening = Opening::begin(data.path(), options().ledger).map_err(|error| error.to_string())?;
    let ledger = opening.identity().ledger;
    let mut replay = Replay::new(ledger, State::new(ledger.tag(), Limits::default(), HashKey(3, 4)));
    while let Some(batch) = opening.next_batch().map_err(|error| error.to_string())? {
        replay.apply(&batch).map_err(|error| error.to_string())?;
    }
    let opened = opening.finish().map_err(|error| error.to_string())?;
    let key = NodeKey::load(&key_file(data.path())).map_err(|error| error.to_string())?;
    let bytes = replay.checkpoint(opened.identity().epoch, &key);
    opened.upkeep().keep_checkpoint(replay.head(), &bytes).map_err(|error| error.to_string())?;
    opened.close().map_err(|error| error.to_string())?;
    Ok(bytes.len() as u64)
}
