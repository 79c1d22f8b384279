//! A digest of the ledger's records and of the answers, which survives renaming, moving and deleting code.

use tenure_core::kernel::{AgentAnswer, Answer, Fence, FileAnswer, IntentAnswer, Refusal, Tick, WaitEnd};
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
                self.ticks(events.iter().map(|event| event.at()));
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
            Effect::Answer { caller, reply } => {
                self.text("answer").number(caller.0);
                self.reply(reply);
            }
            Effect::StepDown(failure) => {
                self.text("step down").text(match failure {
                    AppendFailure::Overtaken => "OVERTAKEN",
                    AppendFailure::NotWritten => "NOT_WRITTEN",
                    AppendFailure::Unknown => "UNKNOWN",
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

    fn answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Granted { leases } => self.text("granted").leases(leases),
            Answer::Queued { ticket, position, until, .. } => {
                self.text("queued").number(ticket.0).number(*position as u64).ticks([*until]);
            }
            Answer::Renewed { lease, expires_at } => {
                self.text("renewed").number(lease.0).ticks([*expires_at]);
            }
            Answer::Released { lease } => self.text("released").leases(&[*lease]),
            Answer::Continued { before, lease } => self.text("continued").leases(&[*before, *lease]),
            Answer::Ended { leases } => self.text("ended").leases(leases),
            Answer::Withdrawn { waited } => drop(self.text("withdrawn").number(u64::from(*waited))),
            Answer::Swept { more } => drop(self.text("swept").number(u64::from(*more))),
            Answer::Agent(answer) => self.agent(answer),
            Answer::File(answer) => self.file(answer),
            Answer::Intent(answer) => self.intent(answer),
            Answer::Spent { lease, .. } => self.text("spent").leases(&[*lease]),
            Answer::Refused(refusal) => drop(self.text(error_code(refusal))),
        }
    }

    fn agent(&mut self, answer: &AgentAnswer) {
        match answer {
            AgentAnswer::Granted { leases } => self.text("agent granted").leases(leases),
            AgentAnswer::Wait { ticket, position, until, .. } => {
                self.text("agent waits").number(ticket.0).number(*position as u64).ticks([*until]);
            }
            AgentAnswer::Die { retry_at, ended, .. } => {
                self.text("agent dies").leases(ended);
                self.ticks([*retry_at]);
            }
            AgentAnswer::Beaten(leases) => {
                self.text("agent heartbeat")
                    .leases(&leases.iter().map(|(lease, _)| *lease).collect::<Vec<_>>());
            }
            AgentAnswer::Released(leases) => self.text("agent released").leases(leases),
            AgentAnswer::Noted => drop(self.text("agent noted")),
            AgentAnswer::Touched { outside } => drop(self.text("agent touched").number(outside.len() as u64)),
        }
    }

    fn file(&mut self, answer: &FileAnswer) {
        match answer {
            FileAnswer::Noted => drop(self.text("file noted")),
            FileAnswer::Granted { leases, left } => {
                self.text("file granted").leases(leases);
                self.number(left.len() as u64);
            }
            FileAnswer::MustCheck { sessions } => {
                self.text("file must check").number(sessions.len() as u64);
            }
            FileAnswer::Wait { held, until } => {
                self.text("file waits").number(held.len() as u64).ticks([*until]);
            }
            FileAnswer::Blocked { held, report } => {
                self.text("file blocked").number(held.len() as u64).number(report.0);
            }
            FileAnswer::Released { resources, foreign } => {
                self.text("file released").number(resources.len() as u64).number(foreign.len() as u64);
            }
        }
    }

    fn intent(&mut self, answer: &IntentAnswer) {
        match answer {
            IntentAnswer::Accepted { is_new, .. } => {
                self.text("intent accepted").number(u64::from(*is_new));
            }
            IntentAnswer::Taken { leases, until, .. } => {
                self.text("intent taken").leases(leases);
                self.ticks([*until]);
            }
            IntentAnswer::Now { .. } => drop(self.text("intent now")),
            IntentAnswer::Kept { until, sessions } => {
                self.text("intent kept").number(sessions.len() as u64).ticks([*until]);
            }
            IntentAnswer::Wiped { sessions } => drop(self.text("intent wiped").number(*sessions as u64)),
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
fn error_code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Invalid(_) | Refusal::WrongDirection { .. } | Refusal::NotIdle => "INVALID",
        Refusal::TtlOutOfRange { .. } => "TTL_OUT_OF_RANGE",
        Refusal::Held { .. } => "HELD",
        Refusal::QueueFull { .. } => "QUEUE_FULL",
        Refusal::Deadlock { .. } => "DEADLOCK",
        Refusal::QuotaExceeded { .. } => "QUOTA_EXCEEDED",
        Refusal::KeyReused => "KEY_REUSED",
        Refusal::HolderTaken { .. } => "HOLDER_TAKEN",
        Refusal::NotFound | Refusal::NoSuchTicket | Refusal::NoSuchAgent | Refusal::NoSuchSession => {
            "NOT_FOUND"
        }
        Refusal::PriorityFixed { .. } => "PRIORITY_FIXED",
        Refusal::LeaseTimeUsed { .. } => "LEASE_TIME_USED",
        Refusal::MemoryStale { .. } => "DIGEST_STALE",
        Refusal::TooManySessions { .. } => "TOO_MANY_SESSIONS",
        Refusal::GuardLost => "GUARD_LOST",
        Refusal::NotHolder => "TOKEN_INVALID",
        Refusal::Over { .. } => "EXPIRED",
        Refusal::NoAuthority => "NO_AUTHORITY",
        Refusal::AuthorityBound => "AUTHORITY_BOUND",
        Refusal::OutOfScope { .. } => "OUT_OF_SCOPE",
        Refusal::BudgetExceeded { .. } => "BUDGET_EXCEEDED",
        Refusal::OutlivesParent { .. } => "OUTLIVES_PARENT",
        Refusal::TreeFull { .. } => "TREE_FULL",
        Refusal::NoSpace => "NO_SPACE",
        Refusal::HeldBack { .. } => "HELD_BACK",
        Refusal::Exhausted => "EXHAUSTED",
        // The enum is non-exhaustive for other crates. A panic is reported as a violation of the seed.
        other => panic!("no error code for this refusal: {other}"),
    }
}
