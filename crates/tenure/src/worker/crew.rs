//! The worker at work: does what the plan says, and tells it what came of that.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_api::{Changes, LeaveGuard};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::Over;
use super::asked::Asked;
use super::guard::Guard;
use super::insist::{Stop, told};
use super::logs;
use super::pipeline::{Order, Pipeline};
use super::plan::Plan;
use super::requests::Requests;
use super::settings::Settings;
use super::steps::{Act, Input};
use crate::message::{complain, tell};
use crate::watched::clock::{Timer, now};

/// When pipelines that were told to end with the worker are killed, and when the worker goes all the same.
const KILL_AFTER: Duration = Duration::from_secs(7);
const GO_AFTER: Duration = Duration::from_secs(9);
/// How long killed pipelines may take to be gone after their leases, once the guard is lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a server may take to hear that we go.
const FAREWELL: Duration = Duration::from_secs(1);

/// A worker with its guard, and everything that it has begun.
pub struct Crew {
    requests: Requests,
    settings: Arc<Settings>,
    plan: Plan,
    inputs: UnboundedReceiver<Input>,
    tell: UnboundedSender<Input>,
    /// How to reach the pipelines that are not gone.
    pipelines: HashMap<String, UnboundedSender<Order>>,
    /// What is being asked. It ends with us.
    asking: JoinSet<()>,
}

impl Crew {
    /// A crew that has done nothing yet.
    pub fn new(asked: Asked, settings: Arc<Settings>, guard: Guard) -> Self {
        let (tell, inputs) = mpsc::unbounded_channel();
        let plan = Plan::new(guard.until, settings.renew_every_ms.saturating_mul(1_000), now());
        let requests = Requests::new(asked, settings.clone(), guard.fence, tell.clone());
        let (pipelines, asking) = (HashMap::new(), JoinSet::new());
        Self { requests, settings, plan, inputs, tell, pipelines, asking }
    }

    /// Works until it is told to stop, or the guard is lost. `first` is how sessions were when it began.
    pub async fn work(mut self, first: Changes, stop: &Stop) -> Result<(), Over> {
        let timer = Timer::new().map_err(Over::System)?;
        let _ = self.tell.send(Input::Changed(first.sessions));
        self.asking.spawn(self.requests.clone().listen(first.revision));
        // When to kill, and when to go.
        let mut stopping: Option<[Instant; 2]> = None;
        loop {
            let [kill_at, go_at] = stopping.map_or([None, None], |[kill, go]| [Some(kill), Some(go)]);
            let acts = tokio::select! {
                input = self.inputs.recv() => {
                    let input = input.expect("this crew can tell itself something");
                    self.note(&input);
                    self.plan.tell(input)
                }
                () = timer.wait_until(Some(self.plan.wake_at())) => self.plan.wake(now()),
                () = told(stop), if stopping.is_none() => {
                    let begun = Instant::now();
                    stopping = Some([begun + KILL_AFTER, begun + GO_AFTER]);
                    self.plan.tell(Input::Stop)
                }
                () = until(kill_at) => {
                    self.order_all(|| Order::Kill);
                    stopping = stopping.map(|[_, go]| [go, go]);
                    Vec::new()
                }
                () = until(go_at) => break,
            };
            for act in acts {
                if let Act::GiveUp(why) = act {
                    return Err(self.give_up(why).await);
                }
                self.act(act);
            }
            while self.asking.try_join_next().is_some() {}
            if self.plan.is_done() {
                break;
            }
        }
        self.asking.abort_all();
        let leaving = LeaveGuard { guard: self.requests.guard() };
        // If the server does not hear it, the guard runs out.
        let _ = timeout(FAREWELL, self.requests.asked().leave(&leaving)).await;
        Ok(())
    }

    /// Who is gone cannot be told anything any more.
    fn note(&mut self, input: &Input) {
        if let Input::Gone(session, _) | Input::NotStarted(session, _) | Input::TooLate(session) = input {
            self.pipelines.remove(session);
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Start(session, taken, until) => self.start(Pipeline { session: *session, taken, until }),
            Act::Extend(session, until) => self.order(&session, Order::Extend(until)),
            Act::End(session) => self.order(&session, Order::End),
            Act::GiveUp(_) => {}
            request => {
                self.asking.spawn(self.requests.clone().make(request));
            }
        }
    }

    fn start(&mut self, pipeline: Pipeline) {
        let (orders, received) = mpsc::unbounded_channel();
        self.pipelines.insert(pipeline.session.session_id.clone(), orders);
        let (settings, tell) = (self.settings.clone(), self.tell.clone());
        let live = self.pipelines.keys().cloned().collect();
        if let Err(error) = logs::prune(&settings.logs, settings.logs_kept, &live) {
            complain("old logs of sessions cannot be removed", &error);
        }
        // Not among what ends with us: it ends when its pipeline has ended.
        tokio::spawn(async move { pipeline.carry_out(&settings, received, &tell).await });
    }

    fn order(&self, session: &str, order: Order) {
        if let Some(pipeline) = self.pipelines.get(session) {
            // One that does not hear is gone, and says so.
            let _ = pipeline.send(order);
        }
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for session in self.pipelines.keys() {
            self.order(session, order());
        }
    }

    /// The guard is lost: everything ends, and nothing can be asked any more.
    async fn give_up(mut self, why: String) -> Over {
        self.asking.abort_all();
        self.order_all(|| Order::End);
        let patience = Duration::from_millis(self.settings.ttl_ms) + PATIENCE;
        let gone = async {
            while !self.pipelines.is_empty() {
                match self.inputs.recv().await {
                    Some(input) => self.note(&input),
                    None => break,
                }
            }
        };
        if timeout(patience, gone).await.is_err() {
            let left: Vec<&str> = self.pipelines.keys().map(String::as_str).collect();
            tell(&format!(
                "tenure: the pipelines of these sessions do not end: {}. Look for their processes.\n",
                left.join(", ")
            ));
        }
        Over::GuardLost(why)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
