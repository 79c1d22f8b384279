"""Runs flows in threads."""

from __future__ import annotations

import threading
from typing import Any, Dict, Optional, TypeVar

import httpx

from .belief import now
from .errors import TenureError
from .place import Place
from .transport import LIMITS, answer_of, arguments_of, failure, options
from .wire import Answer, Flow, Request, ask

T = TypeVar("T")

#: The longest sleep at once: timers stand still while the machine sleeps.
_PIECE = 1.0


class Stopped(Exception):
    """Nobody wants it any more."""


class Driver:
    """Sends requests, and does what flows ask for."""

    def __init__(self, place: Place) -> None:
        #: Where the server is, for messages. No secret is in it.
        self.address = str(place)
        transport = httpx.HTTPTransport(verify=place.verify, uds=place.socket, limits=LIMITS)
        self._http = httpx.Client(transport=transport, **options(place))

    def ask(self, request: Request) -> Dict[str, Any]:
        """Any request, with its answer as JSON."""
        return self._run(ask(request))

    def close(self) -> None:
        """Closes the connections. What is still held is not kept alive any more."""
        self._http.close()

    def _send(self, request: Request) -> Answer:
        built = self._http.build_request(request.method, request.path, **arguments_of(request))
        try:
            return answer_of(self._http.send(built))
        except Exception as error:
            raise failure(error, self.address) from error

    def _run(self, flow: Flow[T], stop: Optional[threading.Event] = None) -> T:
        """Does what the flow asks for. When ``stop`` is set, it ends at the next sleep."""
        stop = stop or threading.Event()
        try:
            step = next(flow)
            while True:
                try:
                    answer = None
                    if isinstance(step, Request):
                        answer = self._send(step)
                    else:
                        while (left := step.at - now()) > 0 and not stop.wait(min(left, _PIECE)):
                            pass
                        if stop.is_set():
                            raise Stopped
                except TenureError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result


class Kept:
    """A flow in a thread of its own, until it is stopped."""

    def __init__(self, driver: Driver, flow: Flow[None]) -> None:
        self._stop = threading.Event()
        self._driver, self._flow = driver, flow
        threading.Thread(target=self._keep, name="tenure-keeper", daemon=True).start()

    def _keep(self) -> None:
        try:
            self._driver._run(self._flow, self._stop)
        except Stopped:
            pass

    def stop(self) -> None:
        self._stop.set()
