"""The requests of each flow and their order, with made-up responses."""

import json
from dataclasses import replace
from typing import Any, Dict, List, Tuple
from urllib.parse import unquote

import httpx
import pytest

from tenure import AgentIntent, LeaseLost, LeaseView, Paused, Unreachable
from tenure.agents import AgentCore, AgentHeartbeat
from tenure.flow import ApiRequest, Flow, HttpResponse, SleepUntil, encode_path
from tenure.held_lease import HeldLeaseCore
from tenure.held_manifest import HeldManifestCore, restore_agent, resume
from tenure.keepalive import KeepAlive, now
from tenure.model import AgentLease

Replies = List[Tuple[str, Dict[str, Any]]]


def lease(id: str) -> Dict[str, Any]:
    times = {"acquired_at": "", "expires_at": "", "ttl": 60_000, "remainingMs": 60_000}
    return {"id": id, "resource": f"FILE:{id}", "predicate": "MUTATES", "agent_id": "a", "fence": 1, **times}


def manifest_for(*ids: str) -> HeldManifestCore:
    agent = AgentCore("a", "s", 60.0, 60.0, 0.5, 7)
    heartbeat = AgentHeartbeat(agent, [AgentLease.from_dict(lease(id)) for id in ids], now())
    return HeldManifestCore(agent, [AgentIntent("MUTATES", f"FILE:{id}") for id in ids], 60.0, heartbeat)


def run_flow(flow: Flow[Any], replies: Replies) -> List[ApiRequest]:
    """Answers each request in turn, and gives all of them. What waits does not have to."""
    requests: List[ApiRequest] = []
    step = next(flow)
    try:
        while True:
            if isinstance(step, SleepUntil):
                step = flow.send(None)
                continue
            requests.append(step)
            path, body = replies[len(requests) - 1]
            assert step.path == path
            step = flow.send(HttpResponse(200, "application/json", json.dumps(body).encode()))
    except StopIteration:
        return requests


# S3-17
def test_reacquire_reconciles_before_it_declares() -> None:
    manifest = manifest_for("x", "y")
    reconciled = {"leases": {"x": {"held": True}, "y": {"held": False}}}
    granted = {"verdict": "GRANTED", "leases": [lease("x"), lease("z")]}
    requests = run_flow(manifest._reacquire(), [("/v1/leases/reconcile", reconciled), ("/v1/manifest", granted)])
    assert requests[0].body == {"agent_id": "a", "lease_ids": ["x", "y"]}
    assert requests[1].body is not None and requests[1].body["priority_timestamp"] == 7
    assert not manifest.is_continuous and manifest.is_valid


# S3-17, O-19
def test_resume_reports_the_digest_and_reconciles() -> None:
    digest = manifest_for("x").persisted_state()
    replies: Replies = [
        ("/v1/agents/a/state", {}),
        ("/v1/leases/reconcile", {"leases": {"x": {"held": True}}}),
        ("/v1/manifest", {"verdict": "GRANTED", "leases": [lease("x")]}),
    ]
    requests = run_flow(resume(restore_agent(digest), digest), replies)
    assert requests[0].body is not None and requests[0].body["state"] == "VERIFYING"
    assert requests[0].body["digest"]["version"] == "1.0"
    assert requests[0].body["digest"]["identity"] == {"agent_id": "a", "priority_timestamp": 7, "epoch": 1}


# S3-11, S3-30
def test_heartbeat_covers_all_leases_and_one_rejection_loses_them() -> None:
    manifest = manifest_for("x", "y")
    manifest._heartbeat.keep_alive.due_at = 0.0
    flow = manifest._heartbeat.run()
    assert isinstance(next(flow), SleepUntil)
    request = flow.send(None)
    assert isinstance(request, ApiRequest) and request.path == "/v1/leases/heartbeat"
    assert request.body == {"agent_id": "a", "lease_ids": ["x", "y"]}
    response = {"renewed": [{"id": "x", "remainingMs": 1}], "rejected": [{"id": "y", "code": "EXPIRED"}]}
    with pytest.raises(StopIteration):
        flow.send(HttpResponse(200, "application/json", json.dumps(response).encode()))
    with pytest.raises(LeaseLost, match="EXPIRED"):
        manifest.check()


def flow_with_sent_heartbeat(manifest: HeldManifestCore) -> Flow[None]:
    """The heartbeats of a manifest, of which the first is under way."""
    manifest._heartbeat.keep_alive.due_at = 0.0
    flow = manifest._heartbeat.run()
    next(flow)
    assert isinstance(flow.send(None), ApiRequest)
    return flow


# S3-30, S3-31
def test_heartbeat_response_after_the_deadline_does_not_revive_the_manifest() -> None:
    manifest = manifest_for("x")
    flow = flow_with_sent_heartbeat(manifest)
    manifest._heartbeat.keep_alive.status = replace(manifest._heartbeat.keep_alive.status, deadline=now() - 0.001)
    with pytest.raises(LeaseLost):
        manifest.check()
    response = {"renewed": [{"id": "x", "remainingMs": 60_000}], "rejected": []}
    with pytest.raises(StopIteration):
        flow.send(HttpResponse(200, "application/json", json.dumps(response).encode()))
    assert not manifest.is_valid


def test_renewal_response_after_the_deadline_does_not_revive_the_lease() -> None:
    view = {"id": "l", "resource": "r", "holder": "h", "mode": "exclusive", "state": "ACTIVE", "fence": 1}
    view.update(ttlMs=30_000, remainingMs=30_000, expiresAt="")
    core = HeldLeaseCore(LeaseView.from_dict(view), "t", KeepAlive(30.0, now(), 30.0))
    core._keep_alive.due_at = 0.0
    flow = core._renew_loop()
    next(flow)
    assert isinstance(flow.send(None), ApiRequest)
    core._keep_alive.status = replace(core._keep_alive.status, deadline=now() - 0.001)
    with pytest.raises(StopIteration):
        flow.send(HttpResponse(200, "application/json", json.dumps({"lease": view}).encode()))
    with pytest.raises(LeaseLost):
        core.check()


# S3-30
@pytest.mark.parametrize("body", [{}, {"renewed": 7, "rejected": []}, {"renewed": [{}], "rejected": []}])
def test_malformed_heartbeat_response_pauses_and_heartbeats_continue(body: Dict[str, Any]) -> None:
    manifest = manifest_for("x")
    flow = flow_with_sent_heartbeat(manifest)
    assert isinstance(flow.send(HttpResponse(200, "application/json", json.dumps(body).encode())), SleepUntil)
    with pytest.raises(Paused):
        manifest.check()


def test_path_segments_are_percent_encoded() -> None:
    for name in (".", "..", "a/b", "a?b", "a%2Fb"):
        url = httpx.URL("http://server").join(encode_path("v1", "agents", name, "state"))
        assert unquote(url.raw_path.decode().split("/")[3]) == name


# S3-30, S3-31
def test_unreachable_server_pauses_at_once() -> None:
    manifest = manifest_for("x")
    manifest._heartbeat.keep_alive.due_at = 0.0
    flow = manifest._heartbeat.run()
    next(flow)
    flow.send(None)
    assert manifest.is_valid
    assert isinstance(flow.throw(Unreachable("nobody")), SleepUntil)
    assert not manifest.is_valid
