"""What can go wrong. The classes differ by what a caller does next; no secret is in any of them."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple


class TenureError(Exception):
    """Anything that goes wrong with Tenure."""

    #: What programs decide by, if the server said no.
    code: Optional[str] = None
    #: Whether the same request may well succeed a moment later, by itself.
    passes = False

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        #: What happened, and what to do.
        self.detail = detail


class Refused(TenureError):
    """The server said no. ``code`` says why, and docs/errors explains each."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        code = str(problem.get("code") or "INTERNAL")
        detail = str(problem.get("detail") or problem.get("title") or f"the server said {status}")
        super().__init__(f"{detail} ({code})")
        self.code = code
        self.detail = detail
        self.status = status
        #: Everything that the server said.
        self.problem: Dict[str, Any] = dict(problem)
        self.passes = code in _PASSING


class Held(Refused):
    """Somebody else has it, and the wait, if any, is over."""

    @property
    def holder(self) -> Optional[str]:
        """Who has it."""
        return self.problem.get("holder")


class ScopeViolation(Refused):
    """The agent has no lease for something that it touches."""

    @property
    def outside(self) -> List[Tuple[str, str]]:
        """What is outside: predicate and resource."""
        return [(want["predicate"], want["resource"]) for want in self.problem.get("outside") or []]


class DigestStale(Refused):
    """What the agent remembers is too old. Begin anew."""


class Unreachable(TenureError):
    """The server was not reached. Nothing happened."""

    passes = True


class OutcomeUnknown(TenureError):
    """The request was sent, and its answer was lost: it may have happened."""

    passes = True


class NotTenure(TenureError):
    """Something answers there, but not as Tenure does."""

    passes = True


class InTheWay(TenureError):
    """Others had what an agent wants for as long as it would wait. It waits no more."""

    def __init__(self, blocked_by: List[str]) -> None:
        who = ", ".join(blocked_by) or "others"
        super().__init__(
            f"{who} had what the agent wants for as long as it would wait; wait longer, or want something else"
        )
        #: Who.
        self.blocked_by = blocked_by


class Doubt(TenureError):
    """What is held is in doubt, or lost: do not go on."""


class Paused(Doubt):
    """A heartbeat did not get through. Pause; when one does in time, work goes on (``claim.resumed()``)."""

    def __init__(self) -> None:
        super().__init__("no heartbeat gets through; pause until one does, or until the leases are lost")


class LeaseLost(Doubt):
    """The lease is over, or may be: stop what it protects."""

    def __init__(self, how: Optional[str] = None) -> None:
        why = f"the lease is over ({how})" if how else "the lease was not renewed in time"
        super().__init__(f"{why}; stop, and acquire it again")
        #: How it ended, in the server's word; nothing if the time was up.
        self.how = how


#: What the server says while it cannot answer for a moment.
_PASSING = frozenset({"BUSY", "UNAVAILABLE", "TOO_LATE", "OUTCOME_UNKNOWN", "TOO_MANY_CONNECTIONS", "TOO_SLOW"})

_CLASSES = {"HELD": Held, "SCOPE_VIOLATION": ScopeViolation, "DIGEST_STALE": DigestStale}


def refused(status: int, problem: Mapping[str, Any]) -> Refused:
    """The problem as the class that fits its code."""
    return _CLASSES.get(str(problem.get("code")), Refused)(status, problem)
