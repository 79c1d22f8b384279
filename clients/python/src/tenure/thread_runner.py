"""Runs flows in threads."""

from __future__ import annotations

import threading
from typing import Any, Dict, Optional, TypeVar

import httpx

from .endpoint import Endpoint
from .errors import TenureError
from .flow import ApiRequest, Flow, HttpResponse, send
from .httpx_adapter import LIMITS, client_options, request_arguments, to_error, to_http_response
from .keepalive import now

T = TypeVar("T")

#: The longest sleep at once: timers stand still while the machine sleeps.
_MAX_SLEEP = 1.0


class FlowStopped(Exception):
    """Nobody wants it any more."""


class ThreadRunner:
    """Sends requests, and does what flows ask for."""

    def __init__(self, endpoint: Endpoint) -> None:
        #: Where the server is, for messages. No secret is in it.
        self.address = str(endpoint)
        transport = httpx.HTTPTransport(verify=endpoint.verify, uds=endpoint.socket, limits=LIMITS)
        self._http = httpx.Client(transport=transport, **client_options(endpoint))

    def send(self, request: ApiRequest) -> Dict[str, Any]:
        """Any request, with its answer as JSON."""
        return self._run(send(request))

    def close(self) -> None:
        """Closes the connections. What is still held is not kept alive any more."""
        self._http.close()

    def _round_trip(self, request: ApiRequest) -> HttpResponse:
        built = self._http.build_request(request.method, request.path, **request_arguments(request))
        try:
            return to_http_response(self._http.send(built))
        except Exception as error:
            raise to_error(error, self.address) from error

    def _run(self, flow: Flow[T], stop: Optional[threading.Event] = None) -> T:
        """Does what the flow asks for. When ``stop`` is set, it ends at the next sleep."""
        stop = stop or threading.Event()
        try:
            step = next(flow)
            while True:
                try:
                    response = None
                    if isinstance(step, ApiRequest):
                        response = self._round_trip(step)
                    else:
                        while (remaining := step.at - now()) > 0 and not stop.wait(min(remaining, _MAX_SLEEP)):
                            pass
                        if stop.is_set():
                            raise FlowStopped
                except TenureError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(response)
        except StopIteration as finished:
            result: T = finished.value
            return result


class FlowThread:
    """A flow in a thread of its own, until it is stopped."""

    def __init__(self, runner: ThreadRunner, flow: Flow[None]) -> None:
        self._stop = threading.Event()
        self._runner, self._flow = runner, flow
        threading.Thread(target=self._run_flow, name="tenure-keepalive", daemon=True).start()

    def _run_flow(self) -> None:
        try:
            self._runner._run(self._flow, self._stop)
        except FlowStopped:
            pass

    def stop(self) -> None:
        self._stop.set()
