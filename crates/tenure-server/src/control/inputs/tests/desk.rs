//! A desk with the real hand, and a device of a few numbers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tenure_control::{Class, Hand, Held, Owner, Pass, Problem, ProblemCode, Refusal, Source, TokenDigest};
use tenure_core::kernel::{Fence, Span, Tick};
use tokio::sync::Semaphore;

use super::super::{Blocked, Gate};

const NOW: Tick = Tick(1_000_000);

pub(super) struct Inside {
    hand: Hand,
    pub(super) brightness: i64,
    pub(super) effect: i64,
    pub(super) carried: Vec<String>,
    /// What was kept out, by source.
    pub(super) blocked: BTreeMap<&'static str, u64>,
}

pub(super) struct Desk {
    inside: Mutex<Inside>,
    /// A command takes one on its way: with none there, it is delayed between gate and device.
    road: Semaphore,
    /// How many have passed the gate.
    set_out: AtomicU32,
}

impl Desk {
    pub(super) fn new() -> Arc<Self> {
        let inside = Inside {
            hand: Hand::default(),
            brightness: 100,
            effect: 0,
            carried: Vec::new(),
            blocked: BTreeMap::new(),
        };
        Arc::new(Self { inside: Mutex::new(inside), road: Semaphore::new(1), set_out: AtomicU32::new(0) })
    }

    pub(super) fn look(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock()
    }

    pub(super) fn blocked(&self, source: Source) -> u64 {
        self.look().blocked.get(source.as_str()).copied().unwrap_or(0)
    }

    pub(super) fn lock(&self) {
        let owner = Owner {
            identity: "a connection".into(),
            websocket_client_id: 12,
            client_name: "K1 Composer".into(),
            instance_id: "6f0d84a3".into(),
            token: TokenDigest::of("secret"),
        };
        let held = Held {
            fence: Fence(1),
            lease_id: "cl_9f4a2137c1d6".into(),
            owner,
            acquired_at: NOW,
            expires_at: Tick(NOW.0 + 5_000_000),
            ttl: Span(5_000_000),
        };
        self.look().hand.take(held);
    }

    pub(super) fn unlock(&self) {
        self.look().hand.let_go(Fence(1)).expect("it was held");
    }

    /// Waits until a command has passed the gate and is on its way.
    pub(super) async fn sees_one_set_out(&self) {
        super::wait_until("a command has set out", || self.set_out.load(Ordering::SeqCst) > 0).await;
    }

    /// Delays whatever was let in, for as long as the answer lives.
    pub(super) async fn delay(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.road.acquire().await.unwrap()
    }
}

impl Gate for Desk {
    fn pass_local(&self, source: Source, class: Class) -> Result<Pass, Refusal> {
        let mut inside = self.look();
        let passed = inside.hand.pass_local(source, class, NOW);
        if passed.is_err() {
            *inside.blocked.entry(source.as_str()).or_default() += 1;
        }
        passed
    }

    async fn carry_out(
        &self,
        pass: Pass,
        command: &str,
        fields: Map<String, Value>,
    ) -> Result<Value, Blocked> {
        self.set_out.fetch_add(1, Ordering::SeqCst);
        let _arrived = self.road.acquire().await.unwrap();
        let mut inside = self.look();
        inside.hand.still_counts(pass, NOW).map_err(Blocked::Refused)?;
        let done = inside.obey(command, &fields).map_err(Blocked::Problem)?;
        inside.carried.push(command.to_owned());
        Ok(done)
    }
}

impl Inside {
    fn obey(&mut self, command: &str, fields: &Map<String, Value>) -> Result<Value, Problem> {
        let number = |field: &str, range: std::ops::RangeInclusive<i64>| {
            let missing = || Problem::of_field(ProblemCode::MissingField, field, "is missing");
            let number = fields.get(field).ok_or_else(missing)?.as_i64();
            let number =
                number.ok_or_else(|| Problem::of_field(ProblemCode::InvalidType, field, "is no number"))?;
            let outside = || Problem::of_field(ProblemCode::OutOfRange, field, "is out of range");
            range.contains(&number).then_some(number).ok_or_else(outside)
        };
        match command {
            "parameters.set" => self.brightness = number("brightness", 0..=255)?,
            "effects.setCurrent" => self.effect = number("effectId", 0..=2)?,
            "effects.list" => return Ok(json!({ "effects": [{ "id": 0 }, { "id": 1 }, { "id": 2 }] })),
            _ => {}
        }
        Ok(json!({ "brightness": self.brightness, "effectId": self.effect }))
    }
}
