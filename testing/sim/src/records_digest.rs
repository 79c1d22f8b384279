//! A digest of the ledger's records and of the answers, which survives renaming, moving and deleting code.

use tenure_core::kernel::{
    AgentOutcome, CommandOutcome, Fence, FileOutcome, IntentOutcome, Rejection, Tick, WaitEnd,
};
use tenure_core::ledger::EventRecord;
use tenure_registrar::{AppendFailure, Effect, Reply};

/// Hashes what the server does, in the order in which it happens: every record with the bytes that go to the
/// ledger, the tick of every durable event, and every answer by its code and its numbers.
///
/// Nothing here may be derived from a name in the source. `Debug`, `Display` and `type_name` are not used; each
/// kind of answer has a literal of its own, and a refusal has the error code that the HTTP API gives it.
#[derive(Debug, Default)]
pub struct RecordsDigest(blake3::Hasher);

impl RecordsDigest {
    /// Adds one effect of the registrar.
    pub fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::Append(write) => {
                self.text("append");
                write.records.decode().iter().for_each(|record| self.record(record));
            }
            Effect::Publish(events) => {
                self.text("durable");
                self.ticks(events.iter().map(|event| event.occurred_at()));
            }
            Effect::Served { ticket, leases } => {
                self.text("served").number(ticket.0);
                self.leases(leases);
            }
            Effect::Unserved { ticket, end } => {
                self.text("unserved").number(ticket.0).text(match end {
                    WaitEnd::TimedOut => "TIMED_OUT",
                    WaitEnd::Withdrawn => "WITHDRAWN",
                    WaitEnd::Gone => "GONE",
                });
            }
            Effect::ServedTooLate { ticket } => {
                self.text("too late").number(ticket.0);
            }
            Effect::Answer { request: caller, reply } => {
                self.text("answer").number(caller.0);
                self.reply(reply);
            }
            Effect::StepDown(failure) => {
                self.text("step down").text(match failure {
                    AppendFailure::Overtaken => "OVERTAKEN",
                    AppendFailure::NotWritten => "NOT_WRITTEN",
                    AppendFailure::OutcomeUnknown => "UNKNOWN",
                });
            }
        }
    }

    /// The digest of everything so far.
    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }

    fn record(&mut self, record: &EventRecord) {
        self.text("record").text(&record.event_type).text(&record.session_id).text(&record.actor_id);
        self.bytes(&record.payload);
    }

    fn reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Answered { answer, stamp } => {
                self.number(stamp.0);
                self.answer(answer);
            }
            Reply::Busy => drop(self.text("BUSY")),
            Reply::TooLate => drop(self.text("TOO_LATE")),
            Reply::Unavailable => drop(self.text("UNAVAILABLE")),
            Reply::OutcomeUnknown => drop(self.text("OUTCOME_UNKNOWN")),
        }
    }

    fn answer(&mut self, answer: &CommandOutcome) {
        match answer {
            CommandOutcome::Granted { leases } => self.text("granted").leases(leases),
            CommandOutcome::Queued { ticket, position, until, .. } => {
                self.text("queued").number(ticket.0).number(*position as u64).ticks([*until]);
            }
            CommandOutcome::Renewed { lease, expires_at } => {
                self.text("renewed").number(lease.0).ticks([*expires_at]);
            }
            CommandOutcome::Released { lease } => self.text("released").leases(&[*lease]),
            CommandOutcome::Reissued { old_lease: before, lease } => {
                self.text("continued").leases(&[*before, *lease])
            }
            CommandOutcome::Ended { leases } => self.text("ended").leases(leases),
            CommandOutcome::Withdrawn { waited } => drop(self.text("withdrawn").number(u64::from(*waited))),
            CommandOutcome::Swept { more } => drop(self.text("swept").number(u64::from(*more))),
            CommandOutcome::Agent(answer) => self.agent(answer),
            CommandOutcome::File(answer) => self.file(answer),
            CommandOutcome::Intent(answer) => self.intent(answer),
            CommandOutcome::Spent { lease, remaining } => {
                self.text("spent").leases(&[*lease]);
                for amount in remaining.amounts() {
                    self.number(amount);
                }
            }
            CommandOutcome::Rejected(rejection) => drop(self.text(error_code(rejection))),
        }
    }

    fn agent(&mut self, answer: &AgentOutcome) {
        match answer {
            AgentOutcome::Granted { leases } => self.text("agent granted").leases(leases),
            AgentOutcome::Wait { ticket, position, until, .. } => {
                self.text("agent waits").number(ticket.0).number(*position as u64).ticks([*until]);
            }
            AgentOutcome::Die { retry_at, ended, .. } => {
                self.text("agent dies").leases(ended);
                self.ticks([*retry_at]);
            }
            AgentOutcome::Heartbeats(leases) => {
                self.text("agent heartbeat")
                    .leases(&leases.iter().map(|(lease, _)| *lease).collect::<Vec<_>>());
            }
            AgentOutcome::Released(leases) => self.text("agent released").leases(leases),
            AgentOutcome::Acknowledged => drop(self.text("agent noted")),
            AgentOutcome::Touched { outside } => {
                self.text("agent touched").number(outside.len() as u64);
            }
        }
    }

    fn file(&mut self, answer: &FileOutcome) {
        match answer {
            FileOutcome::Acknowledged => drop(self.text("file noted")),
            FileOutcome::Granted { leases, uncommitted } => {
                self.text("file granted").leases(leases);
                self.number(uncommitted.len() as u64);
            }
            FileOutcome::CheckRequired { sessions } => {
                self.text("file must check").number(sessions.len() as u64);
            }
            FileOutcome::Wait { held, until } => {
                self.text("file waits").number(held.len() as u64).ticks([*until]);
            }
            FileOutcome::Blocked { held, report } => {
                self.text("file blocked").number(held.len() as u64).number(report.0);
            }
            FileOutcome::Released { resources, foreign } => {
                self.text("file released").number(resources.len() as u64).number(foreign.len() as u64);
            }
        }
    }

    fn intent(&mut self, answer: &IntentOutcome) {
        match answer {
            IntentOutcome::Accepted { is_new, .. } => {
                self.text("intent accepted").number(u64::from(*is_new));
            }
            IntentOutcome::Taken { leases, until, .. } => {
                self.text("intent taken").leases(leases);
                self.ticks([*until]);
            }
            IntentOutcome::Current { .. } => drop(self.text("intent now")),
            IntentOutcome::KeptAlive { until, sessions } => {
                self.text("intent kept").number(sessions.len() as u64).ticks([*until]);
            }
            IntentOutcome::Wiped { sessions } => drop(self.text("intent wiped").number(*sessions as u64)),
        }
    }

    fn leases(&mut self, leases: &[Fence]) {
        self.number(leases.len() as u64);
        for lease in leases {
            self.number(lease.0);
        }
    }

    fn ticks(&mut self, ticks: impl IntoIterator<Item = Tick>) {
        for tick in ticks {
            self.number(tick.0);
        }
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Bytes behind their length, so that no two sequences of them are the same.
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(&number.to_be_bytes());
        self
    }
}

/// The error code that the HTTP API gives a refusal. Refusals with one code may be merged or split.
fn error_code(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Invalid(_) | Rejection::WrongDirection { .. } | Rejection::NotIdle => "INVALID",
        Rejection::TtlOutOfRange { .. } => "TTL_OUT_OF_RANGE",
        Rejection::Held { .. } => "HELD",
        Rejection::QueueFull { .. } => "QUEUE_FULL",
        Rejection::Deadlock { .. } => "DEADLOCK",
        Rejection::QuotaExceeded { .. } => "QUOTA_EXCEEDED",
        Rejection::KeyReused => "KEY_REUSED",
        Rejection::HolderTaken { .. } => "HOLDER_TAKEN",
        Rejection::NotFound | Rejection::NoSuchTicket | Rejection::NoSuchAgent | Rejection::NoSuchSession => {
            "NOT_FOUND"
        }
        Rejection::PriorityFixed { .. } => "PRIORITY_FIXED",
        Rejection::LeaseTimeUsed { .. } => "LEASE_TIME_USED",
        Rejection::MemoryStale { .. } => "DIGEST_STALE",
        Rejection::TooManySessions { .. } => "TOO_MANY_SESSIONS",
        Rejection::LeaderLost => "GUARD_LOST",
        Rejection::NotHolder => "TOKEN_INVALID",
        Rejection::Ended { .. } => "EXPIRED",
        Rejection::NoAuthority => "NO_AUTHORITY",
        Rejection::AuthorityBound => "AUTHORITY_BOUND",
        Rejection::OutOfScope { .. } => "OUT_OF_SCOPE",
        Rejection::BudgetExceeded { .. } => "BUDGET_EXCEEDED",
        Rejection::OutlivesParent { .. } => "OUTLIVES_PARENT",
        Rejection::TooManyDerived { .. } => "TREE_FULL",
        Rejection::NoSpace => "NO_SPACE",
        Rejection::RestoreHold { .. } => "HELD_BACK",
        Rejection::Exhausted => "EXHAUSTED",
        // The enum is non-exhaustive for other crates. A panic is reported as a violation of the seed.
        other => panic!("no error code for this refusal: {other}"),
    }
}
