"""What an agent does about the answer to its manifest. Told the time; does nothing itself."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

_FIRST_PAUSE = 0.05
#: Nobody is told when its turn has come, so that it is asked for. Once a second costs the server little.
_LONGEST_PAUSE = 1.0
_LONGEST_WAIT = 24 * 3600.0


class Course:
    """The way from a manifest to its leases. ``wait`` in seconds; ``None`` is for ever."""

    def __init__(self, wait: Optional[float], ttl: float, at: float) -> None:
        self._until = None if wait is None else at + max(0.0, wait)
        self._ttl = ttl
        self._looks = 0
        #: Who was last seen in the way.
        self.blocked_by: List[str] = []

    def left_ms(self, at: float) -> int:
        """How long the agent would still wait, as the server is told. At least one: nobody can wait for less."""
        left = _LONGEST_WAIT if self._until is None else self._until - at
        return max(1, int(left * 1000))

    def after(self, verdict: Mapping[str, Any], at: float) -> Optional[float]:
        """When to send the same manifest again, after a verdict that grants nothing; nothing means to give up."""
        self.blocked_by = list(verdict.get("blockedBy") or [])
        if verdict.get("verdict") != "DIE":
            return self.ask_again(at)
        self._looks = 0
        again = at + float(verdict["retryAfterMs"]) / 1000
        return None if self._until is not None and again >= self._until else again

    def ask_again(self, at: float) -> Optional[float]:
        """When to ask again after nothing was heard, or nothing that lasts; nothing means to give up."""
        if self._until is not None and at >= self._until:
            return None
        pause: float = min(_FIRST_PAUSE * 2 ** min(self._looks, 16), _LONGEST_PAUSE, self._ttl / 4)
        self._looks += 1
        # One last look at the very end.
        return at + pause if self._until is None else min(at + pause, self._until)
