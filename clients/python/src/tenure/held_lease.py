"""Plain leases: acquired, kept alive, given back."""

from __future__ import annotations

import secrets
from typing import Any, Dict, Mapping, Optional

from .errors import OutcomeUnknown, ProblemError, TenureError
from .flow import RESPONSE_TIMEOUT, Flow, encode_path, post, send, sleep_until
from .keepalive import KeepAlive, now
from .model import LeaseView
from .retry_schedule import RetrySchedule

#: How often a lease is given back before it is left to its end.
_MAX_TRIES = 6
#: The longest wait that a server takes.
_MAX_WAIT = 24 * 3600.0


class HeldLeaseCore:
    """What a program holds while it holds a lease. What asks the server is in the classes below it."""

    def __init__(self, view: LeaseView, token: str, keep_alive: KeepAlive) -> None:
        #: The lease as the server last described it.
        self.view = view
        self._token = token
        self._keep_alive = keep_alive

    @property
    def fence(self) -> int:
        """Grows with every grant: hand it to whatever can refuse a writer that is late."""
        return self.view.fence

    def check(self) -> int:
        """The fence, if the lease is surely held at this instant; else raises :class:`LeaseLost`.

        Ask right before each effect on what the lease protects.
        """
        error = self._keep_alive.status.check_error(now())
        if error is not None:
            raise error
        return self.view.fence

    @property
    def is_valid(self) -> bool:
        """Whether :meth:`check` would raise nothing."""
        return self._keep_alive.status.check_error(now()) is None

    def __repr__(self) -> str:
        # Without the token: whoever has it can act on the lease.
        return f"<{type(self).__name__} {self.view.resource} of {self.view.holder}, fence {self.view.fence}>"

    def _renew_loop(self) -> Flow[None]:
        """Renews the lease until it is over."""
        keep_alive = self._keep_alive
        while not keep_alive.has_ended(now()):
            yield from sleep_until(min(keep_alive.due_at, keep_alive.status.deadline))
            if keep_alive.has_ended(now()):
                return
            sent = now()
            if sent < keep_alive.due_at:
                continue
            body = {"token": self._token}
            try:
                response = yield from send(
                    post(encode_path("v1", "leases", self.view.id, "renew"), body, timeout=keep_alive.request_timeout)
                )
            except TenureError as error:
                _record_error(keep_alive, error)
                continue
            # What was not renewed in time is over, whatever comes after that.
            if keep_alive.has_ended(now()):
                return
            try:
                view = LeaseView.from_dict(response["lease"])
            except (KeyError, TypeError, ValueError):
                # That is not what Tenure says. Perhaps the next answer is.
                keep_alive.record_failure(now())
                continue
            self.view = view
            keep_alive.record_success(sent, view.remaining_ms / 1000)

    def _release(self, reason: Optional[str]) -> Flow[None]:
        """Tries for some seconds; what is over already is no error."""
        self._keep_alive.record_end(reason or "RELEASED")
        body: Dict[str, Any] = {"token": self._token}
        if reason is not None:
            body["reason"] = reason
        yield from post_with_retry(encode_path("v1", "leases", self.view.id, "release"), body, _MAX_TRIES)


def acquire(
    resource: str,
    holder: str,
    ttl: float,
    mode: str,
    wait: Optional[float],
    labels: Optional[Mapping[str, str]],
) -> Flow[HeldLeaseCore]:
    """Asks for a lease, and waits for it if wanted. ``wait`` is in seconds; ``None`` is for ever."""
    schedule = RetrySchedule(wait, ttl, now())
    body: Dict[str, Any] = {"resource": resource, "holder": holder, "ttlMs": int(ttl * 1000)}
    if mode != "exclusive":
        body["mode"] = mode
    if labels:
        body["labels"] = dict(labels)
    # With a key, a request whose answer was lost may be sent again. Who waits has none: its place is to go with its connection.
    is_waiting = wait is None or wait > 0
    key = None if is_waiting else secrets.token_hex(16)
    lost_responses = 0
    while True:
        sent = now()
        timeout = RESPONSE_TIMEOUT
        if is_waiting:
            body["waitMs"] = min(schedule.remaining_wait_ms(sent), int(_MAX_WAIT * 1000))
            timeout += body["waitMs"] / 1000
        try:
            response = yield from send(post("/v1/leases", body, key=key, timeout=timeout))
        except TenureError as error:
            retry_at = schedule.next_retry(now()) if error.is_transient or _should_keep_waiting(error, wait) else None
            if retry_at is None and isinstance(error, OutcomeUnknown) and key and lost_responses < _MAX_TRIES:
                lost_responses += 1
                retry_at = now() + 0.1
            if retry_at is None:
                raise
            yield from sleep_until(retry_at)
            continue
        view = LeaseView.from_dict(response["lease"])
        keep_alive = KeepAlive(view.ttl_ms / 1000, sent, view.remaining_ms / 1000)
        core = HeldLeaseCore(view, response["token"], keep_alive)
        if not keep_alive.has_ended(now()):
            return core
        # It was over before it was heard of.
        yield from core._release(None)
        key = key and secrets.token_hex(16)


def post_with_retry(url_path: str, body: Dict[str, Any], tries: int) -> Flow[None]:
    """Says something until it is answered, but not for ever."""
    for attempt in range(tries):
        try:
            yield from send(post(url_path, body, timeout=5.0))
            return
        except TenureError as error:
            if not error.is_transient or attempt + 1 == tries:
                raise
        yield from sleep_until(now() + 0.1 * 2**attempt)


def _should_keep_waiting(error: TenureError, wait: Optional[float]) -> bool:
    # The longest wait of one request is over, and the caller waits on.
    return wait is None and error.code == "HELD"


def _record_error(keep_alive: KeepAlive, error: TenureError) -> None:
    if error.is_transient:
        keep_alive.record_failure(now())
    elif isinstance(error, ProblemError):
        keep_alive.record_end(str(error.problem.get("end") or error.code))
    else:
        keep_alive.record_end(None)
