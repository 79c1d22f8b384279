"""Requests, answers, and what is done with them: as generators that ask and wait, and that threads and tasks both can run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, Generator, Optional, TypeVar, Union
from urllib.parse import quote

from .errors import ProtocolError, problem_error

T = TypeVar("T")

#: Seconds that an answer may take that nobody waits for in a queue.
RESPONSE_TIMEOUT = 30.0


@dataclass(frozen=True)
class ApiRequest:
    """One request, ready to be sent."""

    method: str
    path: str
    body: Optional[Dict[str, Any]] = None
    key: Optional[str] = None
    timeout: float = RESPONSE_TIMEOUT


@dataclass(frozen=True)
class HttpResponse:
    """A whole response."""

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True)
class SleepUntil:
    """Wait until the clock says so."""

    at: float


#: Something that asks and waits, and comes to a result.
Flow = Generator[Union[ApiRequest, SleepUntil], Optional[HttpResponse], T]


def encode_path(*parts: str) -> str:
    """An address whose parts come from outside, and cannot change what is asked."""
    # `.` and `..` would be taken for steps.
    quoted = (quote(part, safe="") for part in parts)
    return "/" + "/".join(part.replace(".", "%2E") if part in (".", "..") else part for part in quoted)


def post(
    url_path: str, body: Dict[str, Any], *, key: Optional[str] = None, timeout: float = RESPONSE_TIMEOUT
) -> ApiRequest:
    """A request with a body."""
    return ApiRequest("POST", url_path, body, key, timeout)


def get(url_path: str) -> ApiRequest:
    """A request that changes nothing."""
    return ApiRequest("GET", url_path)


def send(request: ApiRequest) -> Flow[Dict[str, Any]]:
    """Sends a request and reads its response; raises :class:`ProblemError` if it is a problem."""
    response = yield request
    assert response is not None, "a request is answered"
    return read_response(response)


def sleep_until(at: float) -> Flow[None]:
    """Waits."""
    yield SleepUntil(at)


def read_response(response: HttpResponse) -> Dict[str, Any]:
    """What it says, or the problem that it is."""
    try:
        parsed = json.loads(response.body)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        # The text itself stays out: it may hold the token of a lease.
        raise ProtocolError(
            f"what answers there says {response.status}, and nothing that Tenure says; look at TENURE_URL"
        )
    if 200 <= response.status < 300:
        return parsed
    if response.content_type.startswith("application/problem+json"):
        raise problem_error(response.status, parsed)
    raise ProtocolError(f"what answers there says {response.status} and no reason; look at TENURE_URL")
