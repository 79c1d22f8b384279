"""What goes over the wire, as values. Fields that are not known are ignored: a newer server may say more."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

#: An agent that ends in order to be started again exits with this, so that whoever started it knows.
RESTART_EXIT_CODE = 107


@dataclass(frozen=True)
class LeaseView:
    """A plain lease as the server last described it."""

    id: str
    resource: str
    holder: str
    mode: str
    state: str
    fence: int
    ttl_ms: int
    remaining_ms: int
    expires_at: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> LeaseView:
        """From the server's words."""
        return cls(
            fields["id"],
            fields["resource"],
            fields["holder"],
            fields["mode"],
            fields["state"],
            fields["fence"],
            fields["ttlMs"],
            fields["remainingMs"],
            fields["expiresAt"],
            dict(fields.get("labels") or {}),
        )


@dataclass(frozen=True)
class AgentLease:
    """A lease as agents see it."""

    id: str
    resource: str
    predicate: str
    agent_id: str
    acquired_at: str
    expires_at: str
    ttl: int
    fence: int
    remaining_ms: int

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> AgentLease:
        """From the server's words."""
        names = ("id", "resource", "predicate", "agent_id", "acquired_at", "expires_at", "ttl", "fence", "remainingMs")
        return cls(*(fields[name] for name in names))


@dataclass(frozen=True)
class AgentIntent:
    """One thing that an agent is about to touch: ``Intent("MUTATES", "FILE:src/lib.rs")``.

    Predicates are PROVIDES, CONSUMES, DEPENDS_ON, MUTATES, DELETES and RENAMES; types FILE, SYMBOL, API_ENDPOINT,
    DATABASE_TABLE and CONFIG_KEY. What ends with ``/`` means everything below.
    """

    predicate: str
    resource: str

    def to_manifest_intent(self) -> Dict[str, Any]:
        """As the server wants it. Without a type it has none, and the server says no."""
        kind, colon, path = self.resource.partition(":")
        found = {"resource_type": kind, "path": path} if colon else {"resource_type": "", "path": kind}
        return {"predicate": self.predicate, "object": found}

    def to_resource_access(self) -> Dict[str, str]:
        """As the server wants it where something is touched."""
        return {"resource": self.resource, "predicate": self.predicate}


#: An intent, or its predicate and its resource.
IntentLike = Union[AgentIntent, Tuple[str, str]]


def to_intents(intents: Iterable[IntentLike]) -> List[AgentIntent]:
    """Intents, however they were written down."""
    return [intent if isinstance(intent, AgentIntent) else AgentIntent(*intent) for intent in intents]


@dataclass(frozen=True)
class PersistedAgentState:
    """What an agent remembers over a restart of its process. It is good for five minutes, and is not what it holds."""

    agent_id: str
    session_id: str
    priority_timestamp: int
    epoch: int
    last_phase: str
    intents: Tuple[AgentIntent, ...]
    lease_ids: Tuple[str, ...]
    ttl: float
    skew: float

    def to_state_digest(self) -> Dict[str, Any]:
        """As the server wants it."""
        identity = {
            "agent_id": self.agent_id,
            "priority_timestamp": self.priority_timestamp,
            "epoch": self.epoch,
        }
        pending = [intent.to_manifest_intent() for intent in self.intents]
        recovery = {"last_phase": self.last_phase, "pending_intents": pending}
        return {"version": "1.0", "identity": identity, "recovery": recovery}

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes it to a file, whole or not at all."""
        temporary_path = f"{os.fspath(path)}.new"
        with open(temporary_path, "w", encoding="utf-8") as file:
            json.dump({"version": "1.0", **asdict(self)}, file, indent=2)
        os.replace(temporary_path, path)

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Optional[PersistedAgentState]:
        """Reads it from a file; nothing if there is none."""
        try:
            with open(path, encoding="utf-8") as file:
                fields = json.load(file)
        except FileNotFoundError:
            return None
        try:
            fields.pop("version")
            intents = tuple(AgentIntent(**intent) for intent in fields.pop("intents"))
            return cls(intents=intents, lease_ids=tuple(fields.pop("lease_ids")), **fields)
        except (AttributeError, KeyError, TypeError):
            raise ValueError("this is no digest of an agent; remove the file, and begin anew") from None
