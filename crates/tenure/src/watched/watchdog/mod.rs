//! The process that ends a command in time, whatever becomes of who keeps its lease: `tenure run`, or the worker.
//!
//! It is the command's parent, in a process group of its own: stopping its keeper or the keeper's job, Ctrl-Z or the end
//! of the terminal do not stop it. It hears each new deadline over a connection; when that ends, the keeper is gone, and
//! the command is ended too.

mod family;
mod plan;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};

use rustix::process::Signal;
use tenure_core::kernel::Span;
use tokio::signal::unix::{Signal as Caught, SignalKind, signal};

use self::family::Family;
pub use self::family::all_children as children;
pub use self::plan::Margins;
use self::plan::{Act, Plan};
use super::clock::{Timer, now};
use super::link::{Leaves, Link, Order, Report};
use super::signals::Signals;
use crate::descriptors;
use crate::exit;
use crate::message::complain;

/// How often to look for somebody who lives on, while everybody is being killed: microseconds.
const ROUND: u64 = 20_000;

/// What its keeper calls it. A name that nobody types.
pub const NAME: &str = "__watchdog";

/// Watches over one command, until it is gone.
pub fn run(command: &[OsString]) -> ExitCode {
    let watch = || -> io::Result<()> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let standard = descriptors::receive(&stream)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { watch(Link::new(stream)?, standard, command).await })
    };
    match watch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain("the watchdog of a command failed", &error);
            exit::UNAVAILABLE.into()
        }
    }
}

async fn watch(mut link: Link, standard: [OwnedFd; 3], command: &[OsString]) -> io::Result<()> {
    Family::adopt_orphans()?;
    let changes = signal(SignalKind::child())?;
    let signals = Signals::all()?;
    let timer = Timer::new()?;
    // Without an order nothing was started, and nothing has to be ended.
    let Some(Order::Start { deadline, grace, reserve, leaves, environment }) = link.receive().await else {
        return Ok(());
    };
    let plan = Plan::new(Margins { grace: Span(grace), reserve: Span(reserve) }, deadline);
    if plan.wake_at().is_none_or(|at| at <= now()) {
        return link.send(&Report::TooLate).await;
    }
    let [input, output, errors] = standard;
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).envs(environment).stdin(input).stdout(output).stderr(errors);
    let family = match Family::start(&mut command) {
        Ok(family) => family,
        Err(error) => return link.send(&Report::NotStarted { error: error.raw_os_error() }).await,
    };
    // It holds the standard descriptors, which somebody may wait to see closed.
    drop(command);
    let (is_heard, is_lost) = (true, false);
    let mut watch = Watch { link, family, plan, leaves, signals, changes, timer, is_heard, is_lost };
    watch.tell(Report::Started(watch.family.group())).await;
    watch.until_the_end().await
}

struct Watch {
    link: Link,
    family: Family,
    plan: Plan,
    leaves: Leaves,
    signals: Signals,
    changes: Caught,
    timer: Timer,
    is_heard: bool,
    /// Whether the lease is lost, or nobody is left who could keep it.
    is_lost: bool,
}

impl Watch {
    async fn until_the_end(&mut self) -> io::Result<()> {
        loop {
            let at = self.plan.wake_at().unwrap_or_else(|| now().saturating_add(ROUND));
            tokio::select! {
                order = self.link.receive(), if self.is_heard => self.follow(order),
                _ = self.changes.recv() => {}
                () = self.timer.wait_until(Some(at)) => {}
                // What is meant for the command comes through its keeper.
                _ = self.signals.next() => {}
            }
            while let Some(act) = self.plan.due(now()) {
                self.act(act);
                // A session whose command has ended by itself lost nothing; whom it left behind has to go, that is all.
                let is_rest = self.leaves == Leaves::Nobody && self.family.ended().is_some();
                if !std::mem::replace(&mut self.is_lost, true) && !is_rest {
                    self.tell(Report::Ending).await;
                }
            }
            if self.look().await {
                break;
            }
        }
        // Until the keeper has taken back the terminal, the group's number must not be anybody else's.
        while self.is_heard && self.link.receive::<Order>().await.is_some() {}
        Ok(())
    }

    fn follow(&mut self, order: Option<Order>) {
        let act = match order {
            Some(Order::Deadline(deadline)) => {
                self.plan.move_deadline(deadline);
                None
            }
            Some(Order::Signal(number)) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.family.signal(signal);
                }
                None
            }
            Some(Order::Start { .. }) => None,
            Some(Order::Kill) => {
                self.is_lost = true;
                self.plan.kill(now())
            }
            Some(Order::End) | None => {
                self.is_heard &= order.is_some();
                self.is_lost = true;
                self.plan.end(now())
            }
        };
        if let Some(act) = act {
            self.act(act);
        }
    }

    fn act(&self, act: Act) {
        match act {
            Act::Terminate => {
                self.family.signal(Signal::TERM);
                // Who is stopped hears nothing before it goes on.
                self.family.signal(Signal::CONT);
            }
            Act::Kill => self.family.kill(),
        }
    }

    /// Looks at the processes. True: all of them are gone, and the keeper knows.
    async fn look(&mut self) -> bool {
        if let Some(signal) = self.family.look() {
            self.tell(Report::Stopped(signal.as_raw())).await;
        }
        if self.plan.is_killed() {
            self.family.kill();
        }
        let Some(ended) = self.family.ended() else { return false };
        // What the command left behind must not go on without the lease: neither what stayed in its group nor, when
        // the lease is lost or somebody may hold the same next, what has left it.
        let leaves_nobody = self.is_lost || self.leaves == Leaves::Nobody;
        let act = if self.family.has_group() {
            self.plan.end(now())
        } else if leaves_nobody && self.family.has_descendants() {
            self.plan.kill(now())
        } else {
            self.tell(Report::Ended(ended)).await;
            return true;
        };
        if let Some(act) = act {
            self.act(act);
        }
        false
    }

    async fn tell(&mut self, report: Report) {
        if self.is_heard && self.link.send(&report).await.is_err() {
            self.is_heard = false;
        }
    }
}
