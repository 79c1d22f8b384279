"""Many waiting requests of one client."""

import asyncio

from tenure import AsyncClient
from tenure.flow import get


def test_many_waiting_requests_do_not_exhaust_the_connection_pool() -> None:
    async def scenario() -> None:
        count, arrived = 120, asyncio.Semaphore(0)

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.release()
            await reader.read(-1)
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with AsyncClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
            waiting = [asyncio.ensure_future(client.send(get("/v1/wait"))) for _ in range(count)]
            for _ in range(count):
                await asyncio.wait_for(arrived.acquire(), 10.0)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        server.close()

    asyncio.run(scenario())
