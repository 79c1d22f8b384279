"""What can go wrong. The classes differ by what a caller does next; no secret is in any of them."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple


class TenureError(Exception):
    """Anything that goes wrong with Tenure."""

    #: What programs decide by, if the server said no.
    code: Optional[str] = None
    #: Whether the same request may well succeed a moment later, by itself.
    is_transient = False

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        #: What happened, and what to do.
        self.detail = detail


class ProblemError(TenureError):
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
        self.is_transient = code in _TRANSIENT_CODES


class Held(ProblemError):
    """Somebody else has it, and the wait, if any, is over."""

    @property
    def holder(self) -> Optional[str]:
        """Who has it."""
        return self.problem.get("holder")


class ScopeViolation(ProblemError):
    """The agent has no lease for something that it touches."""

    @property
    def outside(self) -> List[Tuple[str, str]]:
        """What is outside: predicate and resource."""
        return [(access["predicate"], access["resource"]) for access in self.problem.get("outside") or []]


class DigestStale(ProblemError):
    """What the agent remembers is too old. Begin anew."""


class Unreachable(TenureError):
    """The server was not reached. Nothing happened."""

    is_transient = True


class OutcomeUnknown(TenureError):
    """The request was sent, and its answer was lost: it may have happened."""

    is_transient = True


class ProtocolError(TenureError):
    """Something answers there, but not as Tenure does."""

    is_transient = True


class Blocked(TenureError):
    """Others had what an agent wants for as long as it would wait. It waits no more."""

    def __init__(self, blocked_by: List[str]) -> None:
        holders = ", ".join(blocked_by) or "others"
        super().__init__(
            f"{holders} had what the agent wants for as long as it would wait; wait longer, or want something else"
        )
        #: Who.
        self.blocked_by = blocked_by


class CheckError(TenureError):
    """What is held is in doubt, or lost: do not go on."""


class Paused(CheckError):
    """A heartbeat did not get through. Pause; when one does in time, work goes on (``manifest.wait_until_resumed()``)."""

    def __init__(self) -> None:
        super().__init__("no heartbeat gets through; pause until one does, or until the leases are lost")


class LeaseLost(CheckError):
    """The lease is over, or may be: stop what it protects."""

    def __init__(self, end: Optional[str] = None) -> None:
        why = f"the lease is over ({end})" if end else "the lease was not renewed in time"
        super().__init__(f"{why}; stop, and acquire it again")
        #: How it ended, in the server's word; nothing if the time was up.
        self.end = end


#: What the server says while it cannot answer for a moment.
_TRANSIENT_CODES = frozenset({"BUSY", "UNAVAILABLE", "TOO_LATE", "OUTCOME_UNKNOWN", "TOO_MANY_CONNECTIONS", "TOO_SLOW"})

_CLASS_BY_CODE = {"HELD": Held, "SCOPE_VIOLATION": ScopeViolation, "DIGEST_STALE": DigestStale}


def problem_error(status: int, problem: Mapping[str, Any]) -> ProblemError:
    """The problem as the class that fits its code."""
    return _CLASS_BY_CODE.get(str(problem.get("code")), ProblemError)(status, problem)
