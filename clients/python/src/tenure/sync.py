"""The client for threads: one background thread per held lease or manifest keeps it alive."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, Optional

from . import agents, held_lease, held_manifest
from .endpoint import resolve_endpoint
from .errors import TenureError
from .flow import encode_path, get
from .thread_runner import ThreadRunner, FlowThread
from .model import IntentLike, LeaseView, PersistedAgentState, to_intents
from .wait_limit import USE_AGENT_DEFAULT, WaitLimit, resolve_wait_limit


class Client(ThreadRunner):
    """Speaks to one server. Without arguments it is the one that the environment names, else the one on this machine."""

    def __init__(
        self, url: Optional[str] = None, token: Optional[str] = None, *, certificate_authority: Optional[str] = None
    ) -> None:
        super().__init__(resolve_endpoint(url, token, certificate_authority))

    def lease(
        self,
        resource: str,
        holder: str,
        *,
        ttl: float = 30.0,
        wait: Optional[float] = 0.0,
        mode: str = "exclusive",
        labels: Optional[Mapping[str, str]] = None,
    ) -> HeldLease:
        """Acquires a lease and keeps it alive. Use it in a ``with`` block, whose end gives it back.

        ``wait`` says for how many seconds to wait; ``None`` is for ever. What is held by then raises :class:`Held`.
        """
        return HeldLease(self, self._run(held_lease.acquire(resource, holder, ttl, mode, wait, labels)))

    def agent(
        self,
        id: str,
        *,
        session: Optional[str] = None,
        ttl: float = 60.0,
        wait: Optional[float] = 60.0,
        skew: float = 0.5,
        priority: Optional[int] = None,
    ) -> Agent:
        """An agent of this name. ``skew`` is how much earlier than the server it ends its leases."""
        return Agent(self, agents.AgentCore(id, session, ttl, wait, skew, priority))

    def resume(self, digest: PersistedAgentState) -> HeldManifest:
        """Goes on where an earlier process of an agent was: asks what is true of its leases, and declares them anew.

        :class:`DigestStale` says that the memory is too old: begin with a new :meth:`agent`.
        """
        core = held_manifest.restore_agent(digest)
        return HeldManifest(Agent(self, core), self._run(held_manifest.resume(core, digest)))

    def show(self, lease: str) -> LeaseView:
        """A lease as it is."""
        return LeaseView.from_dict(self.send(get(encode_path("v1", "leases", lease)))["lease"])

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HeldLease(held_lease.HeldLeaseCore):
    """A lease that is held and kept alive."""

    def __init__(self, client: Client, core: held_lease.HeldLeaseCore) -> None:
        super().__init__(core.view, core._token, core._keep_alive)
        self._client = client
        self._thread = FlowThread(client, self._renew_loop())
        self._is_done = False

    def release(self, reason: Optional[str] = None) -> None:
        """Gives it back: COMPLETED, ABORTED or VOLUNTARY. A second time does nothing."""
        if not self._is_done:
            self._is_done = True
            self._thread.stop()
            self._client._run(self._release(reason))

    def __enter__(self) -> HeldLease:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.release()
        except TenureError:
            # It runs out by itself, and what the block raised counts more.
            pass


class Agent:
    """Declares what it is about to touch, and gets all of it or nothing. It declares one thing after the other."""

    def __init__(self, client: Client, core: agents.AgentCore) -> None:
        self._client, self.core = client, core

    def declare(self, intents: Iterable[IntentLike], *, wait: WaitLimit = USE_AGENT_DEFAULT) -> HeldManifest:
        """Waits until all of it is the agent's: when it has to wait, or to die and to come back.

        ``wait`` is in seconds, ``None`` for ever; as long as the agent says, if nobody says so here.
        """
        declared, wait_limit = to_intents(intents), resolve_wait_limit(wait, self.core.wait)
        try:
            heartbeat = self._client._run(agents.declare(self.core, declared, wait_limit))
        except TenureError:
            raise
        except BaseException:
            # Somebody pressed Ctrl-C: others should not have to wait for us.
            self._client._run(self.core._withdraw())
            raise
        return HeldManifest(self, held_manifest.HeldManifestCore(self.core, declared, wait_limit, heartbeat))

    def report(self, state: str) -> Dict[str, Any]:
        """Says what it is doing: PLANNING, EXECUTING, VERIFYING, …"""
        return self._client.send(self.core._state_report(state))

    def complete(self) -> None:
        """It is done: it waits for nothing and holds nothing any more."""
        self._client._run(self.core._end("COMPLETED"))

    def abort(self) -> None:
        """It gives up. Whoever wants another priority does this first."""
        self._client._run(self.core._end("ABORTED"))


class HeldManifest(held_manifest.HeldManifestCore):
    """Everything that one declaration got, kept alive. Use it in a ``with`` block, whose end gives it back."""

    def __init__(self, agent: Agent, core: held_manifest.HeldManifestCore) -> None:
        super().__init__(agent.core, core.intents, core._wait, core._heartbeat)
        self.is_continuous = core.is_continuous
        self.agent, self._client = agent, agent._client
        self._is_done = False
        self._agent._change_manifest_count(+1)
        self._thread = FlowThread(self._client, self._heartbeat.run())

    def touch(self, touched: Iterable[IntentLike]) -> None:
        """Says what the agent is about to touch; :class:`ScopeViolation` if it has no lease for some of it."""
        self._client._run(self._touch(touched))

    def wait_until_paused(self) -> TenureError:
        """Returns as soon as the agent may not go on, with the reason."""
        return self._client._run(self._wait_until_paused())

    def wait_until_resumed(self) -> None:
        """Returns when the agent may go on; raises :class:`LeaseLost` if it may not any more."""
        self._client._run(self._wait_until_resumed())

    def reacquire(self) -> None:
        """Asks what is true of the leases, and declares the same anew. Look at ``is_continuous`` afterwards."""
        self._thread.stop()
        self._client._run(self._reacquire())
        self._thread = FlowThread(self._client, self._heartbeat.run())

    def prepare_restart(self) -> PersistedAgentState:
        """The process ends, and is started again. Save what this returns, and exit with RESTART_EXIT_CODE."""
        digest = self._client._run(self._prepare_restart())
        self._is_done = True
        self._thread.stop()
        return digest

    def release(self) -> None:
        """Gives everything back. A second time does nothing."""
        if not self._is_done:
            self._is_done = True
            self._thread.stop()
            self._client._run(self._release())

    def __enter__(self) -> HeldManifest:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.release()
        except TenureError:
            # It runs out by itself, and what the block raised counts more.
            pass
