"""How long a holder may believe that it holds, and the heartbeats that keep it so. Told the time; does nothing itself."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, replace
from typing import Callable, Optional

from .errors import Doubt, LeaseLost, Paused

#: Time for whatever a holder still does after it last looked at its clock.
ALLOWANCE = 0.05
#: Two clocks may differ by half a percent; what differs by more is caught by fences only.
DRIFT = 0.005

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0


def now() -> float:
    """Seconds of a clock that goes on while the machine sleeps, where the system has one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def believed_until(sent: float, valid_for: float) -> float:
    """When to stop believing, by the own clock.

    Counted from when the request was *sent*: what the lease had left was true later, when it arrived.
    """
    return sent + max(0.0, valid_for * (1 - DRIFT) - ALLOWANCE)


@dataclass(frozen=True)
class Standing:
    """How it stands, as far as anybody knows. One that is replaced as a whole, so that any thread may read it."""

    sure_until: float
    until: float
    is_failing: bool = False
    how: Optional[str] = None
    is_over: bool = False

    def doubt(self, at: float) -> Optional[Doubt]:
        """Why not to go on, if there is a reason."""
        if self.is_over or at >= self.until:
            return LeaseLost(self.how)
        if self.is_failing or at >= self.sure_until:
            return Paused()
        return None


class Pulse:
    """Keeps leases alive as a step function: says when to send, and is told what became of it.

    ``pauses`` makes it careful, as agents are: what fails, or is not answered for half of its time, is in doubt.
    """

    def __init__(
        self,
        ttl: float,
        sent: float,
        valid_for: float,
        *,
        skew: float = 0.0,
        pauses: bool = False,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.ttl = ttl
        self._skew = skew
        self._pauses = pauses
        self._chance = chance
        self._failures = 0
        # A program gives back in one thread what another one keeps alive: what is over must not come back.
        self._lock = threading.RLock()
        self.standing = Standing(0.0, 0.0)
        #: When to send the next heartbeat.
        self.due_at = sent
        self.answered(sent, valid_for)

    @property
    def patience(self) -> float:
        """How long to wait for an answer, and the longest pause: short enough for several tries."""
        return min(max(self.ttl / 4, _FIRST_PAUSE), _LONGEST_PAUSE)

    def answered(self, sent: float, valid_for: float) -> None:
        """All leases live, for so long at the least from when the message that left at ``sent`` arrived."""
        # More than half of it would leave too little to work in.
        valid_for -= min(self._skew, valid_for / 2)
        third = min(self.ttl, valid_for) / 3
        with self._lock:
            if self.standing.is_over:
                return
            self._failures = 0
            until = max(self.standing.until, believed_until(sent, valid_for))
            sure_until = until - valid_for / 2 if self._pauses else until
            self.standing = Standing(sure_until, until)
        # A little earlier, and not all at once.
        self.due_at = sent + third * (1 - self._chance() / 10)

    def failed(self, at: float) -> None:
        """No answer, or one that will not last."""
        self._failures += 1
        with self._lock:
            if not self.standing.is_over:
                self.standing = replace(self.standing, is_failing=self._pauses)
        pause = min(_FIRST_PAUSE * 2**min(self._failures, 16), self.patience)
        self.due_at = at + pause * (0.5 + self._chance() / 2)

    def ended(self, how: Optional[str]) -> None:
        """It is over, for good."""
        with self._lock:
            if not self.standing.is_over:
                self.standing = Standing(0.0, self.standing.until, how=how, is_over=True)

    def is_over(self, at: float) -> bool:
        """Whether it is over; what was over once stays so."""
        with self._lock:
            if at >= self.standing.until:
                self.ended(None)
            return self.standing.is_over
