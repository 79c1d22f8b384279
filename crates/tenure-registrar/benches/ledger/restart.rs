//! How long a start takes with many live leases: from a checkpoint alone, and with many events behind it.

use std::sync::mpsc;
use std::time::Duration;

use tenure_core::kernel::{
    Command, CommandOutcome, Fence, HashSeed, KernelState, LeaseCredential, Limits, TickDuration,
};
use tenure_ledger::LedgerStore as _;
use tenure_ledger::signing::LedgerSigningKey;
use tenure_registrar::Reply;
use tenure_registrar::runtime::{RegistrarService, Replay, key_file_path};

use crate::time::measure_duration;
use crate::workload::{DataDirectory, acquire_many, open, store};

/// What was measured.
pub struct RestartMeasurements {
    pub leases: u64,
    /// With a checkpoint of everything.
    pub from_checkpoint: Duration,
    /// With so many events behind the checkpoint.
    pub events_behind: u64,
    pub with_events: Duration,
    pub checkpoint_bytes: u64,
}

const TTL: TickDuration = TickDuration::from_secs(20 * 3_600);

pub fn measure(leases: u64) -> Result<RestartMeasurements, String> {
    let data = DataDirectory::new("restart")?;
    let service = open(data.path())?;
    let numbers: Vec<u64> = (0..leases).collect();
    let commands = numbers.chunks(100).map(|part| acquire_many(part, TTL));
    submit_all(&service, commands)?;
    service.stop().map_err(|error| error.to_string())?;
    let checkpoint_bytes = checkpoint(&data)?;

    let (service, from_checkpoint) = measure_duration(|| open(data.path()));
    let service = service?;
    check(&service, leases)?;
    let before = service.feed().head().seq.0;
    let renewals = (1..=leases).map(|lease| Command::Renew {
        lease: Fence(lease),
        credential: LeaseCredential::Token,
        ttl: Some(TickDuration::from_secs(24 * 3_600)),
    });
    submit_all(&service, renewals)?;
    let events_behind = service.feed().head().seq.0 - before;
    service.stop().map_err(|error| error.to_string())?;
    let (service, with_events) = measure_duration(|| open(data.path()));
    let service = service?;
    check(&service, leases)?;
    service.stop().map_err(|error| error.to_string())?;
    Ok(RestartMeasurements { leases, from_checkpoint, events_behind, with_events, checkpoint_bytes })
}

fn check(service: &RegistrarService, leases: u64) -> Result<(), String> {
    let found = service.view().read(KernelState::lease_count) as u64;
    if found == leases { Ok(()) } else { Err(format!("{found} leases are there, not {leases}")) }
}

/// Asks everything, a few thousand at a time.
fn submit_all(service: &RegistrarService, commands: impl Iterator<Item = Command>) -> Result<(), String> {
    let handle = service.handle();
    let (sender, replies) = mpsc::channel();
    let mut under_way = 0;
    let wait = || match replies.recv() {
        Ok(Reply::Answered {
            answer: CommandOutcome::Granted { .. } | CommandOutcome::Renewed { .. },
            ..
        }) => Ok(()),
        other => Err(format!("not granted: {other:?}")),
    };
    for command in commands {
        let sender = sender.clone();
        handle.submit(command, move |response| drop(sender.send(response.reply)));
        under_way += 1;
        if under_way == 2_000 {
            wait()?;
            under_way -= 1;
        }
    }
    (0..under_way).try_for_each(|_| wait())
}

/// What the housekeeper does, at a moment of our choice.
fn checkpoint(data: &DataDirectory) -> Result<u64, String> {
    let mut recovery = store(data.path()).open().map_err(|error| error.to_string())?;
    let ledger = recovery.ledger();
    let mut replay = Replay::new(ledger, KernelState::new(ledger.tag(), Limits::default(), HashSeed(3, 4)));
    while let Some(batch) = recovery.next_batch().map_err(|error| error.to_string())? {
        replay.apply(&batch).map_err(|error| error.to_string())?;
    }
    let opened = recovery.finish().map_err(|error| error.to_string())?;
    let key = LedgerSigningKey::load(&key_file_path(data.path())).map_err(|error| error.to_string())?;
    let bytes = replay.encode_checkpoint(opened.reader().epoch(), &key);
    opened.maintenance().store_checkpoint(replay.head(), &bytes).map_err(|error| error.to_string())?;
    opened.close().map_err(|error| error.to_string())?;
    Ok(bytes.len() as u64)
}
