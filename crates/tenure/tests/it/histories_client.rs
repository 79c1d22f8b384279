//! A client that does whatever chance says, and notes what it asked and what it was told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_history::{Action, Answer, Mode, Operation, Want};
use tenure_testkit::{Response, TestClient, pause};

use crate::histories_stage::{Chance, Stage};
use crate::histories_words::{granted_in, mode_of, understood};

const RESOURCES: u64 = 3;

/// A lease of this client.
#[derive(Debug, Clone)]
struct Mine {
    fence: u64,
    token: String,
    resource: String,
    holder: String,
    mode: Mode,
}

/// An operation, and with which process its connection ended, if there was no answer.
pub struct Noted {
    pub operation: Operation,
    pub lost_with: Option<usize>,
}

/// One client.
pub struct Worker {
    name: String,
    stage: Arc<Stage>,
    chance: Chance,
    connection: Option<(usize, TestClient)>,
    mine: Vec<Mine>,
    /// Every lease that it ever had.
    known: Vec<(u64, String, String)>,
    /// What it asked last under a key: the same request can be sent again.
    keyed: Option<(Action, bool)>,
    keys: u64,
    noted: Vec<Noted>,
}

impl Worker {
    pub fn new(number: u64, stage: Arc<Stage>) -> Self {
        let name = format!("c{number}");
        let chance = Chance::new(stage.seed.wrapping_mul(1_000).wrapping_add(number));
        let (mine, known, noted) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, stage, chance, connection: None, mine, known, keyed: None, keys: 0, noted }
    }

    /// Works until the stage is closed.
    pub fn work(mut self) -> Vec<Noted> {
        while self.stage.is_open() {
            let action = self.choose();
            self.perform(action);
            pause(Duration::from_micros(self.chance.below(4_000)));
        }
        self.noted
    }

    fn choose(&mut self) -> Action {
        if let Some((action, is_open)) = self.keyed.take()
            && (is_open || self.chance.percent(20))
        {
            return action;
        }
        if !self.mine.is_empty() && self.chance.percent(75) {
            let place = self.chance.index(self.mine.len());
            return self.act_on(self.mine[place].clone());
        }
        match self.chance.below(10) {
            0..=1 if !self.known.is_empty() => {
                let (fence, resource, _) = self.known[self.chance.index(self.known.len())].clone();
                Action::Show { fence, resource }
            }
            0..=3 => Action::List { resource: self.resource() },
            _ => self.acquire(),
        }
    }

    fn act_on(&mut self, Mine { fence, resource, holder, mode, .. }: Mine) -> Action {
        match self.chance.below(100) {
            0..=39 => {
                let ttl_ms = self.chance.percent(30).then(|| 1_000 + self.chance.below(600));
                Action::Renew { fence, resource, ttl_ms }
            }
            40..=54 => Action::Show { fence, resource },
            55..=64 => Action::List { resource },
            65..=69 => {
                let to = if self.chance.percent(50) { holder } else { format!("{}.heir", self.name) };
                Action::Transfer { fence, resource, to, mode }
            }
            70..=77 => {
                let mode = if mode == Mode::Shared { Mode::Exclusive } else { Mode::Shared };
                Action::Change { fence, resource, holder, mode }
            }
            78..=79 => Action::Revoke { fence, resource },
            _ => Action::Release { fence, resource },
        }
    }

    fn acquire(&mut self) -> Action {
        let mut want = |resource| Want {
            resource,
            mode: if self.chance.percent(60) { Mode::Exclusive } else { Mode::Shared },
            ttl_ms: 1_000 + self.chance.below(500),
        };
        let wants = vec![want(format!("db:{}", self.stage.turn() % RESOURCES))];
        let wants = if self.chance.percent(10) {
            let names = (0..2).map(|number| format!("db:{number}"));
            names.map(|resource| Want { resource, ..wants[0].clone() }).collect()
        } else {
            wants
        };
        let wait_ms = if self.chance.percent(40) { 100 + self.chance.below(900) } else { 0 };
        let key = self.chance.percent(40).then(|| {
            self.keys += 1;
            format!("{}-{}", self.name, self.keys)
        });
        Action::Acquire { wants, holder: self.name.clone(), wait_ms, key }
    }

    fn resource(&mut self) -> String {
        format!("db:{}", self.chance.below(RESOURCES))
    }

    fn perform(&mut self, action: Action) {
        let Some((generation, connection)) = self.connection.take().or_else(|| self.stage.connect()) else {
            return;
        };
        let mut connection = connection;
        let (line, key, body) = self.request(&action);
        let invoked = self.stage.now();
        let said = connection.ask(&line, key.as_deref(), &body);
        let ended = self.stage.now();
        let (ended, answer, lost_with) = match said {
            Ok(said) => {
                let answer = understood(&action, &said);
                self.learn(&action, &said, answer.as_ref());
                self.connection = Some((generation, connection));
                (Some(ended), answer, None)
            }
            Err(_) => (None, None, Some(generation)),
        };
        if let Action::Acquire { key: Some(_), .. } = action {
            self.keyed = Some((action.clone(), answer.is_none()));
        }
        let operation = Operation { client: self.name.clone(), invoked, ended, action, answer };
        self.noted.push(Noted { operation, lost_with });
    }

    fn request(&self, action: &Action) -> (String, Option<String>, String) {
        let lease = |wanted: u64| self.known.iter().rfind(|(fence, ..)| *fence == wanted);
        let id = |fence: u64| lease(fence).map_or("", |(.., id)| id);
        let token = |wanted: u64| {
            let mine = self.mine.iter().find(|mine| mine.fence == wanted);
            mine.map_or("", |mine| mine.token.as_str())
        };
        let post = |fence: u64, what: &str, body: Value| {
            (format!("POST /v1/leases/{}/{what}", id(fence)), None, body.to_string())
        };
        match action {
            Action::Acquire { wants, holder, wait_ms, key } => {
                let one = |want: &Want| {
                    let Want { resource, mode, ttl_ms } = want;
                    let mode = mode.to_string();
                    json!({"resource": resource, "holder": holder, "ttlMs": ttl_ms, "mode": mode, "waitMs": wait_ms})
                };
                match &wants[..] {
                    [want] => ("POST /v1/leases".to_owned(), key.clone(), one(want).to_string()),
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
                let what = if *mode == Mode::Exclusive { "upgrade" } else { "downgrade" };
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
    fn learn(&mut self, action: &Action, said: &Response, answer: Option<&Answer>) {
        match (action, answer) {
            (_, Some(Answer::Granted { .. })) => {
                if let Action::Transfer { fence, .. } | Action::Change { fence, .. } = action {
                    self.mine.retain(|mine| mine.fence != *fence);
                }
                for granted in granted_in(&said.body) {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    let lease = &granted["lease"];
                    let (fence, resource) = (lease["fence"].as_u64().unwrap(), text(&lease["resource"]));
                    let (id, token) = (text(&lease["id"]), text(&granted["token"]));
                    self.known.push((fence, resource.clone(), id));
                    self.mine.retain(|mine| mine.fence != fence);
                    let (holder, mode) = (text(&lease["holder"]), mode_of(lease));
                    self.mine.push(Mine { fence, token, resource, holder, mode });
                }
            }
            (
                Action::Renew { fence, .. }
                | Action::Release { fence, .. }
                | Action::Transfer { fence, .. }
                | Action::Change { fence, .. }
                | Action::Revoke { fence, .. },
                Some(Answer::Over | Answer::Released | Answer::Unknown),
            ) if self.chance.percent(80) => {
                // Otherwise it acts on what is over once more.
                self.mine.retain(|mine| mine.fence != *fence);
            }
            _ => {}
        }
    }
}
