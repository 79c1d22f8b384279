"""The client for asyncio: one task per held lease or manifest keeps it alive."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, Iterable, Mapping, Optional

from . import agents, held_lease, held_manifest
from .task_runner import AcquireContext, TaskRunner, FlowTask
from .endpoint import resolve_endpoint
from .errors import TenureError
from .flow import encode_path, get
from .model import IntentLike, LeaseView, PersistedAgentState, to_intents
from .wait_limit import USE_AGENT_DEFAULT, WaitLimit, resolve_wait_limit


class AsyncClient(TaskRunner):
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
    ) -> AcquireContext[AsyncHeldLease]:
        """Acquires a lease and keeps it alive, as :meth:`Client.lease` does."""

        async def acquire() -> AsyncHeldLease:
            flow = held_lease.acquire(resource, holder, ttl, mode, wait, labels)
            return AsyncHeldLease(self, await self._run(flow))

        return AcquireContext(acquire, AsyncHeldLease.release)

    def agent(
        self,
        id: str,
        *,
        session: Optional[str] = None,
        ttl: float = 60.0,
        wait: Optional[float] = 60.0,
        skew: float = 0.5,
        priority: Optional[int] = None,
    ) -> AsyncAgent:
        """An agent of this name, as :meth:`Client.agent` makes it."""
        return AsyncAgent(self, agents.AgentCore(id, session, ttl, wait, skew, priority))

    def resume(self, digest: PersistedAgentState) -> AcquireContext[AsyncHeldManifest]:
        """Goes on where an earlier process of an agent was, as :meth:`Client.resume` does."""

        async def acquire() -> AsyncHeldManifest:
            core = held_manifest.restore_agent(digest)
            return AsyncHeldManifest(AsyncAgent(self, core), await self._run(held_manifest.resume(core, digest)))

        return AcquireContext(acquire, AsyncHeldManifest.release)

    async def show(self, lease: str) -> LeaseView:
        """A lease as it is."""
        return LeaseView.from_dict((await self.send(get(encode_path("v1", "leases", lease))))["lease"])

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncHeldLease(held_lease.HeldLeaseCore):
    """A lease that is held and kept alive."""

    def __init__(self, client: AsyncClient, core: held_lease.HeldLeaseCore) -> None:
        super().__init__(core.view, core._token, core._keep_alive)
        self._client = client
        self._task = FlowTask(client, self._renew_loop())
        self._is_done = False

    async def release(self, reason: Optional[str] = None) -> None:
        """Gives it back: COMPLETED, ABORTED or VOLUNTARY. A second time does nothing."""
        if not self._is_done:
            self._is_done = True
            self._task.stop()
            await self._client._run(self._release(reason))


class AsyncAgent:
    """Declares what it is about to touch, and gets all of it or nothing. It declares one thing after the other."""

    def __init__(self, client: AsyncClient, core: agents.AgentCore) -> None:
        self._client, self.core = client, core

    def declare(
        self, intents: Iterable[IntentLike], *, wait: WaitLimit = USE_AGENT_DEFAULT
    ) -> AcquireContext[AsyncHeldManifest]:
        """Waits until all of it is the agent's, as :meth:`Agent.declare` does."""
        declared, wait_limit = to_intents(intents), resolve_wait_limit(wait, self.core.wait)

        async def acquire() -> AsyncHeldManifest:
            try:
                heartbeat = await self._client._run(agents.declare(self.core, declared, wait_limit))
            except asyncio.CancelledError:
                # Others should not have to wait for us.
                await asyncio.shield(self._client._run(self.core._withdraw()))
                raise
            return AsyncHeldManifest(self, held_manifest.HeldManifestCore(self.core, declared, wait_limit, heartbeat))

        return AcquireContext(acquire, AsyncHeldManifest.release)

    async def report(self, state: str) -> Dict[str, Any]:
        """Says what it is doing: PLANNING, EXECUTING, VERIFYING, …"""
        return await self._client.send(self.core._state_report(state))

    async def complete(self) -> None:
        """It is done: it waits for nothing and holds nothing any more."""
        await self._client._run(self.core._end("COMPLETED"))

    async def abort(self) -> None:
        """It gives up. Whoever wants another priority does this first."""
        await self._client._run(self.core._end("ABORTED"))


class AsyncHeldManifest(held_manifest.HeldManifestCore):
    """Everything that one declaration got, kept alive."""

    def __init__(self, agent: AsyncAgent, core: held_manifest.HeldManifestCore) -> None:
        super().__init__(agent.core, core.intents, core._wait, core._heartbeat)
        self.is_continuous = core.is_continuous
        self.agent, self._client = agent, agent._client
        self._is_done = False
        self._agent._change_manifest_count(+1)
        self._task = FlowTask(self._client, self._heartbeat.run())

    async def touch(self, touched: Iterable[IntentLike]) -> None:
        """Says what the agent is about to touch; :class:`ScopeViolation` if it has no lease for some of it."""
        await self._client._run(self._touch(touched))

    async def wait_until_paused(self) -> TenureError:
        """Returns as soon as the agent may not go on, with the reason."""
        return await self._client._run(self._wait_until_paused())

    async def wait_until_resumed(self) -> None:
        """Returns when the agent may go on; raises :class:`LeaseLost` if it may not any more."""
        await self._client._run(self._wait_until_resumed())

    async def reacquire(self) -> None:
        """Asks what is true of the leases, and declares the same anew. Look at ``is_continuous`` afterwards."""
        self._task.stop()
        await self._client._run(self._reacquire())
        self._task = FlowTask(self._client, self._heartbeat.run())

    async def prepare_restart(self) -> PersistedAgentState:
        """The process ends, and is started again. Save what this returns, and exit with RESTART_EXIT_CODE."""
        digest = await self._client._run(self._prepare_restart())
        self._is_done = True
        self._task.stop()
        return digest

    async def release(self) -> None:
        """Gives everything back. A second time does nothing."""
        if not self._is_done:
            self._is_done = True
            self._task.stop()
            await self._client._run(self._release())
