"""Agents: they declare everything that they are about to touch, get all of it or nothing, and pause when they cannot be sure."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

from .belief import Pulse, now
from .course import Course
from .errors import InTheWay, OutcomeUnknown, Refused, TenureError
from .model import AgentLease, Digest, Intent
from .wire import Flow, Request, ask, path, post, sleep_until

#: The most leases that can be asked about at once.
_MOST_ASKED = 1024
#: Nobody waits longer than so many seconds for the server to hear that an agent does not wait any more.
_LAST_WORD = 5.0


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
        self._is_given = priority is not None
        self._claims = 0

    def _engaged(self, by: int) -> None:
        """A claim came or went. With the last one, the attempt is over."""
        self._claims += by
        if self._claims == 0 and not self._is_given:
            self.priority = None

    def _adopt(self, refusal: TenureError) -> bool:
        """Whether to go on with the priority that the server knows: of an attempt that is not quite over, say."""
        if not isinstance(refusal, Refused) or refusal.code != "PRIORITY_FIXED" or self._is_given:
            return False
        has = refusal.problem.get("priority_timestamp")
        if has is None or has == self.priority:
            return False
        self.priority = int(has)
        return True

    def _report(self, state: str, digest: Optional[Digest] = None) -> Request:
        body: Dict[str, Any] = {"session_id": self.session, "state": state}
        if digest is not None:
            body["digest"] = digest.told()
        return post(path("v1", "agents", self.id, "state"), body)

    def _end(self, state: str) -> Flow[None]:
        """It waits for nothing and holds nothing any more, and its next attempt is a new one."""
        yield from ask(self._report(state))
        self.priority, self._is_given = None, False

    def _withdraw(self) -> Flow[None]:
        """Nobody wants what was declared. A report is all that ends a wait early, and it ends everything: an agent with
        other claims lets the wait run out."""
        if self._claims > 0:
            return
        try:
            yield from ask(replace(self._report("ABORTED"), patience=_LAST_WORD))
        except TenureError:
            pass
        self._engaged(0)

    def _manifest(self, intents: Sequence[Intent], wait_ms: int) -> Request:
        if self.priority is None:
            self.priority = int(time.time() * 1000)
        body: Dict[str, Any] = {
            "session_id": self.session,
            "agent_id": self.id,
            "intents": [intent.in_manifest() for intent in intents],
            "ttl": int(self.ttl * 1000),
            "priority_timestamp": self.priority,
            "waitTimeoutMs": wait_ms,
        }
        return post("/v1/manifest", body)


class Kept:
    """The leases of one declaration, and their heartbeats."""

    def __init__(self, agent: AgentCore, leases: List[AgentLease], sent: float) -> None:
        self.leases = leases
        self.body = {"agent_id": agent.id, "lease_ids": [lease.id for lease in leases]}
        # What the server gives may be less than was asked for.
        ttl = min(lease.ttl for lease in leases) / 1000
        remaining = min(lease.remaining_ms for lease in leases) / 1000
        self.pulse = Pulse(ttl, sent, remaining, skew=agent.skew, pauses=True)

    def keep(self) -> Flow[None]:
        """Heartbeats for all leases in one request, until one of them is over."""
        pulse = self.pulse
        while not pulse.is_over(now()):
            yield from sleep_until(min(pulse.due_at, pulse.standing.until))
            sent = now()
            if pulse.is_over(sent) or sent < pulse.due_at:
                continue
            try:
                said = yield from ask(post("/v1/leases/heartbeat", self.body, patience=pulse.patience))
            except TenureError as error:
                if error.passes:
                    pulse.failed(now())
                else:
                    pulse.ended(error.code)
                continue
            # What was in doubt for too long before this came is over, whatever it says.
            if not pulse.is_over(now()):
                self._heard(said, sent)

    def _heard(self, said: Dict[str, Any], sent: float) -> None:
        try:
            rejected = [str(lease["code"]) for lease in said["rejected"]]
            remaining = [float(beat["remainingMs"]) / 1000 for beat in said["renewed"]]
        except (KeyError, TypeError, ValueError):
            # That is not what Tenure says. Perhaps the next answer is.
            return self.pulse.failed(now())
        if rejected:
            self.pulse.ended(rejected[0])
        elif remaining and len(remaining) == len(self.leases):
            self.pulse.answered(sent, min(remaining))
        else:
            self.pulse.failed(now())


def declare(agent: AgentCore, intents: Sequence[Intent], wait: Optional[float]) -> Flow[Kept]:
    """Asks, waits, dies and comes back with the same priority, until all of it is the agent's."""
    course = Course(wait, agent.ttl, now())
    is_known = False
    while True:
        sent = now()
        try:
            verdict = yield from ask(agent._manifest(intents, course.left_ms(sent)))
        except TenureError as error:
            if agent._adopt(error):
                continue
            is_known = is_known or isinstance(error, OutcomeUnknown)
            again = course.ask_again(now()) if error.passes else None
            if again is None:
                if is_known:
                    yield from agent._withdraw()
                agent._engaged(0)
                raise
            yield from sleep_until(again)
            continue
        is_known = True
        if verdict["verdict"] == "GRANTED":
            kept = Kept(agent, [AgentLease.read(lease) for lease in verdict["leases"]], sent)
            if not kept.pulse.is_over(now()):
                return kept
            # It was over before it was heard of.
            continue
        again = course.after(verdict, now())
        if again is None:
            yield from agent._withdraw()
            raise InTheWay(course.blocked_by)
        yield from sleep_until(again)


def verify_all(agent: AgentCore, lease_ids: Sequence[str], wait: Optional[float]) -> Flow[List[str]]:
    """Which of the leases are the agent's. What the server says counts, whatever the agent remembers."""
    held: List[str] = []
    for first in range(0, len(lease_ids), _MOST_ASKED):
        some = list(lease_ids[first : first + _MOST_ASKED])
        body = {"agent_id": agent.id, "lease_ids": some}
        said = yield from patiently(post("/v1/leases/reconcile", body), agent, wait)
        held.extend(id for id, lease in said["leases"].items() if lease["held"])
    return held


def patiently(request: Request, agent: AgentCore, wait: Optional[float]) -> Flow[Dict[str, Any]]:
    """Asks until there is an answer, for as long as the agent waits."""
    course = Course(wait, agent.ttl, now())
    while True:
        try:
            return (yield from ask(request))
        except TenureError as error:
            again = course.ask_again(now()) if error.passes else None
            if again is None:
                raise
        yield from sleep_until(again)
