"""The Python client of Tenure: keeps a lease alive, and stops by itself when it cannot."""

from .aio import AsyncAgent, AsyncClaim, AsyncClient, AsyncLease
from .errors import (
    DigestStale,
    Doubt,
    Held,
    InTheWay,
    LeaseLost,
    NotTenure,
    OutcomeUnknown,
    Paused,
    Refused,
    ScopeViolation,
    TenureError,
    Unreachable,
)
from .model import RESTART_EXIT_CODE, AgentLease, Digest, Intent, LeaseView
from .sync import Agent, Claim, Client, Lease

__all__ = [
    "RESTART_EXIT_CODE",
    "Agent",
    "AgentLease",
    "AsyncAgent",
    "AsyncClaim",
    "AsyncClient",
    "AsyncLease",
    "Claim",
    "Client",
    "Digest",
    "DigestStale",
    "Doubt",
    "Held",
    "InTheWay",
    "Intent",
    "Lease",
    "LeaseLost",
    "LeaseView",
    "NotTenure",
    "OutcomeUnknown",
    "Paused",
    "Refused",
    "ScopeViolation",
    "TenureError",
    "Unreachable",
]
