"""What an agent does about the answer to its manifest. Told the time; does nothing itself."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

_MIN_BACKOFF = 0.05
#: Nobody is told when its turn has come, so that it is asked for. Once a second costs the server little.
_MAX_BACKOFF = 1.0
_MAX_WAIT = 24 * 3600.0


class RetrySchedule:
    """The way from a manifest to its leases. ``wait`` in seconds; ``None`` is for ever."""

    def __init__(self, wait: Optional[float], ttl: float, at: float) -> None:
        self._deadline = None if wait is None else at + max(0.0, wait)
        self._ttl = ttl
        self._polls = 0
        #: Who was last seen in the way.
        self.blocked_by: List[str] = []

    def remaining_wait_ms(self, at: float) -> int:
        """How long the agent would still wait, as the server is told. At least one: nobody can wait for less."""
        remaining = _MAX_WAIT if self._deadline is None else self._deadline - at
        return max(1, int(remaining * 1000))

    def handle_verdict(self, verdict: Mapping[str, Any], at: float) -> Optional[float]:
        """When to send the same manifest again, after a verdict that grants nothing; nothing means to give up."""
        self.blocked_by = list(verdict.get("blockedBy") or [])
        if verdict.get("verdict") != "DIE":
            return self.next_retry(at)
        self._polls = 0
        retry_at = at + float(verdict["retryAfterMs"]) / 1000
        return None if self._deadline is not None and retry_at >= self._deadline else retry_at

    def next_retry(self, at: float) -> Optional[float]:
        """When to ask again after nothing was heard, or nothing that lasts; nothing means to give up."""
        if self._deadline is not None and at >= self._deadline:
            return None
        backoff: float = min(_MIN_BACKOFF * 2 ** min(self._polls, 16), _MAX_BACKOFF, self._ttl / 4)
        self._polls += 1
        # One last look at the very end.
        return at + backoff if self._deadline is None else min(at + backoff, self._deadline)
