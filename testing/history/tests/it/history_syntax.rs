//! Histories and ledgers as stories. Times are milliseconds.
//!
//! ```text
//! a  0..5    acquire db x 100 -> granted 1       x is exclusive, s is shared
//! b  10..12  acquire db x 100 -> held a
//! b  13..    acquire db x 100                    no answer
//! b  13..20  acquire db x 100                    no answer, and nothing can come of it after 20
//! ```

use tenure_history::ledger::{LedgerEntry, LedgerEvent};
use tenure_history::{
    Action, Grant, History, LeaseMode, LeaseRequest, ObservedLease, ObservedState, Operation,
    OperationResponse,
};

pub const CLOCK: &str = "the clock";

/// The history that `text` tells.
pub fn parse_history(text: &str) -> History {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    History { clock: Some(CLOCK.to_owned()), operations: lines.map(operation).collect() }
}

/// The paragraphs of `text`, each of which tells a history. A line that begins with `#` is a comment.
pub fn split_histories(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#')).map(str::trim);
    let text = lines.collect::<Vec<_>>().join("\n");
    let found = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    let found: Vec<_> = found.map(str::to_owned).collect();
    assert!(!found.is_empty(), "no history: {text:?}");
    found
}

fn operation(line: &str) -> Operation {
    let (request, answer) =
        line.split_once("->").map_or((line, None), |(request, answer)| (request, Some(answer.trim())));
    let words: Vec<&str> = request.split_whitespace().collect();
    let (from, to) = words[1].split_once("..").unwrap_or_else(|| panic!("{line:?}"));
    let client = words[0].to_owned();
    let action = action(&client, &words[2..]);
    let answer = answer.map(|answer| self::answer(&action, answer));
    let time = |text: &str| (text.parse::<f64>().unwrap() * 1_000.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a story are small")]
    let time = |text: &str| time(text) as u64;
    Operation { client, invoked: time(from), ended: (!to.is_empty()).then(|| time(to)), action, answer }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn mode(text: &str) -> LeaseMode {
    if text == "x" { LeaseMode::Exclusive } else { LeaseMode::Shared }
}

fn action(client: &str, words: &[&str]) -> Action {
    let option = |name: &str| {
        let place = words.iter().position(|word| *word == name)?;
        Some(words[place + 1].to_owned())
    };
    match words {
        ["acquire", resources, how, ttl, ..] => {
            let request = |resource: &str| LeaseRequest {
                resource: resource.to_owned(),
                mode: mode(how),
                ttl_ms: number(ttl),
            };
            Action::Acquire {
                wants: resources.split(',').map(request).collect(),
                holder: option("as").unwrap_or_else(|| client.to_owned()),
                wait_ms: option("wait").map_or(0, |wait| number(&wait)),
                key: option("key"),
            }
        }
        ["renew", fence, resource, rest @ ..] => Action::Renew {
            fence: number(fence),
            resource: (*resource).to_owned(),
            ttl_ms: rest.first().map(|ttl| number(ttl)),
        },
        ["release", fence, resource] => {
            Action::Release { fence: number(fence), resource: (*resource).to_owned() }
        }
        ["revoke", fence, resource] => {
            Action::Revoke { fence: number(fence), resource: (*resource).to_owned() }
        }
        ["transfer", fence, resource, to, how] => Action::Transfer {
            fence: number(fence),
            resource: (*resource).to_owned(),
            to: (*to).to_owned(),
            mode: mode(how),
        },
        ["change", fence, resource, how] => Action::Change {
            fence: number(fence),
            resource: (*resource).to_owned(),
            holder: client.to_owned(),
            mode: mode(how),
        },
        ["show", fence, resource] => Action::Show { fence: number(fence), resource: (*resource).to_owned() },
        ["list", resource] => Action::List { resource: (*resource).to_owned() },
        _ => panic!("{words:?} cannot be asked"),
    }
}

fn answer(action: &Action, text: &str) -> OperationResponse {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ttl = match action {
        Action::Acquire { wants, .. } => wants[0].ttl_ms,
        _ => 0,
    };
    let resource = || match action {
        Action::Acquire { wants, .. } => wants[0].resource.clone(),
        Action::Change { resource, .. } => resource.clone(),
        other => panic!("{other:?} is not refused like this"),
    };
    match words[..] {
        ["granted", fences, ref rest @ ..] => {
            let valid_for_ms = rest.first().map_or(ttl, |valid| number(valid));
            let ttl_ms = if ttl == 0 { valid_for_ms } else { ttl };
            let grant = |fence| Grant { fence: number(fence), id: None, valid_for_ms, ttl_ms };
            OperationResponse::Granted { leases: fences.split(',').map(grant).collect() }
        }
        ["renewed", valid] => OperationResponse::Renewed { valid_for_ms: number(valid) },
        ["released"] if matches!(action, Action::Release { .. } | Action::Revoke { .. }) => {
            OperationResponse::Released
        }
        ["over"] => OperationResponse::Ended,
        ["unknown"] => OperationResponse::Unknown,
        ["held", by] => OperationResponse::Held { resource: resource(), by: Some(by.to_owned()) },
        ["refused", code] => OperationResponse::Refused { code: code.to_owned() },
        ["nothing"] => OperationResponse::Seen { leases: Vec::new() },
        _ => OperationResponse::Seen { leases: text.split(',').map(|one| seen(one.trim())).collect() },
    }
}

/// `FENCE HOLDER MODE STATE REMAINING`.
fn seen(text: &str) -> ObservedLease {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [fence, holder, how, state, remaining] = words[..] else { panic!("{text:?} cannot be seen") };
    let state = match state {
        "active" => ObservedState::Active,
        "expired" => ObservedState::Expired,
        _ => ObservedState::Released,
    };
    let (holder, remaining_ms) = (holder.to_owned(), number(remaining));
    ObservedLease { fence: number(fence), holder, mode: mode(how), state, remaining_ms }
}

/// The ledger that `text` tells, one entry a line: `MILLISECOND WHAT …`. Its clock is that of the histories.
pub fn parse_ledger(text: &str) -> Vec<LedgerEntry> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let clock = LedgerEvent::Clock { clock: CLOCK.to_owned(), microseconds: 0 };
    let first = LedgerEntry { seq: 1, at: 0, event: clock };
    let rest = (2..).zip(lines).map(|(seq, line)| entry(seq, line));
    std::iter::once(first).chain(rest).collect()
}

fn entry(seq: u64, line: &str) -> LedgerEntry {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = number(words[0]) * 1_000;
    let option = |name: &str| {
        let place = words.iter().position(|word| *word == name)?;
        Some(number(words[place + 1]))
    };
    let event = match words[1..] {
        ["issued", fence, resource, holder, how, ttl, ..] => LedgerEvent::Issued {
            fence: number(fence),
            id: format!("0-{fence}"),
            resource: resource.to_owned(),
            holder: holder.to_owned(),
            mode: mode(how),
            expires_at: at + number(ttl) * 1_000,
            ttl: number(ttl) * 1_000,
            ticket: option("ticket"),
            continues: option("continues"),
        },
        ["renewed", fence, until] => {
            LedgerEvent::Renewed { fence: number(fence), expires_at: number(until) * 1_000 }
        }
        ["released", fence] => LedgerEvent::Released { fence: number(fence) },
        ["expired", fence] => LedgerEvent::Expired { fence: number(fence) },
        ["revoked", fence] => LedgerEvent::Revoked { fence: number(fence), cause: "REVOKED".to_owned() },
        ["queued", ticket, holder, resources, how, until] => LedgerEvent::Queued {
            ticket: number(ticket),
            holder: holder.to_owned(),
            requests: resources.split(',').map(|resource| (resource.to_owned(), mode(how))).collect(),
            until: number(until) * 1_000,
        },
        ["left", ticket] => LedgerEvent::WaitEnded { ticket: number(ticket) },
        _ => panic!("{line:?} does not happen"),
    };
    LedgerEntry { seq, at, event }
}
