"""What an agent holds, and whether it may go on."""

from __future__ import annotations

from typing import Iterable, List, Optional, Sequence

from .agents import AgentCore, Kept, declare, patiently, verify_all
from .belief import now
from .errors import LeaseLost, Paused, TenureError
from .leasing import insist
from .model import AgentLease, Digest, Intent, Wanted, intents_of
from .wire import Flow, ask, path, post, sleep_until

#: How often the leases are given back before they are left to their end.
_TRIES = 6
#: How often an agent that pauses looks whether it may go on.
_LOOK = 0.05


class ClaimCore:
    """Everything that one declaration got. What asks the server is in the classes below it.

    An agent that cannot be sure pauses: ask :meth:`check` right before each effect on what the leases protect.
    """

    def __init__(self, agent: AgentCore, intents: Sequence[Intent], wait: Optional[float], kept: Kept) -> None:
        self._agent = agent
        #: What was declared.
        self.intents = tuple(intents)
        self._wait = wait
        self._kept = kept
        #: Whether these are the very leases that the agent had before it was in doubt or restarted. If not, others may have had
        #: some of it: look again at everything that they protect.
        self.is_unbroken = True

    @property
    def leases(self) -> List[AgentLease]:
        """The leases as they were granted, one for each resource."""
        return list(self._kept.leases)

    def fence(self, resource: str) -> Optional[int]:
        """The fence of the lease on this resource."""
        return next((lease.fence for lease in self._kept.leases if lease.resource == resource), None)

    def check(self) -> None:
        """Raises :class:`Paused` or :class:`LeaseLost` if the agent may not go on at this instant."""
        doubt = self._kept.pulse.standing.doubt(now())
        if doubt is not None:
            raise doubt

    @property
    def is_sure(self) -> bool:
        """Whether :meth:`check` has no doubt."""
        return self._kept.pulse.standing.doubt(now()) is None

    def digest(self, phase: str = "EXECUTING") -> Digest:
        """What to remember, for a process that may end at any time."""
        agent = self._agent
        return Digest(
            agent_id=agent.id,
            session_id=agent.session,
            priority_timestamp=agent.priority or 0,
            epoch=agent.epoch + 1,
            last_phase=phase,
            intents=self.intents,
            lease_ids=tuple(lease.id for lease in self._kept.leases),
            ttl=agent.ttl,
            skew=agent.skew,
        )

    def _until_doubt(self) -> Flow[TenureError]:
        while True:
            doubt = self._kept.pulse.standing.doubt(now())
            if doubt is not None:
                return doubt
            yield from sleep_until(now() + _LOOK)

    def _until_resumed(self) -> Flow[None]:
        while True:
            doubt = self._kept.pulse.standing.doubt(now())
            if isinstance(doubt, LeaseLost):
                raise doubt
            if not isinstance(doubt, Paused):
                return
            yield from sleep_until(now() + _LOOK)

    def _touch(self, touched: Iterable[Wanted]) -> Flow[None]:
        self.check()
        body = {"resources": [intent.as_wanted() for intent in intents_of(touched)]}
        yield from ask(post(path("v1", "agents", self._agent.id, "touch"), body))

    def _give_back(self) -> Flow[None]:
        """Tries for some seconds; what is over already is no error."""
        self._kept.pulse.ended("RELEASED")
        try:
            yield from insist("/v1/leases/release", self._kept.body, _TRIES)
        finally:
            self._agent._engaged(-1)

    def _have_again(self) -> Flow[None]:
        """Asks what is true, then declares the same anew with the same priority."""
        before = self._kept
        before.pulse.ended("REACQUIRED")
        remembered = [lease.id for lease in before.leases]
        held = yield from verify_all(self._agent, remembered, self._wait)
        self._kept = yield from declare(self._agent, self.intents, self._wait)
        self.is_unbroken = all(lease.id in held for lease in self._kept.leases)

    def _restart(self) -> Flow[Digest]:
        """Each lease gets 15 s more, and no heartbeat is sent any more."""
        digest = self.digest("DIE_RESTART")
        yield from ask(self._agent._report("DIE_RESTART"))
        self._kept.pulse.ended("RESTARTED")
        return digest


def resume(agent: AgentCore, digest: Digest) -> Flow[ClaimCore]:
    """Shows what the agent remembers, asks what is true of its leases, and declares everything anew."""
    yield from patiently(agent._report("VERIFYING", digest), agent, agent.wait)
    held = yield from verify_all(agent, digest.lease_ids, agent.wait)
    kept = yield from declare(agent, digest.intents, agent.wait)
    claim = ClaimCore(agent, digest.intents, agent.wait, kept)
    claim.is_unbroken = all(lease.id in held for lease in kept.leases)
    return claim


def core_of(digest: Digest) -> AgentCore:
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
    agent._is_given = False
    return agent
