//! A client that does whatever chance says, and notes what it asked and what it was told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_history::{Action, LeaseMode, LeaseRequest, Operation, OperationResponse};
use tenure_testkit::{Response, TestClient, sleep};

use crate::histories::fixture::{HistoryContext, Rng};
use crate::histories::parse::{granted_leases, mode_of, parse_answer};

const RESOURCES: u64 = 3;

/// A lease of this client.
#[derive(Debug, Clone)]
struct OwnLease {
    fence: u64,
    token: String,
    resource: String,
    holder: String,
    mode: LeaseMode,
}

/// An operation, and with which process its connection ended, if there was no answer.
pub struct RecordedOperation {
    pub operation: Operation,
    pub lost_generation: Option<usize>,
}

/// One client.
pub struct HistoryClient {
    name: String,
    context: Arc<HistoryContext>,
    rng: Rng,
    connection: Option<(usize, TestClient)>,
    mine: Vec<OwnLease>,
    /// Every lease that it ever had.
    known: Vec<(u64, String, String)>,
    /// What it asked last under a key: the same request can be sent again.
    keyed: Option<(Action, bool)>,
    keys: u64,
    noted: Vec<RecordedOperation>,
}

impl HistoryClient {
    pub fn new(number: u64, context: Arc<HistoryContext>) -> Self {
        let name = format!("c{number}");
        let rng = Rng::new(context.seed.wrapping_mul(1_000).wrapping_add(number));
        let (mine, known, noted) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, context, rng, connection: None, mine, known, keyed: None, keys: 0, noted }
    }

    /// Works until the stage is closed.
    pub fn run(mut self) -> Vec<RecordedOperation> {
        while self.context.is_open() {
            let action = self.choose();
            self.perform(action);
            sleep(Duration::from_micros(self.rng.below(4_000)));
        }
        self.noted
    }

    fn choose(&mut self) -> Action {
        if let Some((action, is_open)) = self.keyed.take()
            && (is_open || self.rng.percent(20))
        {
            return action;
        }
        if !self.mine.is_empty() && self.rng.percent(75) {
            let place = self.rng.index(self.mine.len());
            return self.act_on(self.mine[place].clone());
        }
        match self.rng.below(10) {
            0..=1 if !self.known.is_empty() => {
                let (fence, resource, _) = self.known[self.rng.index(self.known.len())].clone();
                Action::Show { fence, resource }
            }
            0..=3 => Action::List { resource: self.resource() },
            _ => self.acquire(),
        }
    }

    fn act_on(&mut self, OwnLease { fence, resource, holder, mode, .. }: OwnLease) -> Action {
        match self.rng.below(100) {
            0..=39 => {
                let ttl_ms = self.rng.percent(30).then(|| 1_000 + self.rng.below(600));
                Action::Renew { fence, resource, ttl_ms }
            }
            40..=54 => Action::Show { fence, resource },
            55..=64 => Action::List { resource },
            65..=69 => {
                let to = if self.rng.percent(50) { holder } else { format!("{}.heir", self.name) };
                Action::Transfer { fence, resource, to, mode }
            }
            70..=77 => {
                let mode = if mode == LeaseMode::Shared { LeaseMode::Exclusive } else { LeaseMode::Shared };
                Action::Change { fence, resource, holder, mode }
            }
            78..=79 => Action::Revoke { fence, resource },
            _ => Action::Release { fence, resource },
        }
    }

    fn acquire(&mut self) -> Action {
        let mut request = |resource| LeaseRequest {
            resource,
            mode: if self.rng.percent(60) { LeaseMode::Exclusive } else { LeaseMode::Shared },
            ttl_ms: 1_000 + self.rng.below(500),
        };
        let requests = vec![request(format!("db:{}", self.context.next_turn() % RESOURCES))];
        let wants = if self.rng.percent(10) {
            let names = (0..2).map(|number| format!("db:{number}"));
            names.map(|resource| LeaseRequest { resource, ..requests[0].clone() }).collect()
        } else {
            requests
        };
        let wait_ms = if self.rng.percent(40) { 100 + self.rng.below(900) } else { 0 };
        let key = self.rng.percent(40).then(|| {
            self.keys += 1;
            format!("{}-{}", self.name, self.keys)
        });
        Action::Acquire { wants, holder: self.name.clone(), wait_ms, key }
    }

    fn resource(&mut self) -> String {
        format!("db:{}", self.rng.below(RESOURCES))
    }

    fn perform(&mut self, action: Action) {
        let Some((generation, connection)) = self.connection.take().or_else(|| self.context.connect()) else {
            return;
        };
        let mut connection = connection;
        let (line, key, body) = self.request(&action);
        let invoked = self.context.now();
        let response = connection.request(&line, key.as_deref(), &body);
        let ended = self.context.now();
        let (ended, answer, lost_with) = match response {
            Ok(response) => {
                let answer = parse_answer(&action, &response);
                self.learn(&action, &response, answer.as_ref());
                self.connection = Some((generation, connection));
                (Some(ended), answer, None)
            }
            Err(_) => (None, None, Some(generation)),
        };
        if let Action::Acquire { key: Some(_), .. } = action {
            self.keyed = Some((action.clone(), answer.is_none()));
        }
        let operation = Operation { client: self.name.clone(), invoked, ended, action, answer };
        self.noted.push(RecordedOperation { operation, lost_generation: lost_with });
    }

    fn request(&self, action: &Action) -> (String, Option<String>, String) {
        let lease = |requested_fence: u64| self.known.iter().rfind(|(fence, ..)| *fence == requested_fence);
        let id = |fence: u64| lease(fence).map_or("", |(.., id)| id);
        let token = |fence: u64| {
            let mine = self.mine.iter().find(|mine| mine.fence == fence);
            mine.map_or("", |mine| mine.token.as_str())
        };
        let post = |fence: u64, what: &str, body: Value| {
            (format!("POST /v1/leases/{}/{what}", id(fence)), None, body.to_string())
        };
        match action {
            Action::Acquire { wants, holder, wait_ms, key } => {
                let one = |request: &LeaseRequest| {
                    let LeaseRequest { resource, mode, ttl_ms } = request;
                    let mode = mode.to_string();
                    json!({"resource": resource, "holder": holder, "ttlMs": ttl_ms, "mode": mode, "waitMs": wait_ms})
                };
                match &wants[..] {
                    [request] => ("POST /v1/leases".to_owned(), key.clone(), one(request).to_string()),
                    all => {
                        let all: Vec<_> = all.iter().map(one).collect();
                        (
                            "POST /v1/leases/batch".to_owned(),
                            key.clone(),
                            json!({ "leases": all }).to_string(),
                        )
                    }
                }
            }
            Action::Renew { fence, ttl_ms, .. } => {
                let mut body = json!({ "token": token(*fence) });
                if let Some(ttl_ms) = ttl_ms {
                    body["ttlMs"] = (*ttl_ms).into();
                }
                post(*fence, "renew", body)
            }
            Action::Release { fence, .. } => post(*fence, "release", json!({ "token": token(*fence) })),
            Action::Transfer { fence, to, .. } => {
                post(*fence, "transfer", json!({ "token": token(*fence), "to": to }))
            }
            Action::Change { fence, mode, .. } => {
                let what = if *mode == LeaseMode::Exclusive { "upgrade" } else { "downgrade" };
                post(*fence, what, json!({ "token": token(*fence) }))
            }
            Action::Revoke { fence, .. } => post(*fence, "revoke", json!({ "reason": "by chance" })),
            Action::Show { fence, .. } => (format!("GET /v1/leases/{}", id(*fence)), None, String::new()),
            Action::List { resource } => {
                (format!("GET /v1/leases?resource={resource}&limit=1000"), None, String::new())
            }
        }
    }

    /// What it has from now on.
    fn learn(&mut self, action: &Action, response: &Response, answer: Option<&OperationResponse>) {
        match (action, answer) {
            (_, Some(OperationResponse::Granted { .. })) => {
                if let Action::Transfer { fence, .. } | Action::Change { fence, .. } = action {
                    self.mine.retain(|mine| mine.fence != *fence);
                }
                for granted in granted_leases(&response.body) {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    let lease = &granted["lease"];
                    let (fence, resource) = (lease["fence"].as_u64().unwrap(), text(&lease["resource"]));
                    let (id, token) = (text(&lease["id"]), text(&granted["token"]));
                    self.known.push((fence, resource.clone(), id));
                    self.mine.retain(|mine| mine.fence != fence);
                    let (holder, mode) = (text(&lease["holder"]), mode_of(lease));
                    self.mine.push(OwnLease { fence, token, resource, holder, mode });
                }
            }
            (
                Action::Renew { fence, .. }
                | Action::Release { fence, .. }
                | Action::Transfer { fence, .. }
                | Action::Change { fence, .. }
                | Action::Revoke { fence, .. },
                Some(OperationResponse::Ended | OperationResponse::Released | OperationResponse::Unknown),
            ) if self.rng.percent(80) => {
                // Otherwise it acts on what is over once more.
                self.mine.retain(|mine| mine.fence != *fence);
            }
            _ => {}
        }
    }
}
