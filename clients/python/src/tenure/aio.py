"""The client for asyncio: one task per lease or claim keeps it alive."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, Iterable, Mapping, Optional

from . import agents, claims, leasing
from .aio_driver import AsyncDriver, Kept, Opening
from .errors import TenureError
from .model import Digest, LeaseView, Wanted, intents_of
from .place import find
from .wait import DEFAULT, Wait, chosen
from .wire import get, path


class AsyncClient(AsyncDriver):
    """Speaks to one server. Without arguments it is the one that the environment names, else the one on this machine."""

    def __init__(
        self, url: Optional[str] = None, token: Optional[str] = None, *, authority: Optional[str] = None
    ) -> None:
        super().__init__(find(url, token, authority))

    def lease(
        self,
        resource: str,
        holder: str,
        *,
        ttl: float = 30.0,
        wait: Optional[float] = 0.0,
        mode: str = "exclusive",
        labels: Optional[Mapping[str, str]] = None,
    ) -> Opening[AsyncLease]:
        """Acquires a lease and keeps it alive, as :meth:`Client.lease` does."""

        async def opened() -> AsyncLease:
            flow = leasing.acquire(resource, holder, ttl, mode, wait, labels)
            return AsyncLease(self, await self._run(flow))

        return Opening(opened, AsyncLease.release)

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

    def resume(self, digest: Digest) -> Opening[AsyncClaim]:
        """Goes on where an earlier process of an agent was, as :meth:`Client.resume` does."""

        async def opened() -> AsyncClaim:
            core = claims.core_of(digest)
            return AsyncClaim(AsyncAgent(self, core), await self._run(claims.resume(core, digest)))

        return Opening(opened, AsyncClaim.release)

    async def show(self, lease: str) -> LeaseView:
        """A lease as it is."""
        return LeaseView.read((await self.ask(get(path("v1", "leases", lease))))["lease"])

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncLease(leasing.LeaseCore):
    """A lease that is held and kept alive."""

    def __init__(self, client: AsyncClient, core: leasing.LeaseCore) -> None:
        super().__init__(core.view, core._token, core._pulse)
        self._client = client
        self._task = Kept(client, self._keep())
        self._is_done = False

    async def release(self, reason: Optional[str] = None) -> None:
        """Gives it back: COMPLETED, ABORTED or VOLUNTARY. A second time does nothing."""
        if not self._is_done:
            self._is_done = True
            self._task.stop()
            await self._client._run(self._give_back(reason))


class AsyncAgent:
    """Declares what it is about to touch, and gets all of it or nothing. It declares one thing after the other."""

    def __init__(self, client: AsyncClient, core: agents.AgentCore) -> None:
        self._client, self.core = client, core

    def declare(self, wanted: Iterable[Wanted], *, wait: Wait = DEFAULT) -> Opening[AsyncClaim]:
        """Waits until all of it is the agent's, as :meth:`Agent.declare` does."""
        intents, patience = intents_of(wanted), chosen(wait, self.core.wait)

        async def opened() -> AsyncClaim:
            try:
                kept = await self._client._run(agents.declare(self.core, intents, patience))
            except asyncio.CancelledError:
                # Others should not have to wait for us.
                await asyncio.shield(self._client._run(self.core._withdraw()))
                raise
            return AsyncClaim(self, claims.ClaimCore(self.core, intents, patience, kept))

        return Opening(opened, AsyncClaim.release)

    async def report(self, state: str) -> Dict[str, Any]:
        """Says what it is doing: PLANNING, EXECUTING, VERIFYING, …"""
        return await self._client.ask(self.core._report(state))

    async def complete(self) -> None:
        """It is done: it waits for nothing and holds nothing any more."""
        await self._client._run(self.core._end("COMPLETED"))

    async def abort(self) -> None:
        """It gives up. Whoever wants another priority does this first."""
        await self._client._run(self.core._end("ABORTED"))


class AsyncClaim(claims.ClaimCore):
    """Everything that one declaration got, kept alive."""

    def __init__(self, agent: AsyncAgent, core: claims.ClaimCore) -> None:
        super().__init__(agent.core, core.intents, core._wait, core._kept)
        self.is_unbroken = core.is_unbroken
        self.agent, self._client = agent, agent._client
        self._is_done = False
        self._agent._engaged(+1)
        self._task = Kept(self._client, self._kept.keep())

    async def touch(self, touched: Iterable[Wanted]) -> None:
        """Says what the agent is about to touch; :class:`ScopeViolation` if it has no lease for some of it."""
        await self._client._run(self._touch(touched))

    async def paused(self) -> TenureError:
        """Returns as soon as the agent may not go on, with the reason."""
        return await self._client._run(self._until_doubt())

    async def resumed(self) -> None:
        """Returns when the agent may go on; raises :class:`LeaseLost` if it may not any more."""
        await self._client._run(self._until_resumed())

    async def reacquire(self) -> None:
        """Asks what is true of the leases, and declares the same anew. Look at ``is_unbroken`` afterwards."""
        self._task.stop()
        await self._client._run(self._have_again())
        self._task = Kept(self._client, self._kept.keep())

    async def restart(self) -> Digest:
        """The process ends, and is started again. Save what this returns, and exit with RESTART_EXIT_CODE."""
        digest = await self._client._run(self._restart())
        self._is_done = True
        self._task.stop()
        return digest

    async def release(self) -> None:
        """Gives everything back. A second time does nothing."""
        if not self._is_done:
            self._is_done = True
            self._task.stop()
            await self._client._run(self._give_back())
