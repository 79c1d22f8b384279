"""Between requests and httpx, for threads and tasks alike."""

from __future__ import annotations

from typing import Any, Dict

import httpx

from .errors import OutcomeUnknown, TenureError, Unreachable
from .place import Place
from .wire import Answer, Request

#: Seconds that a connection may take to come about.
_CONNECT = 5.0
#: Whoever waits in a queue has a connection, however many they are: none of them may keep a heartbeat from one.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0)


def options(place: Place) -> Dict[str, Any]:
    """What both of httpx's clients are made with. Nothing of the environment decides where a token goes."""
    return {"base_url": place.base, "headers": dict(place.headers), "trust_env": False, "follow_redirects": False}


def arguments_of(request: Request) -> Dict[str, Any]:
    """What both of httpx's clients build a request from."""
    headers = {} if request.key is None else {"Idempotency-Key": request.key}
    timeout = httpx.Timeout(request.patience, connect=min(_CONNECT, request.patience))
    arguments: Dict[str, Any] = {"headers": headers, "timeout": timeout}
    if request.body is not None:
        arguments["json"] = request.body
    return arguments


def answer_of(response: httpx.Response) -> Answer:
    """The answer, which was read whole."""
    return Answer(response.status_code, response.headers.get("content-type", ""), response.content)


def failure(error: Exception, address: str) -> TenureError:
    """What it means that there is no answer."""
    not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, RuntimeError)
    if isinstance(error, not_sent):
        return Unreachable(
            f"no Tenure server answers at {address}: {error}; nothing happened. Is `tenure serve` running? "
            "TENURE_URL names another server, TENURE_SOCKET another socket"
        )
    name = type(error).__name__
    return OutcomeUnknown(f"the answer of {address} was lost ({name}); the request may have been carried out")
