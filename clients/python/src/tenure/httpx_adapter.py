"""Between requests and httpx, for threads and tasks alike."""

from __future__ import annotations

from typing import Any, Dict

import httpx

from .endpoint import Endpoint
from .errors import OutcomeUnknown, TenureError, Unreachable
from .flow import ApiRequest, HttpResponse

#: Seconds that a connection may take to come about.
_CONNECT_TIMEOUT = 5.0
#: Whoever waits in a queue has a connection, however many they are: none of them may keep a heartbeat from one.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0)


def client_options(endpoint: Endpoint) -> Dict[str, Any]:
    """What both of httpx's clients are made with. Nothing of the environment decides where a token goes."""
    return {
        "base_url": endpoint.base_url,
        "headers": dict(endpoint.headers),
        "trust_env": False,
        "follow_redirects": False,
    }


def request_arguments(request: ApiRequest) -> Dict[str, Any]:
    """What both of httpx's clients build a request from."""
    headers = {} if request.key is None else {"Idempotency-Key": request.key}
    timeout = httpx.Timeout(request.timeout, connect=min(_CONNECT_TIMEOUT, request.timeout))
    arguments: Dict[str, Any] = {"headers": headers, "timeout": timeout}
    if request.body is not None:
        arguments["json"] = request.body
    return arguments


def to_http_response(response: httpx.Response) -> HttpResponse:
    """The answer, which was read whole."""
    return HttpResponse(response.status_code, response.headers.get("content-type", ""), response.content)


def to_error(error: Exception, address: str) -> TenureError:
    """What it means that there is no answer."""
    not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, RuntimeError)
    if isinstance(error, not_sent):
        return Unreachable(
            f"no Tenure server answers at {address}: {error}; nothing happened. Is `tenure serve` running? "
            "TENURE_URL names another server, TENURE_SOCKET another socket"
        )
    name = type(error).__name__
    return OutcomeUnknown(f"the answer of {address} was lost ({name}); the request may have been carried out")
