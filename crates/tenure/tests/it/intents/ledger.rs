//! What the ledger says about sessions and their leases, read with `tenure log` and added up anew: by other code than that which
//! decided it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tenure_testkit::{TestHome, tenure_command};

/// Every event, in order.
pub struct LedgerEvents(Vec<Value>);

/// A lease that nobody has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ActiveLease {
    resource: String,
    session: String,
}

impl LedgerEvents {
    /// Reads the ledger, also while a server writes it.
    pub fn read(folder: &Path, data: &Path) -> Self {
        let mut command = tenure_command(folder);
        let output = command.args(["log", "--json", "--data"]).arg(data).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        Self(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// Reads the ledger of a home.
    pub fn read_home(home: &TestHome) -> Self {
        Self::read(home.folder(), &home.path("data"))
    }

    /// A story that a test made up.
    pub fn from_events(events: Vec<Value>) -> Self {
        Self(events)
    }

    /// Every event, in its order.
    pub fn events(&self) -> impl Iterator<Item = &Value> {
        self.0.iter()
    }

    /// The events of this type.
    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |event| event["type"] == kind)
    }

    /// Every lease that was ever given out on a resource with this beginning.
    pub fn leases_on(&self, prefix: &str) -> Vec<&Value> {
        let leases = self.of_type("lease.issued").map(|event| &event["lease"]);
        leases.filter(|lease| text(&lease["resource"]).starts_with(prefix)).collect()
    }

    /// What ended the lease with this fence: the whole event.
    pub fn end_of(&self, fence: &Value) -> Option<&Value> {
        let ends = ["lease.released", "lease.expired", "lease.revoked"];
        let mut ends = self.0.iter().filter(|event| ends.iter().any(|end| event["type"] == *end));
        ends.find(|event| event["lease"]["fence"] == *fence)
    }

    /// In which state each session is at the end.
    pub fn states(&self) -> BTreeMap<String, String> {
        let events = self.0.iter().filter(|event| text(&event["type"]).starts_with("intent."));
        events
            .map(|event| &event["session"])
            .map(|session| (text(&session["session_id"]).to_owned(), text(&session["state"]).to_owned()))
            .collect()
    }

    /// No tuner, channel or recording ever belonged to two sessions, whether one asks the leases or the sessions.
    pub fn check_exclusive(&self) {
        let mut leases: BTreeMap<u64, ActiveLease> = BTreeMap::new();
        let mut tuners: BTreeMap<u64, String> = BTreeMap::new();
        for event in &self.0 {
            let lease = &event["lease"];
            match text(&event["type"]) {
                "lease.issued" => {
                    let held = ActiveLease {
                        resource: text(&lease["resource"]).to_owned(),
                        session: text(&lease["holder"]).to_owned(),
                    };
                    let other = leases.values().find(|other| other.resource == held.resource);
                    assert_eq!(other, None, "it was held already: {event}");
                    leases.insert(lease["fence"].as_u64().unwrap(), held);
                }
                "lease.released" | "lease.expired" | "lease.revoked" => {
                    let ended = leases.remove(&lease["fence"].as_u64().unwrap());
                    assert!(ended.is_some(), "what nobody has cannot end: {event}");
                }
                "intent.starting" => {
                    let session = &event["session"];
                    if let Some(slot) = session["slot"].as_u64() {
                        let id = text(&session["session_id"]).to_owned();
                        let other = tuners.insert(slot, id);
                        assert_eq!(other, None, "tuner {slot} had a session already: {event}");
                    }
                }
                "intent.ended" => tuners.retain(|_, id| *id != event["session"]["session_id"]),
                _ => {}
            }
        }
    }

    /// Whether leases of channels and tuners were given to the worker's sessions alone, each right before its session starts.
    pub fn check_taken_by_worker(&self) {
        let mut unmatched: Vec<&Value> = Vec::new();
        for event in &self.0 {
            let resource = text(&event["lease"]["resource"]);
            let is_of_session =
                ["service:", "tuner:", "recording:"].iter().any(|domain| resource.starts_with(domain));
            match text(&event["type"]) {
                "lease.issued" if is_of_session => unmatched.push(&event["lease"]),
                "intent.starting" => {
                    for lease in unmatched.drain(..) {
                        assert_eq!(lease["holder"], event["session"]["session_id"], "{lease}");
                        assert_eq!(lease["principal"], "system:orchestrator", "{lease}");
                    }
                }
                _ => assert!(
                    unmatched.is_empty(),
                    "a lease without a session that starts: {unmatched:?} before {event}"
                ),
            }
        }
        assert!(unmatched.is_empty(), "a lease without a session: {unmatched:?}");
    }
}

/// The text of a value; nothing, if it is none.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
