"""What an agent holds, and whether it may go on."""

from __future__ import annotations

from typing import Iterable, List, Optional, Sequence

from .agents import AgentCore, AgentHeartbeat, declare, reconcile, request_with_retry
from .errors import LeaseLost, Paused, TenureError
from .flow import Flow, encode_path, post, send, sleep_until
from .held_lease import post_with_retry
from .keepalive import now
from .model import AgentIntent, AgentLease, IntentLike, PersistedAgentState, to_intents

#: How often the leases are given back before they are left to their end.
_MAX_TRIES = 6
#: How often an agent that pauses looks whether it may go on.
_POLL_INTERVAL = 0.05


class HeldManifestCore:
    """Everything that one declaration got. What asks the server is in the classes below it.

    An agent that cannot be sure pauses: ask :meth:`check` right before each effect on what the leases protect.
    """

    def __init__(
        self, agent: AgentCore, intents: Sequence[AgentIntent], wait: Optional[float], heartbeat: AgentHeartbeat
    ) -> None:
        self._agent = agent
        #: What was declared.
        self.intents = tuple(intents)
        self._wait = wait
        self._heartbeat = heartbeat
        #: Whether these are the very leases that the agent had before it was in doubt or restarted. If not, others may have had
        #: some of it: look again at everything that they protect.
        self.is_continuous = True

    @property
    def leases(self) -> List[AgentLease]:
        """The leases as they were granted, one for each resource."""
        return list(self._heartbeat.leases)

    def fence(self, resource: str) -> Optional[int]:
        """The fence of the lease on this resource."""
        return next((lease.fence for lease in self._heartbeat.leases if lease.resource == resource), None)

    def check(self) -> None:
        """Raises :class:`Paused` or :class:`LeaseLost` if the agent may not go on at this instant."""
        error = self._heartbeat.keep_alive.status.check_error(now())
        if error is not None:
            raise error

    @property
    def is_valid(self) -> bool:
        """Whether :meth:`check` would raise nothing."""
        return self._heartbeat.keep_alive.status.check_error(now()) is None

    def persisted_state(self, phase: str = "EXECUTING") -> PersistedAgentState:
        """What to remember, for a process that may end at any time."""
        agent = self._agent
        return PersistedAgentState(
            agent_id=agent.id,
            session_id=agent.session,
            priority_timestamp=agent.priority or 0,
            epoch=agent.epoch + 1,
            last_phase=phase,
            intents=self.intents,
            lease_ids=tuple(lease.id for lease in self._heartbeat.leases),
            ttl=agent.ttl,
            skew=agent.skew,
        )

    def _wait_until_paused(self) -> Flow[TenureError]:
        while True:
            error = self._heartbeat.keep_alive.status.check_error(now())
            if error is not None:
                return error
            yield from sleep_until(now() + _POLL_INTERVAL)

    def _wait_until_resumed(self) -> Flow[None]:
        while True:
            error = self._heartbeat.keep_alive.status.check_error(now())
            if isinstance(error, LeaseLost):
                raise error
            if not isinstance(error, Paused):
                return
            yield from sleep_until(now() + _POLL_INTERVAL)

    def _touch(self, touched: Iterable[IntentLike]) -> Flow[None]:
        self.check()
        body = {"resources": [intent.to_resource_access() for intent in to_intents(touched)]}
        yield from send(post(encode_path("v1", "agents", self._agent.id, "touch"), body))

    def _release(self) -> Flow[None]:
        """Tries for some seconds; what is over already is no error."""
        self._heartbeat.keep_alive.record_end("RELEASED")
        try:
            yield from post_with_retry("/v1/leases/release", self._heartbeat.body, _MAX_TRIES)
        finally:
            self._agent._change_manifest_count(-1)

    def _reacquire(self) -> Flow[None]:
        """Asks what is true, then declares the same anew with the same priority."""
        previous = self._heartbeat
        previous.keep_alive.record_end("REACQUIRED")
        remembered = [lease.id for lease in previous.leases]
        held = yield from reconcile(self._agent, remembered, self._wait)
        self._heartbeat = yield from declare(self._agent, self.intents, self._wait)
        self.is_continuous = all(lease.id in held for lease in self._heartbeat.leases)

    def _prepare_restart(self) -> Flow[PersistedAgentState]:
        """Each lease gets 15 s more, and no heartbeat is sent any more."""
        digest = self.persisted_state("DIE_RESTART")
        yield from send(self._agent._state_report("DIE_RESTART"))
        self._heartbeat.keep_alive.record_end("RESTARTED")
        return digest


def resume(agent: AgentCore, digest: PersistedAgentState) -> Flow[HeldManifestCore]:
    """Shows what the agent remembers, asks what is true of its leases, and declares everything anew."""
    yield from request_with_retry(agent._state_report("VERIFYING", digest), agent, agent.wait)
    held = yield from reconcile(agent, digest.lease_ids, agent.wait)
    heartbeat = yield from declare(agent, digest.intents, agent.wait)
    manifest = HeldManifestCore(agent, digest.intents, agent.wait, heartbeat)
    manifest.is_continuous = all(lease.id in held for lease in heartbeat.leases)
    return manifest


def restore_agent(digest: PersistedAgentState) -> AgentCore:
    """The agent that the digest remembers."""
    agent = AgentCore(
        digest.agent_id,
        digest.session_id,
        digest.ttl,
        60.0,
        digest.skew,
        digest.priority_timestamp,
        digest.epoch,
    )
    # It goes on with this attempt; the next one is younger.
    agent._is_explicit = False
    return agent
