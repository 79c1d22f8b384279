"""Plain leases against the real server."""

import asyncio
import threading
import time

import pytest
from conftest import Server, eventually

from tenure import AsyncClient, Client, Held, LeaseLost, ProblemError, Unreachable
from tenure.flow import encode_path, get


def test_lease_is_renewed_past_its_ttl_and_released_at_the_end_of_the_block(client: Client) -> None:
    with client.lease("door:a", "alice", ttl=2.0) as lease:
        end = time.monotonic() + 4.5
        while time.monotonic() < end:
            assert lease.check() == lease.fence
            with pytest.raises(Held) as held:
                client.lease("door:a", "bob", ttl=1.0)
            time.sleep(0.1)
        assert held.value.code == "HELD" and held.value.holder == "alice" and held.value.detail
    with pytest.raises(LeaseLost):
        lease.check()
    assert client.show(lease.view.id).state == "RELEASED"
    with client.lease("door:a", "bob", ttl=1.0) as next_lease:
        assert next_lease.fence > lease.fence


def test_waiter_acquires_the_lease_when_it_is_released(client: Client) -> None:
    first = client.lease("door:b", "alice", ttl=5.0)
    fences = []

    def wait() -> None:
        with client.lease("door:b", "bob", ttl=5.0, wait=20.0) as lease:
            fences.append(lease.fence)

    waiting = threading.Thread(target=wait)
    waiting.start()
    eventually(lambda: bool(_waiter_notice(client, first.view.id)))
    first.release("COMPLETED")
    waiting.join(20)
    assert fences and fences[0] > first.fence


def _waiter_notice(client: Client, lease: str) -> object:
    return client.send(get(encode_path("v1", "leases", lease)))["lease"].get("recall")


def test_disconnected_holder_loses_the_lease_at_its_local_deadline(own_server: Server) -> None:
    with own_server.client() as client:
        with client.lease("door:c", "alice", ttl=1.5) as lease:
            lease.check()
            own_server.stop()
            eventually(lambda: not lease.is_valid)
            with pytest.raises(LeaseLost):
                lease.check()


def test_socket_requires_no_token_and_a_wrong_token_is_rejected(server: Server) -> None:
    with Client(f"unix:{server.socket}") as client, client.lease("door:d", "by-socket") as lease:
        assert lease.is_valid and "token" not in repr(lease)
    with Client(server.url, "wrong") as stranger, pytest.raises(ProblemError) as rejected:
        stranger.lease("door:d", "alice")
    assert rejected.value.code == "UNAUTHORIZED" and rejected.value.status == 401


def test_missing_server_raises_unreachable() -> None:
    with Client("http://127.0.0.1:9", "x") as client, pytest.raises(Unreachable, match="nothing happened"):
        client.lease("door:e", "alice")


def test_async_lease_is_renewed_and_released(server: Server) -> None:
    async def scenario() -> None:
        async with AsyncClient(server.url, server.token) as client:
            async with client.lease("door:f", "alice", ttl=2.0) as lease:
                await asyncio.sleep(2.5)
                assert lease.check() == lease.fence
                with pytest.raises(Held):
                    await client.lease("door:f", "bob", ttl=1.0)
            assert (await client.show(lease.view.id)).state == "RELEASED"
            held = await client.lease("door:f", "bob", ttl=1.0, wait=5.0)
            await held.release()

    asyncio.run(scenario())
