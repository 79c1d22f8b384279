"""Runs flows in tasks."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Dict, Generator, Generic, Optional, TypeVar

import httpx

from .endpoint import Endpoint
from .errors import TenureError
from .flow import ApiRequest, Flow, HttpResponse, send
from .httpx_adapter import LIMITS, client_options, request_arguments, to_error, to_http_response
from .keepalive import now

T = TypeVar("T")

#: The longest sleep at once: timers stand still while the machine sleeps.
_MAX_SLEEP = 1.0


class TaskRunner:
    """Sends requests, and does what flows ask for."""

    def __init__(self, endpoint: Endpoint) -> None:
        #: Where the server is, for messages. No secret is in it.
        self.address = str(endpoint)
        transport = httpx.AsyncHTTPTransport(verify=endpoint.verify, uds=endpoint.socket, limits=LIMITS)
        self._http = httpx.AsyncClient(transport=transport, **client_options(endpoint))

    async def send(self, request: ApiRequest) -> Dict[str, Any]:
        """Any request, with its answer as JSON."""
        return await self._run(send(request))

    async def close(self) -> None:
        """Closes the connections. What is still held is not kept alive any more."""
        await self._http.aclose()

    async def _round_trip(self, request: ApiRequest) -> HttpResponse:
        built = self._http.build_request(request.method, request.path, **request_arguments(request))
        try:
            return to_http_response(await self._http.send(built))
        except Exception as error:
            raise to_error(error, self.address) from error

    async def _run(self, flow: Flow[T]) -> T:
        """Does what the flow asks for."""
        try:
            step = next(flow)
            while True:
                try:
                    response = None
                    if isinstance(step, ApiRequest):
                        response = await self._round_trip(step)
                    else:
                        while (remaining := step.at - now()) > 0:
                            await asyncio.sleep(min(remaining, _MAX_SLEEP))
                except TenureError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(response)
        except StopIteration as finished:
            result: T = finished.value
            return result


class FlowTask:
    """A flow in a task of its own, until it is stopped."""

    def __init__(self, runner: TaskRunner, flow: Flow[None]) -> None:
        self._task = asyncio.ensure_future(runner._run(flow))

    def stop(self) -> None:
        self._task.cancel()


class AcquireContext(Generic[T]):
    """Something that will be had: ``await`` it, or use it in an ``async with`` block, whose end gives it back."""

    def __init__(self, acquire: Callable[[], Awaitable[T]], release: Callable[[T], Awaitable[None]]) -> None:
        self._acquire, self._release = acquire, release
        self._held: Optional[T] = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._acquire().__await__()

    async def __aenter__(self) -> T:
        self._held = await self._acquire()
        return self._held

    async def __aexit__(self, *_: object) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        try:
            await self._release(held)
        except TenureError:
            # It runs out by itself, and what the block raised counts more.
            pass
