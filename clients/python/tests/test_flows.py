"""What is asked, and in which order: flows with answers made up."""

from typing import Any, Dict, List, Tuple

import json
from dataclasses import replace
from urllib.parse import unquote

import httpx
import pytest

from tenure import Intent, LeaseLost, LeaseView, Paused, Unreachable
from tenure.agents import AgentCore, Kept
from tenure.belief import Pulse, now
from tenure.claims import ClaimCore, core_of, resume
from tenure.leasing import LeaseCore
from tenure.model import AgentLease
from tenure.wire import Answer, Flow, Request, SleepUntil, path

Said = List[Tuple[str, Dict[str, Any]]]


def lease(id: str) -> Dict[str, Any]:
    times = {"acquired_at": "", "expires_at": "", "ttl": 60_000, "remainingMs": 60_000}
    return {"id": id, "resource": f"FILE:{id}", "predicate": "MUTATES", "agent_id": "a", "fence": 1, **times}


def claim_of(*ids: str) -> ClaimCore:
    agent = AgentCore("a", "s", 60.0, 60.0, 0.5, 7)
    kept = Kept(agent, [AgentLease.read(lease(id)) for id in ids], now())
    return ClaimCore(agent, [Intent("MUTATES", f"FILE:{id}") for id in ids], 60.0, kept)


def follow(flow: Flow[Any], said: Said) -> List[Request]:
    """Answers each request in turn, and gives all of them. What waits does not have to."""
    asked: List[Request] = []
    step = next(flow)
    try:
        while True:
            if isinstance(step, SleepUntil):
                step = flow.send(None)
                continue
            asked.append(step)
            path, body = said[len(asked) - 1]
            assert step.path == path
            step = flow.send(Answer(200, "application/json", json.dumps(body).encode()))
    except StopIteration:
        return asked


# S3-17
def test_reacquire_reconciles_before_it_declares() -> None:
    claim = claim_of("x", "y")
    truth = {"leases": {"x": {"held": True}, "y": {"held": False}}}
    granted = {"verdict": "GRANTED", "leases": [lease("x"), lease("z")]}
    asked = follow(claim._have_again(), [("/v1/leases/reconcile", truth), ("/v1/manifest", granted)])
    assert asked[0].body == {"agent_id": "a", "lease_ids": ["x", "y"]}
    assert asked[1].body is not None and asked[1].body["priority_timestamp"] == 7
    assert not claim.is_unbroken and claim.is_sure


# S3-17, O-19
def test_resume_reports_the_digest_and_reconciles() -> None:
    digest = claim_of("x").digest()
    said: Said = [
        ("/v1/agents/a/state", {}),
        ("/v1/leases/reconcile", {"leases": {"x": {"held": True}}}),
        ("/v1/manifest", {"verdict": "GRANTED", "leases": [lease("x")]}),
    ]
    asked = follow(resume(core_of(digest), digest), said)
    assert asked[0].body is not None and asked[0].body["state"] == "VERIFYING"
    assert asked[0].body["digest"]["version"] == "1.0"
    assert asked[0].body["digest"]["identity"] == {"agent_id": "a", "priority_timestamp": 7, "epoch": 1}


# S3-11, S3-30
def test_heartbeat_covers_all_leases_and_one_rejection_loses_them() -> None:
    claim = claim_of("x", "y")
    claim._kept.pulse.due_at = 0.0
    flow = claim._kept.keep()
    assert isinstance(next(flow), SleepUntil)
    beat = flow.send(None)
    assert isinstance(beat, Request) and beat.path == "/v1/leases/heartbeat"
    assert beat.body == {"agent_id": "a", "lease_ids": ["x", "y"]}
    answer = {"renewed": [{"id": "x", "remainingMs": 1}], "rejected": [{"id": "y", "code": "EXPIRED"}]}
    with pytest.raises(StopIteration):
        flow.send(Answer(200, "application/json", json.dumps(answer).encode()))
    with pytest.raises(LeaseLost, match="EXPIRED"):
        claim.check()


def sent_beat(claim: ClaimCore) -> Flow[None]:
    """The heartbeats of a claim, of which the first is under way."""
    claim._kept.pulse.due_at = 0.0
    flow = claim._kept.keep()
    next(flow)
    assert isinstance(flow.send(None), Request)
    return flow


# S3-30, S3-31
def test_heartbeat_response_after_the_deadline_does_not_revive_the_manifest() -> None:
    claim = claim_of("x")
    flow = sent_beat(claim)
    claim._kept.pulse.standing = replace(claim._kept.pulse.standing, until=now() - 0.001)
    with pytest.raises(LeaseLost):
        claim.check()
    answer = {"renewed": [{"id": "x", "remainingMs": 60_000}], "rejected": []}
    with pytest.raises(StopIteration):
        flow.send(Answer(200, "application/json", json.dumps(answer).encode()))
    assert not claim.is_sure


def test_renewal_response_after_the_deadline_does_not_revive_the_lease() -> None:
    view = {"id": "l", "resource": "r", "holder": "h", "mode": "exclusive", "state": "ACTIVE", "fence": 1}
    view.update(ttlMs=30_000, remainingMs=30_000, expiresAt="")
    core = LeaseCore(LeaseView.read(view), "t", Pulse(30.0, now(), 30.0))
    core._pulse.due_at = 0.0
    flow = core._keep()
    next(flow)
    assert isinstance(flow.send(None), Request)
    core._pulse.standing = replace(core._pulse.standing, until=now() - 0.001)
    with pytest.raises(StopIteration):
        flow.send(Answer(200, "application/json", json.dumps({"lease": view}).encode()))
    with pytest.raises(LeaseLost):
        core.check()


# S3-30
@pytest.mark.parametrize("said", [{}, {"renewed": 7, "rejected": []}, {"renewed": [{}], "rejected": []}])
def test_malformed_heartbeat_response_pauses_and_heartbeats_continue(said: Dict[str, Any]) -> None:
    claim = claim_of("x")
    flow = sent_beat(claim)
    assert isinstance(flow.send(Answer(200, "application/json", json.dumps(said).encode())), SleepUntil)
    with pytest.raises(Paused):
        claim.check()


def test_path_segments_are_percent_encoded() -> None:
    for name in (".", "..", "a/b", "a?b", "a%2Fb"):
        asked = httpx.URL("http://server").join(path("v1", "agents", name, "state"))
        assert unquote(asked.raw_path.decode().split("/")[3]) == name


# S3-30, S3-31
def test_unreachable_server_pauses_at_once() -> None:
    claim = claim_of("x")
    claim._kept.pulse.due_at = 0.0
    flow = claim._kept.keep()
    next(flow)
    flow.send(None)
    assert claim.is_sure
    assert isinstance(flow.throw(Unreachable("nobody")), SleepUntil)
    assert not claim.is_sure
