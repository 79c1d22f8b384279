//! A task per lease: turns the keeper's effects into requests, and answers into its inputs. It decides nothing that the
//! keeper could decide.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tenure_api::{Acquire, Code, Granted};
use tenure_core::kernel::{Fence, Span};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::failure::{HoldError, Lost};
use super::guard::{Guard, Order, Snapshot};
use super::heard::Heard;
use super::holding::{OnQueue, Wait, Wish};
use super::place;
use super::requests::{self, What};
use super::withdraw::withdraw;
use crate::background::GoingOn;
use crate::client::Client;
use crate::clock::{boot_microseconds, sleep_until_some};
use crate::error::Error;
use crate::keeper::{Attempt, Call, Effect, Input, Keeper};
use crate::key::{Secret, random};

/// How it begins.
pub(super) enum Begin {
    /// It is asked for.
    Wish { wants: Vec<Acquire>, is_batch: bool },
    /// It is there already, in answer to what was sent then.
    Granted { granted: Box<Granted>, sent: u64 },
}

/// Whoever does not want to wait still wants to know: for so long a request is repeated whose answer was lost.
const NOT_WAITING: Duration = Duration::from_secs(10);
/// The server says by itself when a wait is over; it is given this much longer to say so.
pub(super) const SLACK: Duration = Duration::from_secs(5);
/// So many requests for one lease may be under way: the newest, and the one before, which may be answered first.
const MOST_ACQUIRING: usize = 2;
/// A request for a lease that nobody wants any more is waited for so long, if it may yet be answered.
const LAST_WORD: Duration = Duration::from_secs(30);

type Answer = oneshot::Sender<Result<Guard, HoldError>>;

pub(super) struct Driver {
    client: Client,
    pub(super) wish: Arc<Wish>,
    pub(super) wait: Wait,
    pub(super) keeper: Keeper,
    /// What was granted, by the first fence of each: there is more than one only if something went wrong.
    pub(super) granted: BTreeMap<Fence, Arc<Vec<Granted>>>,
    pub(super) state: Option<watch::Sender<Snapshot>>,
    heard: mpsc::UnboundedSender<Heard>,
    orders: mpsc::UnboundedReceiver<Order>,
    /// Goes into the guard.
    give_orders: Option<mpsc::UnboundedSender<Order>>,
    answer: Option<Answer>,
    /// Requests for the lease that may be answered yet.
    pub(super) acquiring: VecDeque<(Attempt, AbortHandle)>,
    /// Tells the place in the queue.
    telling: Option<AbortHandle>,
    /// Whether there was ever a connection.
    pub(super) was_reached: bool,
    /// When nobody wants to wait any more, or for the last word.
    pub(super) until: Option<u64>,
    pub(super) last_error: Option<Error>,
    pub(super) how_it_ended: Option<String>,
    reason: Option<String>,
    pub(super) released: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) is_stopped: bool,
    /// What lives on of several leases of which one is over. It is given back when the program is done, and not before:
    /// it may still be at work.
    pub(super) left_over: Option<Arc<Vec<Granted>>>,
    /// The answer to a request for the lease was lost not long ago.
    pub(super) is_in_doubt: bool,
    /// The withdrawal that got us out of the queue, while something may yet get us into it again.
    pub(super) left: Option<Attempt>,
    _going_on: GoingOn,
}

/// Starts the task. `answer` gets the guard; when nobody waits for it any more, everything is taken back.
pub(super) fn start(client: Client, begin: Begin, wait: Wait, on_queue: Option<OnQueue>, answer: Answer) {
    let (heard, hears) = mpsc::unbounded_channel();
    let (give_orders, orders) = mpsc::unbounded_channel();
    let now = boot_microseconds();
    let (wish, granted) = match begin {
        Begin::Wish { wants, is_batch } => (Wish::new(wants, is_batch, wait), None),
        Begin::Granted { granted, sent } => (Wish::new(Vec::new(), false, Wait::No), Some((granted, sent))),
    };
    let ttl_ms = wish.wants.iter().map(|want| want.ttl_ms).min();
    let ttl_ms = ttl_ms.or_else(|| granted.as_ref().map(|(granted, _)| granted.lease.ttl_ms)).unwrap_or(0);
    let telling = on_queue
        .filter(|_| wish.waits())
        .map(|tell| tokio::spawn(place::tell(client.clone(), wish.clone(), tell)).abort_handle());
    let patience = match wait {
        Wait::No => Some(NOT_WAITING),
        Wait::For(wait) => Some(wait.saturating_add(SLACK)),
        Wait::Forever => None,
    };
    let driver = Driver {
        _going_on: client.background().begin(),
        client,
        wish,
        wait,
        keeper: Keeper::new(Span::from_millis(ttl_ms)),
        granted: BTreeMap::new(),
        state: None,
        heard,
        orders,
        give_orders: Some(give_orders),
        answer: Some(answer),
        acquiring: VecDeque::new(),
        telling,
        was_reached: granted.is_some(),
        until: patience.map(|patience| now.saturating_add(micros(patience))),
        last_error: None,
        how_it_ended: None,
        reason: None,
        released: None,
        is_stopped: false,
        left_over: None,
        is_in_doubt: false,
        left: None,
    };
    tokio::spawn(driver.run(granted, hears));
}

impl Driver {
    async fn run(mut self, granted: Option<(Box<Granted>, u64)>, mut hears: mpsc::UnboundedReceiver<Heard>) {
        match granted {
            None => self.step(Input::Start),
            Some((granted, sent)) => self.begin_with(*granted, sent),
        }
        while !self.is_finished() || self.left_over.is_some() && !self.is_stopped {
            tokio::select! {
                Some(heard) = hears.recv() => self.hear(heard),
                order = self.orders.recv(), if !self.is_stopped => self.obey(order),
                () = given_up(&mut self.answer) => {
                    self.answer = None;
                    self.stop();
                }
                () = sleep_until_some(self.keeper.wake_at()) => self.step(Input::Woken),
                () = sleep_until_some(self.until) => self.time_is_up(),
            }
        }
        if let Some(leases) = self.left_over.take()
            && let What::Failed(error) = requests::release(&self.client, leases, self.reason.take()).await
        {
            self.last_error = Some(error);
        }
        if let Some(released) = self.released.take() {
            let _ = released.send(self.last_error.take().map_or(Ok(()), Err));
        }
    }

    /// Nothing is left to be said, and nothing can come any more.
    fn is_finished(&self) -> bool {
        self.keeper.is_done() && self.acquiring.is_empty() && self.answer.is_none()
    }

    /// As if the keeper had asked itself.
    fn begin_with(&mut self, granted: Granted, sent: u64) {
        for effect in self.keeper.step(Input::Start, sent, random()) {
            if let Effect::Send { attempt, call: Call::Acquire } = effect {
                let (wish, what) = (self.wish.clone(), What::Granted(vec![granted]));
                return self.hear(Heard { attempt, wish, what });
            }
        }
    }

    pub(super) fn step(&mut self, input: Input) {
        let effects = self.keeper.step(input, boot_microseconds(), random());
        effects.into_iter().for_each(|effect| self.perform(effect));
        self.publish();
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { attempt, call } => self.send(attempt, call),
            Effect::Held(fence) => self.held(fence),
            Effect::Lost => {
                let how = self.how_it_ended.take();
                let lost = how.map_or(Lost::TimeUp, |how| Lost::Ended { how });
                self.state
                    .iter()
                    .for_each(|state| state.send_modify(|state| state.lost = Some(lost.clone())));
            }
            Effect::Refused => {
                let error = self.last_error.take().unwrap_or_else(|| self.no_answer());
                self.answer_with(Err(hold_error(error)));
                self.expect_the_last_word();
            }
        }
    }

    fn send(&mut self, attempt: Attempt, call: Call) {
        let (client, wish, heard) = (self.client.clone(), self.wish.clone(), self.heard.clone());
        let leases = match call {
            Call::Renew(fence) | Call::Release(fence) => {
                self.granted.get(&fence).cloned().unwrap_or_default()
            }
            Call::Acquire | Call::Withdraw => Arc::default(),
        };
        let (reason, is_under_way) = (self.reason.clone(), !self.acquiring.is_empty());
        let request = tokio::spawn(async move {
            let what = match call {
                Call::Acquire => acquire(&client, &wish, attempt, &heard).await,
                Call::Renew(_) => requests::renew(&client, leases).await,
                Call::Release(_) => requests::release(&client, leases, reason).await,
                Call::Withdraw => withdraw(&client, &wish, is_under_way).await,
            };
            let _ = heard.send(Heard { attempt, wish, what });
        });
        if call == Call::Acquire {
            self.acquiring.push_back((attempt, request.abort_handle()));
            // With the key another connection takes its place. Who waits for hours has asked thousands of times.
            while self.acquiring.len() > MOST_ACQUIRING {
                self.acquiring.pop_front().into_iter().for_each(|(_, request)| request.abort());
            }
        }
    }

    fn held(&mut self, fence: Fence) {
        self.until = None;
        self.last_error = None;
        let granted = self.granted.get(&fence).cloned().unwrap_or_default();
        let Some((first, give_orders)) = granted.first().zip(self.give_orders.take()) else { return };
        let (state, watched) = watch::channel(Snapshot {
            leases: granted.iter().map(|granted| granted.lease.clone()).collect(),
            passports: granted.iter().map(|granted| granted.passport.clone()).collect(),
            until: self.keeper.believed_until().unwrap_or(0),
            recall: granted.iter().find_map(|granted| granted.lease.recall.clone()),
            lost: None,
        });
        self.state = Some(state);
        let guard = Guard::new(watched, give_orders, Secret::new(first.token.clone()), self.client.address());
        self.answer_with(Ok(guard));
    }

    /// A guard that nobody takes is dropped, and its orders end: that stops us.
    fn answer_with(&mut self, answer: Result<Guard, HoldError>) {
        self.stop_telling();
        if let Some(waiting) = self.answer.take() {
            let _ = waiting.send(answer);
        }
    }

    fn obey(&mut self, order: Option<Order>) {
        if let Some(Order::Release { reason, done }) = order {
            self.reason = reason;
            self.released = Some(done);
        }
        self.stop();
    }

    fn stop(&mut self) {
        self.stop_telling();
        self.is_stopped = true;
        self.expect_the_last_word();
        self.step(Input::Stop);
    }

    /// What is under way may yet be answered with a grant, but nobody waits for that for long.
    fn expect_the_last_word(&mut self) {
        self.until = Some(boot_microseconds().saturating_add(micros(LAST_WORD)));
    }

    /// Nobody wants to wait any longer.
    fn time_is_up(&mut self) {
        self.until = None;
        if self.answer.is_none() {
            self.abort_acquiring();
            return;
        }
        let error = self.last_error.take().unwrap_or_else(|| self.no_answer());
        self.answer_with(Err(hold_error(error)));
        self.stop();
    }

    pub(super) fn abort_acquiring(&mut self) {
        self.acquiring.drain(..).for_each(|(_, request)| request.abort());
    }

    fn stop_telling(&mut self) {
        self.telling.take().into_iter().for_each(|telling| telling.abort());
    }

    fn no_answer(&self) -> Error {
        Error::Unknown { address: self.client.address(), source: "no answer in time".into() }
    }

    fn publish(&self) {
        let Some(state) = &self.state else { return };
        let until = self.keeper.believed_until();
        state.send_if_modified(|state| match until {
            Some(until) => std::mem::replace(&mut state.until, until) != until,
            None => false,
        });
    }
}

async fn acquire(
    client: &Client,
    wish: &Arc<Wish>,
    attempt: Attempt,
    heard: &mpsc::UnboundedSender<Heard>,
) -> What {
    let under_way = || {
        let _ = heard.send(Heard { attempt, wish: wish.clone(), what: What::UnderWay });
    };
    wish.ask(client, &wish.call(), under_way).await.map_or_else(What::Failed, What::Granted)
}

fn hold_error(error: Error) -> HoldError {
    match error {
        Error::Problem(problem) if problem.code == Code::Held => HoldError::Held(problem),
        other => HoldError::Failed(other),
    }
}

/// Resolves when nobody waits for the answer any more.
async fn given_up(answer: &mut Option<Answer>) {
    match answer {
        Some(answer) => answer.closed().await,
        None => std::future::pending().await,
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
