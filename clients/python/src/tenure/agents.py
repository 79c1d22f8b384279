"""Agents: they declare everything that they are about to touch, get all of it or nothing, and pause when they cannot be sure."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

from .errors import Blocked, OutcomeUnknown, ProblemError, TenureError
from .flow import ApiRequest, Flow, encode_path, post, send, sleep_until
from .keepalive import KeepAlive, now
from .model import AgentIntent, AgentLease, PersistedAgentState
from .retry_schedule import RetrySchedule

#: The most leases that can be asked about at once.
_MAX_RECONCILED_LEASES = 1024
#: Nobody waits longer than so many seconds for the server to hear that an agent does not wait any more.
_WITHDRAW_TIMEOUT = 5.0


class AgentCore:
    """Who declares. Its priority is the time of its first declaration, as long as it holds or wants anything."""

    def __init__(
        self,
        id: str,
        session: Optional[str],
        ttl: float,
        wait: Optional[float],
        skew: float,
        priority: Optional[int],
        epoch: int = 0,
    ) -> None:
        #: Its name.
        self.id = id
        #: In which session, for people.
        self.session = session or secrets.token_hex(8)
        self.ttl = ttl
        self.wait = wait
        self.skew = skew
        self.epoch = epoch
        #: The time in milliseconds at which its attempt began; smaller is older, and older is stronger.
        self.priority = priority
        self._is_explicit = priority is not None
        self._manifest_count = 0

    def _change_manifest_count(self, by: int) -> None:
        """A held manifest came or went. With the last one, the attempt is over."""
        self._manifest_count += by
        if self._manifest_count == 0 and not self._is_explicit:
            self.priority = None

    def _adopt_priority(self, error: TenureError) -> bool:
        """Whether to go on with the priority that the server knows: of an attempt that is not quite over, say."""
        if not isinstance(error, ProblemError) or error.code != "PRIORITY_FIXED" or self._is_explicit:
            return False
        priority = error.problem.get("priority_timestamp")
        if priority is None or priority == self.priority:
            return False
        self.priority = int(priority)
        return True

    def _state_report(self, state: str, digest: Optional[PersistedAgentState] = None) -> ApiRequest:
        body: Dict[str, Any] = {"session_id": self.session, "state": state}
        if digest is not None:
            body["digest"] = digest.to_state_digest()
        return post(encode_path("v1", "agents", self.id, "state"), body)

    def _end(self, state: str) -> Flow[None]:
        """It waits for nothing and holds nothing any more, and its next attempt is a new one."""
        yield from send(self._state_report(state))
        self.priority, self._is_explicit = None, False

    def _withdraw(self) -> Flow[None]:
        """Nobody wants what was declared. A report is all that ends a wait early, and it ends everything: an agent with
        other held manifests lets the wait run out."""
        if self._manifest_count > 0:
            return
        try:
            yield from send(replace(self._state_report("ABORTED"), timeout=_WITHDRAW_TIMEOUT))
        except TenureError:
            pass
        self._change_manifest_count(0)

    def _manifest(self, intents: Sequence[AgentIntent], wait_ms: int) -> ApiRequest:
        if self.priority is None:
            self.priority = int(time.time() * 1000)
        body: Dict[str, Any] = {
            "session_id": self.session,
            "agent_id": self.id,
            "intents": [intent.to_manifest_intent() for intent in intents],
            "ttl": int(self.ttl * 1000),
            "priority_timestamp": self.priority,
            "waitTimeoutMs": wait_ms,
        }
        return post("/v1/manifest", body)


class AgentHeartbeat:
    """The leases of one declaration, and their heartbeats."""

    def __init__(self, agent: AgentCore, leases: List[AgentLease], sent: float) -> None:
        self.leases = leases
        self.body = {"agent_id": agent.id, "lease_ids": [lease.id for lease in leases]}
        # What the server gives may be less than was asked for.
        ttl = min(lease.ttl for lease in leases) / 1000
        remaining = min(lease.remaining_ms for lease in leases) / 1000
        self.keep_alive = KeepAlive(ttl, sent, remaining, skew=agent.skew, can_pause=True)

    def run(self) -> Flow[None]:
        """Heartbeats for all leases in one request, until one of them is over."""
        keep_alive = self.keep_alive
        while not keep_alive.has_ended(now()):
            yield from sleep_until(min(keep_alive.due_at, keep_alive.status.deadline))
            sent = now()
            if keep_alive.has_ended(sent) or sent < keep_alive.due_at:
                continue
            try:
                response = yield from send(post("/v1/leases/heartbeat", self.body, timeout=keep_alive.request_timeout))
            except TenureError as error:
                if error.is_transient:
                    keep_alive.record_failure(now())
                else:
                    keep_alive.record_end(error.code)
                continue
            # What was in doubt for too long before this came is over, whatever it says.
            if not keep_alive.has_ended(now()):
                self._handle_response(response, sent)

    def _handle_response(self, response: Dict[str, Any], sent: float) -> None:
        try:
            rejected = [str(lease["code"]) for lease in response["rejected"]]
            remaining = [float(renewed["remainingMs"]) / 1000 for renewed in response["renewed"]]
        except (KeyError, TypeError, ValueError):
            # That is not what Tenure says. Perhaps the next answer is.
            return self.keep_alive.record_failure(now())
        if rejected:
            self.keep_alive.record_end(rejected[0])
        elif remaining and len(remaining) == len(self.leases):
            self.keep_alive.record_success(sent, min(remaining))
        else:
            self.keep_alive.record_failure(now())


def declare(agent: AgentCore, intents: Sequence[AgentIntent], wait: Optional[float]) -> Flow[AgentHeartbeat]:
    """Asks, waits, dies and comes back with the same priority, until all of it is the agent's."""
    schedule = RetrySchedule(wait, agent.ttl, now())
    may_be_known = False
    while True:
        sent = now()
        try:
            verdict = yield from send(agent._manifest(intents, schedule.remaining_wait_ms(sent)))
        except TenureError as error:
            if agent._adopt_priority(error):
                continue
            may_be_known = may_be_known or isinstance(error, OutcomeUnknown)
            retry_at = schedule.next_retry(now()) if error.is_transient else None
            if retry_at is None:
                if may_be_known:
                    yield from agent._withdraw()
                agent._change_manifest_count(0)
                raise
            yield from sleep_until(retry_at)
            continue
        may_be_known = True
        if verdict["verdict"] == "GRANTED":
            heartbeat = AgentHeartbeat(agent, [AgentLease.from_dict(lease) for lease in verdict["leases"]], sent)
            if not heartbeat.keep_alive.has_ended(now()):
                return heartbeat
            # It was over before it was heard of.
            continue
        retry_at = schedule.handle_verdict(verdict, now())
        if retry_at is None:
            yield from agent._withdraw()
            raise Blocked(schedule.blocked_by)
        yield from sleep_until(retry_at)


def reconcile(agent: AgentCore, lease_ids: Sequence[str], wait: Optional[float]) -> Flow[List[str]]:
    """Which of the leases are the agent's. What the server says counts, whatever the agent remembers."""
    held: List[str] = []
    for first in range(0, len(lease_ids), _MAX_RECONCILED_LEASES):
        chunk = list(lease_ids[first : first + _MAX_RECONCILED_LEASES])
        body = {"agent_id": agent.id, "lease_ids": chunk}
        response = yield from request_with_retry(post("/v1/leases/reconcile", body), agent, wait)
        held.extend(id for id, lease in response["leases"].items() if lease["held"])
    return held


def request_with_retry(request: ApiRequest, agent: AgentCore, wait: Optional[float]) -> Flow[Dict[str, Any]]:
    """Asks until there is an answer, for as long as the agent waits."""
    schedule = RetrySchedule(wait, agent.ttl, now())
    while True:
        try:
            return (yield from send(request))
        except TenureError as error:
            retry_at = schedule.next_retry(now()) if error.is_transient else None
            if retry_at is None:
                raise
        yield from sleep_until(retry_at)
