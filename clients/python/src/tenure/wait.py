"""For how long to wait."""

from __future__ import annotations

from enum import Enum
from typing import Optional, Union


class Default(Enum):
    """As long as the agent says."""

    DEFAULT = "default"


DEFAULT = Default.DEFAULT

#: Seconds; ``None`` for ever; or as long as the agent says.
Wait = Union[float, None, Default]


def chosen(wait: Wait, default: Optional[float]) -> Optional[float]:
    """What was said, or the default."""
    return default if isinstance(wait, Default) else wait
