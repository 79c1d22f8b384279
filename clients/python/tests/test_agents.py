"""Agents against the real server."""

import asyncio
import threading
import time

import pytest
from conftest import Server, eventually, is_free

from tenure import AsyncClient, Blocked, CheckError, Client, LeaseLost, Paused, ProblemError, ScopeViolation
from tenure.flow import encode_path, get


# S3-11, S3-12
def test_held_manifest_is_renewed_and_released_at_the_end_of_the_block(client: Client) -> None:
    intents = [("MUTATES", "FILE:kept/a"), ("CONSUMES", "FILE:kept/b/")]
    with client.agent("keeper", ttl=2.0, skew=0.1).declare(intents) as manifest:
        end = time.monotonic() + 4.5
        while time.monotonic() < end:
            assert not is_free(client, "FILE:kept/a") and not is_free(client, "FILE:kept/b/")
            time.sleep(0.1)
        assert len(manifest.leases) == 2 and manifest.fence("FILE:kept/a")
    assert is_free(client, "FILE:kept/a") and is_free(client, "FILE:kept/b/")
    with pytest.raises(LeaseLost):
        manifest.check()


def test_wait_die_lets_the_older_agent_wait_and_the_younger_agent_retry(client: Client) -> None:
    first = client.agent("middle", priority=2_000).declare([("MUTATES", "FILE:turn")])
    order = []

    def declare(name: str, priority: int) -> None:
        with client.agent(name, priority=priority, wait=30.0).declare([("MUTATES", "FILE:turn")]):
            order.append(name)

    threads = [threading.Thread(target=declare, args=found) for found in [("older", 1_000), ("younger", 3_000)]]
    for thread in threads:
        thread.start()
    eventually(lambda: _view(client, "older")["waits"] != [] and _view(client, "younger")["deaths"] > 0)
    first.release()
    for thread in threads:
        thread.join(30)
    assert order == ["older", "younger"]


def _view(client: Client, agent: str) -> dict:  # type: ignore[type-arg]
    try:
        return client.send(get(encode_path("v1", "agents", agent)))
    except ProblemError:
        return {"waits": [], "deaths": 0}


def test_agent_that_gives_up_leaves_no_wait(client: Client) -> None:
    with client.agent("owner", priority=2_000).declare([("MUTATES", "FILE:given-up")]):
        with pytest.raises(Blocked) as blocked:
            client.agent("impatient", priority=1_000).declare([("MUTATES", "FILE:given-up")], wait=0.3)
        assert blocked.value.blocked_by == ["owner"]
        assert _view(client, "impatient")["waits"] == []


def test_touching_an_undeclared_resource_raises_scope_violation(client: Client) -> None:
    with client.agent("toucher").declare([("MUTATES", "FILE:mine/")]) as manifest:
        manifest.touch([("MUTATES", "FILE:mine/a")])
        with pytest.raises(ScopeViolation) as outside:
            manifest.touch([("MUTATES", "FILE:mine/a"), ("MUTATES", "FILE:yours")])
        assert outside.value.outside == [("MUTATES", "FILE:yours")]
        assert outside.value.code == "SCOPE_VIOLATION"


# S3-30, S3-31
def test_held_manifest_pauses_while_the_server_is_down_and_resumes_afterwards(own_server: Server) -> None:
    with own_server.client() as client:
        with client.agent("cut-off", ttl=6.0).declare([("MUTATES", "FILE:a")]) as manifest:
            own_server.stop()
            assert isinstance(manifest.wait_until_paused(), Paused)
            with pytest.raises(Paused):
                manifest.check()
            own_server.start()
            manifest.wait_until_resumed()
            manifest.check()
            assert manifest.is_continuous


# S3-17, S3-30, S3-31
def test_lost_manifest_stays_invalid_until_reacquired(own_server: Server) -> None:
    with own_server.client() as client:
        with client.agent("lost", ttl=2.0, skew=0.2).declare(
            [("MUTATES", "FILE:a"), ("CONSUMES", "FILE:b")]
        ) as manifest:
            before, priority = manifest.leases, manifest.agent.core.priority
            own_server.stop()
            assert isinstance(manifest.wait_until_paused(), CheckError)
            with pytest.raises(LeaseLost):
                manifest.wait_until_resumed()
            own_server.start()
            eventually(lambda: is_free(client, "FILE:a"))
            assert not manifest.is_valid
            manifest.reacquire()
            manifest.check()
            assert not manifest.is_continuous, "others could have had it"
            assert min(lease.fence for lease in manifest.leases) > max(lease.fence for lease in before)
            assert manifest.agent.core.priority == priority


# S3-30
def test_released_agent_lease_is_lost_with_the_next_heartbeat(client: Client) -> None:
    agent = client.agent("robbed", ttl=3.0, skew=0.1)
    with agent.declare([("MUTATES", "FILE:robbed")]) as manifest:
        client.agent("robbed", session=agent.core.session).complete()
        found = manifest.wait_until_paused()
        assert isinstance(found, LeaseLost) and found.end == "RELEASED"
        manifest.reacquire()
        manifest.check()


def test_async_agent_declares_touches_and_reacquires(server: Server) -> None:
    async def scenario() -> None:
        async with AsyncClient(server.url, server.token) as client:
            agent = client.agent("task", ttl=2.0, skew=0.1)
            async with agent.declare([("MUTATES", "FILE:task")]) as manifest:
                await asyncio.sleep(2.5)
                await manifest.wait_until_resumed()
                await manifest.touch([("MUTATES", "FILE:task")])
                with pytest.raises(ScopeViolation):
                    await manifest.touch([("DELETES", "FILE:other")])
                waiting = asyncio.ensure_future(_declare(client.agent("waiter", priority=1), "FILE:task"))
                await asyncio.sleep(0.3)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                await manifest.reacquire()
                assert manifest.is_continuous
            again = await agent.declare([("MUTATES", "FILE:task")])
            await again.release()

    async def _declare(agent: object, resource: str) -> None:
        await agent.declare([("MUTATES", resource)])  # type: ignore[attr-defined]

    asyncio.run(scenario())
