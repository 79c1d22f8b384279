"""Requests, answers, and what is done with them: as generators that ask and wait, and that threads and tasks both can run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, Generator, Optional, TypeVar, Union
from urllib.parse import quote

from .errors import NotTenure, refused

T = TypeVar("T")

#: Seconds that an answer may take that nobody waits for in a queue.
PATIENCE = 30.0


@dataclass(frozen=True)
class Request:
    """One request, ready to be sent."""

    method: str
    path: str
    body: Optional[Dict[str, Any]] = None
    key: Optional[str] = None
    patience: float = PATIENCE


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    media: str
    body: bytes


@dataclass(frozen=True)
class SleepUntil:
    """Wait until the clock says so."""

    at: float


#: Something that asks and waits, and comes to a result.
Flow = Generator[Union[Request, SleepUntil], Optional[Answer], T]


def path(*parts: str) -> str:
    """An address whose parts come from outside, and cannot change what is asked."""
    # `.` and `..` would be taken for steps.
    quoted = (quote(part, safe="") for part in parts)
    return "/" + "/".join(part.replace(".", "%2E") if part in (".", "..") else part for part in quoted)


def post(address: str, body: Dict[str, Any], *, key: Optional[str] = None, patience: float = PATIENCE) -> Request:
    """A request that says something."""
    return Request("POST", address, body, key, patience)


def get(address: str) -> Request:
    """A request that changes nothing."""
    return Request("GET", address)


def ask(request: Request) -> Flow[Dict[str, Any]]:
    """Asks, and reads what was answered; a refusal is raised."""
    answer = yield request
    assert answer is not None, "a request is answered"
    return read(answer)


def sleep_until(at: float) -> Flow[None]:
    """Waits."""
    yield SleepUntil(at)


def read(answer: Answer) -> Dict[str, Any]:
    """What it says, or the problem that it is."""
    try:
        said = json.loads(answer.body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        # The text itself stays out: it may hold the token of a lease.
        raise NotTenure(f"what answers there says {answer.status}, and nothing that Tenure says; look at TENURE_URL")
    if 200 <= answer.status < 300:
        return said
    if answer.media.startswith("application/problem+json"):
        raise refused(answer.status, said)
    raise NotTenure(f"what answers there says {answer.status} and no reason; look at TENURE_URL")
