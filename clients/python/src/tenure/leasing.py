"""Plain leases: acquired, kept alive, given back."""

from __future__ import annotations

import secrets
from typing import Any, Dict, Mapping, Optional

from .belief import Pulse, now
from .course import Course
from .errors import OutcomeUnknown, Refused, TenureError
from .model import LeaseView
from .wire import PATIENCE, Flow, ask, path, post, sleep_until

#: How often a lease is given back before it is left to its end.
_TRIES = 6
#: The longest wait that a server takes.
_LONGEST_WAIT = 24 * 3600.0


class LeaseCore:
    """What a program holds while it holds a lease. What asks the server is in the classes below it."""

    def __init__(self, view: LeaseView, token: str, pulse: Pulse) -> None:
        #: The lease as the server last described it.
        self.view = view
        self._token = token
        self._pulse = pulse

    @property
    def fence(self) -> int:
        """Grows with every grant: hand it to whatever can refuse a writer that is late."""
        return self.view.fence

    def check(self) -> int:
        """The fence, if the lease is surely held at this instant; else raises :class:`LeaseLost`.

        Ask right before each effect on what the lease protects.
        """
        doubt = self._pulse.standing.doubt(now())
        if doubt is not None:
            raise doubt
        return self.view.fence

    @property
    def is_sure(self) -> bool:
        """Whether :meth:`check` has no doubt."""
        return self._pulse.standing.doubt(now()) is None

    def __repr__(self) -> str:
        # Without the token: whoever has it can act on the lease.
        return f"<{type(self).__name__} {self.view.resource} of {self.view.holder}, fence {self.view.fence}>"

    def _keep(self) -> Flow[None]:
        """Renews the lease until it is over."""
        pulse = self._pulse
        while not pulse.is_over(now()):
            yield from sleep_until(min(pulse.due_at, pulse.standing.until))
            if pulse.is_over(now()):
                return
            sent = now()
            if sent < pulse.due_at:
                continue
            body = {"token": self._token}
            try:
                said = yield from ask(
                    post(path("v1", "leases", self.view.id, "renew"), body, patience=pulse.patience)
                )
            except TenureError as error:
                _went_wrong(pulse, error)
                continue
            # What was not renewed in time is over, whatever comes after that.
            if pulse.is_over(now()):
                return
            try:
                view = LeaseView.read(said["lease"])
            except (KeyError, TypeError, ValueError):
                # That is not what Tenure says. Perhaps the next answer is.
                pulse.failed(now())
                continue
            self.view = view
            pulse.answered(sent, view.remaining_ms / 1000)

    def _give_back(self, reason: Optional[str]) -> Flow[None]:
        """Tries for some seconds; what is over already is no error."""
        self._pulse.ended(reason or "RELEASED")
        body: Dict[str, Any] = {"token": self._token}
        if reason is not None:
            body["reason"] = reason
        yield from insist(path("v1", "leases", self.view.id, "release"), body, _TRIES)


def acquire(
    resource: str,
    holder: str,
    ttl: float,
    mode: str,
    wait: Optional[float],
    labels: Optional[Mapping[str, str]],
) -> Flow[LeaseCore]:
    """Asks for a lease, and waits for it if wanted. ``wait`` is in seconds; ``None`` is for ever."""
    course = Course(wait, ttl, now())
    body: Dict[str, Any] = {"resource": resource, "holder": holder, "ttlMs": int(ttl * 1000)}
    if mode != "exclusive":
        body["mode"] = mode
    if labels:
        body["labels"] = dict(labels)
    # With a key, a request whose answer was lost may be sent again. Who waits has none: its place is to go with its connection.
    waits = wait is None or wait > 0
    key = None if waits else secrets.token_hex(16)
    lost = 0
    while True:
        sent = now()
        patience = PATIENCE
        if waits:
            body["waitMs"] = min(course.left_ms(sent), int(_LONGEST_WAIT * 1000))
            patience += body["waitMs"] / 1000
        try:
            said = yield from ask(post("/v1/leases", body, key=key, patience=patience))
        except TenureError as error:
            again = course.ask_again(now()) if error.passes or _waits_on(error, wait) else None
            if again is None and isinstance(error, OutcomeUnknown) and key and lost < _TRIES:
                lost += 1
                again = now() + 0.1
            if again is None:
                raise
            yield from sleep_until(again)
            continue
        view = LeaseView.read(said["lease"])
        pulse = Pulse(view.ttl_ms / 1000, sent, view.remaining_ms / 1000)
        core = LeaseCore(view, said["token"], pulse)
        if not pulse.is_over(now()):
            return core
        # It was over before it was heard of.
        yield from core._give_back(None)
        key = key and secrets.token_hex(16)


def insist(address: str, body: Dict[str, Any], tries: int) -> Flow[None]:
    """Says something until it is answered, but not for ever."""
    for attempt in range(tries):
        try:
            yield from ask(post(address, body, patience=5.0))
            return
        except TenureError as error:
            if not error.passes or attempt + 1 == tries:
                raise
        yield from sleep_until(now() + 0.1 * 2**attempt)


def _waits_on(error: TenureError, wait: Optional[float]) -> bool:
    # The longest wait of one request is over, and the caller waits on.
    return wait is None and error.code == "HELD"


def _went_wrong(pulse: Pulse, error: TenureError) -> None:
    if error.passes:
        pulse.failed(now())
    elif isinstance(error, Refused):
        pulse.ended(str(error.problem.get("end") or error.code))
    else:
        pulse.ended(None)


