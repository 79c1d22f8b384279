"""For how long to wait."""

from __future__ import annotations

from enum import Enum
from typing import Optional, Union


class UseAgentDefault(Enum):
    """As long as the agent says."""

    USE_AGENT_DEFAULT = "default"


USE_AGENT_DEFAULT = UseAgentDefault.USE_AGENT_DEFAULT

#: Seconds; ``None`` for ever; or as long as the agent says.
WaitLimit = Union[float, None, UseAgentDefault]


def resolve_wait_limit(wait: WaitLimit, default: Optional[float]) -> Optional[float]:
    """What was said, or the default."""
    return default if isinstance(wait, UseAgentDefault) else wait
