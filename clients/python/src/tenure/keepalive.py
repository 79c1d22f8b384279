"""How long a holder may believe that it holds, and the heartbeats that keep it so. Told the time; does nothing itself."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, replace
from typing import Callable, Optional

from .errors import CheckError, LeaseLost, Paused

#: Time for whatever a holder still does after it last looked at its clock.
SAFETY_MARGIN = 0.05
#: Two clocks may differ by half a percent; what differs by more is caught by fences only.
MAX_DRIFT = 0.005

_MIN_BACKOFF = 0.1
_MAX_BACKOFF = 10.0


def now() -> float:
    """Seconds of a clock that goes on while the machine sleeps, where the system has one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def local_deadline(sent: float, valid_for: float) -> float:
    """When to stop believing, by the own clock.

    Counted from when the request was *sent*: what the lease had left was true later, when it arrived.
    """
    return sent + max(0.0, valid_for * (1 - MAX_DRIFT) - SAFETY_MARGIN)


@dataclass(frozen=True)
class HoldStatus:
    """How it stands, as far as anybody knows. One that is replaced as a whole, so that any thread may read it."""

    confirmed_until: float
    deadline: float
    is_failing: bool = False
    end: Optional[str] = None
    has_ended: bool = False

    def check_error(self, at: float) -> Optional[CheckError]:
        """Why not to go on, if there is a reason."""
        if self.has_ended or at >= self.deadline:
            return LeaseLost(self.end)
        if self.is_failing or at >= self.confirmed_until:
            return Paused()
        return None


class KeepAlive:
    """Keeps leases alive as a step function: says when to send, and is told what became of it.

    ``can_pause`` makes it careful, as agents are: what fails, or is not answered for half of its time, is in doubt.
    """

    def __init__(
        self,
        ttl: float,
        sent: float,
        valid_for: float,
        *,
        skew: float = 0.0,
        can_pause: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.ttl = ttl
        self._skew = skew
        self._can_pause = can_pause
        self._jitter = jitter
        self._failures = 0
        # A program gives back in one thread what another one keeps alive: what is over must not come back.
        self._lock = threading.RLock()
        self.status = HoldStatus(0.0, 0.0)
        #: When to send the next heartbeat.
        self.due_at = sent
        self.record_success(sent, valid_for)

    @property
    def request_timeout(self) -> float:
        """How long to wait for an answer, and the longest pause: short enough for several tries."""
        return min(max(self.ttl / 4, _MIN_BACKOFF), _MAX_BACKOFF)

    def record_success(self, sent: float, valid_for: float) -> None:
        """All leases live, for so long at the least from when the message that left at ``sent`` arrived."""
        # More than half of it would leave too little to work in.
        valid_for -= min(self._skew, valid_for / 2)
        third = min(self.ttl, valid_for) / 3
        with self._lock:
            if self.status.has_ended:
                return
            self._failures = 0
            deadline = max(self.status.deadline, local_deadline(sent, valid_for))
            confirmed_until = deadline - valid_for / 2 if self._can_pause else deadline
            self.status = HoldStatus(confirmed_until, deadline)
        # A little earlier, and not all at once.
        self.due_at = sent + third * (1 - self._jitter() / 10)

    def record_failure(self, at: float) -> None:
        """No answer, or one that will not last."""
        self._failures += 1
        with self._lock:
            if not self.status.has_ended:
                self.status = replace(self.status, is_failing=self._can_pause)
        pause = min(_MIN_BACKOFF * 2**min(self._failures, 16), self.request_timeout)
        self.due_at = at + pause * (0.5 + self._jitter() / 2)

    def record_end(self, end: Optional[str]) -> None:
        """It is over, for good."""
        with self._lock:
            if not self.status.has_ended:
                self.status = HoldStatus(0.0, self.status.deadline, end=end, has_ended=True)

    def has_ended(self, at: float) -> bool:
        """Whether it is over; what was over once stays so."""
        with self._lock:
            if at >= self.status.deadline:
                self.record_end(None)
            return self.status.has_ended
