"""Runs flows in tasks."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Dict, Generator, Generic, Optional, TypeVar

import httpx

from .belief import now
from .errors import TenureError
from .place import Place
from .transport import LIMITS, answer_of, arguments_of, failure, options
from .wire import Answer, Flow, Request, ask

T = TypeVar("T")

#: The longest sleep at once: timers stand still while the machine sleeps.
_PIECE = 1.0


class AsyncDriver:
    """Sends requests, and does what flows ask for."""

    def __init__(self, place: Place) -> None:
        #: Where the server is, for messages. No secret is in it.
        self.address = str(place)
        transport = httpx.AsyncHTTPTransport(verify=place.verify, uds=place.socket, limits=LIMITS)
        self._http = httpx.AsyncClient(transport=transport, **options(place))

    async def ask(self, request: Request) -> Dict[str, Any]:
        """Any request, with its answer as JSON."""
        return await self._run(ask(request))

    async def close(self) -> None:
        """Closes the connections. What is still held is not kept alive any more."""
        await self._http.aclose()

    async def _send(self, request: Request) -> Answer:
        built = self._http.build_request(request.method, request.path, **arguments_of(request))
        try:
            return answer_of(await self._http.send(built))
        except Exception as error:
            raise failure(error, self.address) from error

    async def _run(self, flow: Flow[T]) -> T:
        """Does what the flow asks for."""
        try:
            step = next(flow)
            while True:
                try:
                    answer = None
                    if isinstance(step, Request):
                        answer = await self._send(step)
                    else:
                        while (left := step.at - now()) > 0:
                            await asyncio.sleep(min(left, _PIECE))
                except TenureError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result


class Kept:
    """A flow in a task of its own, until it is stopped."""

    def __init__(self, driver: AsyncDriver, flow: Flow[None]) -> None:
        self._task = asyncio.ensure_future(driver._run(flow))

    def stop(self) -> None:
        self._task.cancel()


class Opening(Generic[T]):
    """Something that will be had: ``await`` it, or use it in an ``async with`` block, whose end gives it back."""

    def __init__(self, opened: Callable[[], Awaitable[T]], close: Callable[[T], Awaitable[None]]) -> None:
        self._opened, self._close = opened, close
        self._held: Optional[T] = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._opened().__await__()

    async def __aenter__(self) -> T:
        self._held = await self._opened()
        return self._held

    async def __aexit__(self, *_: object) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        try:
            await self._close(held)
        except TenureError:
            # It runs out by itself, and what the block raised counts more.
            pass
