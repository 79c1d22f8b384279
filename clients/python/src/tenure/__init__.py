"""The Python client of Tenure: keeps a lease alive, and stops by itself when it cannot."""

from .aio import AsyncAgent, AsyncClient, AsyncHeldLease, AsyncHeldManifest
from .errors import (
    Blocked,
    CheckError,
    DigestStale,
    Held,
    LeaseLost,
    OutcomeUnknown,
    Paused,
    ProblemError,
    ProtocolError,
    ScopeViolation,
    TenureError,
    Unreachable,
)
from .model import RESTART_EXIT_CODE, AgentIntent, AgentLease, LeaseView, PersistedAgentState
from .sync import Agent, Client, HeldLease, HeldManifest

__all__ = [
    "RESTART_EXIT_CODE",
    "Agent",
    "AgentIntent",
    "AgentLease",
    "AsyncAgent",
    "AsyncClient",
    "AsyncHeldLease",
    "AsyncHeldManifest",
    "Blocked",
    "CheckError",
    "Client",
    "DigestStale",
    "Held",
    "HeldLease",
    "HeldManifest",
    "LeaseLost",
    "LeaseView",
    "OutcomeUnknown",
    "Paused",
    "PersistedAgentState",
    "ProblemError",
    "ProtocolError",
    "ScopeViolation",
    "TenureError",
    "Unreachable",
]
