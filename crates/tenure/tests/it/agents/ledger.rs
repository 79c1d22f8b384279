//! What the ledger says about agents, read with `tenure log` and judged anew: by other code than that which decided it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::intents::ledger::LedgerEvents;

/// What happened how often.
#[derive(Debug, Default)]
pub struct LedgerStatistics {
    pub events: u64,
    pub granted: u64,
    pub served: u64,
    pub queued: u64,
    pub timed_out: u64,
    pub aborts: u64,
    pub taken: u64,
    pub longest_wait_ms: u64,
}

struct RecordedLease {
    resource: String,
    holder: String,
    mode: String,
    until: u64,
}

struct RecordedWait {
    rank: (u64, String),
    resources: Vec<(String, String)>,
    since: u64,
    until: u64,
}

/// Judges every event in its order. `reported` is what each agent was told, in its order.
pub fn check_events(story: &LedgerEvents, reported: &[Vec<u64>]) -> LedgerStatistics {
    let mut figures = LedgerStatistics::default();
    let mut leases: BTreeMap<u64, RecordedLease> = BTreeMap::new();
    let mut ever: BTreeSet<u64> = BTreeSet::new();
    let mut pending: BTreeMap<u64, RecordedWait> = BTreeMap::new();
    let mut ages: BTreeMap<String, u64> = BTreeMap::new();
    for event in story.events() {
        figures.events += 1;
        // Some events, such as those of keys, have no time.
        let tick = event["tick"].as_u64().unwrap_or(0);
        let (lease, wait) = (&event["lease"], &event["wait"]);
        let agent = text(&event["agent"]["agent_id"]).to_owned();
        match text(&event["type"]) {
            "lease.issued" => {
                let fence = number(&lease["fence"]);
                assert!(ever.last().is_none_or(|last| *last < fence), "fences grow: {event}");
                ever.insert(fence);
                let new = RecordedLease {
                    resource: text(&lease["resource"]).to_owned(),
                    holder: text(&lease["holder"]).to_owned(),
                    mode: text(&lease["mode"]).to_owned(),
                    until: number(&lease["expiresTick"]),
                };
                for other in leases.values().filter(|other| other.holder != new.holder) {
                    assert!(!conflicts(&new.resource, &new.mode, &other.resource, &other.mode), "{event}");
                }
                if let Some(served) = lease["ticket"].as_u64().and_then(|ticket| pending.remove(&ticket)) {
                    assert!(tick < served.until && served.rank.1 == new.holder, "{event}");
                    figures.longest_wait_ms = figures.longest_wait_ms.max((tick - served.since) / 1_000);
                    figures.served += 1;
                }
                figures.granted += 1;
                leases.insert(fence, new);
            }
            "lease.renewed" => {
                let active = leases.get_mut(&number(&lease["fence"])).expect("it lives");
                assert!(tick < active.until, "what is over is not renewed: {event}");
                active.until = number(&lease["expiresTick"]);
            }
            "lease.released" | "lease.expired" | "lease.revoked" => {
                figures.taken += u64::from(event["cause"] == "DIED" || lease["cause"] == "DIED");
                assert!(leases.remove(&number(&lease["fence"])).is_some(), "it ends once: {event}");
            }
            "agent.began" => {
                let holds = leases.values().any(|lease| lease.holder == agent && tick < lease.until);
                let waiting = pending.values().any(|wait| wait.rank.1 == agent && tick < wait.until);
                let age = number(&event["agent"]["priority_timestamp"]);
                let before = ages.insert(agent, age);
                assert!(before.is_none_or(|before| before <= age && !holds && !waiting), "{event}");
            }
            "agent.waits" => {
                figures.queued += 1;
                let wants = wait["wants"].as_array().unwrap().iter();
                let wants =
                    wants.map(|entry| (text(&entry["resource"]).into(), text(&entry["predicate"]).into()));
                let rank = (number(&event["agent"]["priority_timestamp"]), agent);
                let wait_until = number(&wait["untilTick"]);
                let new = RecordedWait { rank, resources: wants.collect(), since: tick, until: wait_until };
                for lease in leases.values().filter(|lease| lease.holder != new.rank.1 && tick < lease.until)
                {
                    let blocks = new
                        .resources
                        .iter()
                        .any(|(name, mode)| conflicts(name, mode, &lease.resource, &lease.mode));
                    let age = (ages[&lease.holder], lease.holder.clone());
                    assert!(!blocks || age > new.rank, "it waits for an older one: {event}");
                }
                pending.insert(number(&wait["ticket"]), new);
            }
            "agent.left" => {
                let ended = pending.remove(&number(&wait["ticket"])).expect("it waited");
                let timed_out = wait["end"] == "TIMED_OUT";
                assert_eq!(timed_out, ended.until <= tick, "a wait ends at its time: {event}");
                figures.timed_out += u64::from(timed_out);
            }
            "agent.died" => figures.aborts += 1,
            _ => {}
        }
    }
    assert!(pending.is_empty(), "every wait ended");
    for fence in reported.iter().flatten() {
        assert!(ever.contains(fence), "{fence} was told and is not in the ledger");
    }
    figures
}

/// Whether two leases of different agents must not live at once.
fn conflicts(one: &str, mode: &str, other: &str, other_mode: &str) -> bool {
    let looks = |mode: &str| matches!(mode, "CONSUMES" | "DEPENDS_ON");
    let is_compatible = looks(mode) && (looks(other_mode) || other_mode == "PROVIDES")
        || mode == "PROVIDES" && looks(other_mode);
    !is_compatible && overlaps(one, other)
}

fn overlaps(one: &str, other: &str) -> bool {
    let beginning = |name: &str| name.find('*').or_else(|| name.ends_with('/').then_some(name.len()));
    match (beginning(one), beginning(other)) {
        (None, None) => one == other,
        (Some(end), None) => other.starts_with(&one[..end]),
        (None, Some(end)) => one.starts_with(&other[..end]),
        (Some(end), Some(till)) => {
            one[..end].starts_with(&other[..till]) || other[..till].starts_with(&one[..end])
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}
