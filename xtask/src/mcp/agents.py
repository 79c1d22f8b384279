"""Two agents meet at one file, through the official MCP client. Ends with 0 if all is as it should be."""

import os
import subprocess
import sys

import anyio
import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRAM = sys.argv[1]
TOOLS = ["declare", "status", "who", "heartbeat", "release", "report"]


def stdio_transport(agent):
    environment = {name: os.environ[name] for name in ("TENURE_URL", "TENURE_TOKEN")}
    return stdio_client(StdioServerParameters(command=PROGRAM, args=["mcp", "--agent", agent], env=environment))


def http_transport(url):
    headers = {"Authorization": "Bearer " + os.environ["TENURE_TOKEN"]}
    return streamable_http_client(url, http_client=httpx2.AsyncClient(headers=headers))


async def call(client, tool, failing=False, **arguments):
    result = await client.call_tool(tool, arguments)
    text = "".join(block.text for block in result.content)
    assert bool(result.is_error) == failing, (tool, arguments, text)
    assert text and isinstance(result.structured_content, dict), (tool, text)
    return result.structured_content


async def meet(one, other, path, extra=lambda agent: {}):
    """One gets the file, the other is told to come back, and gets it then. Every tool is called."""
    for client in (one, other):
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS, tools
        assert all(tool.description and tool.input_schema["properties"] for tool in tools), tools
    first, second = extra("one"), extra("other")
    touch = [{"path": path}]
    granted = await call(one, "declare", touch=touch, **first)
    assert granted["verdict"] == "GRANTED" and granted["heartbeatEveryMs"] > 0, granted
    lease = granted["leases"][0]["id"]
    refused = await call(other, "declare", touch=touch, **second)
    assert refused["verdict"] == "DIE" and refused["retryAfterMs"] > 0, refused
    state = await call(other, "who", path=path)
    assert state["held"] and state["leases"][0]["id"] == lease, state
    beaten = await call(one, "heartbeat", **first)
    assert [beat["id"] for beat in beaten["renewed"]] == [lease], beaten
    assert (await call(one, "status", lease_ids=[lease], **first))["reconciled"][lease]["held"]
    await call(one, "report", state="EXECUTING", touched=touch, **first)
    violation = await call(other, "report", failing=True, touched=touch, **second)
    assert violation["error"]["code"] == "SCOPE_VIOLATION", violation
    assert (await call(one, "release", **first))["released"] == [lease]
    granted = await call(other, "declare", touch=touch, **second)
    assert granted["verdict"] == "GRANTED", granted
    done = await call(other, "report", state="COMPLETED", **second)
    assert done["leases"] == [], done


async def run_all():
    # "legacy" begins with a handshake, "auto" without one where the server can do that.
    for mode in ("legacy", "auto"):
        one, other = stdio_transport(f"one-{mode}"), stdio_transport(f"other-{mode}")
        async with Client(one, mode=mode) as one, Client(other, mode=mode) as other:
            await meet(one, other, f"stdio-{mode}.rs")
    server = subprocess.Popen([PROGRAM, "mcp", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        for mode in ("legacy", "auto"):
            async with Client(http_transport(url), mode=mode) as one, Client(http_transport(url), mode=mode) as other:
                named = lambda agent: {"agent_id": f"{agent}-http-{mode}"}
                await meet(one, other, f"http-{mode}.rs", named)
    finally:
        server.terminate()
    assert server.wait() == 0


anyio.run(run_all)
print("the official client called every tool, over stdio and HTTP, with and without a handshake")
