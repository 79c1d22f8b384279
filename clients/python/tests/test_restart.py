"""An agent whose process ends and is started again, and the examples of the README."""

import pathlib
import re
import subprocess
import sys

import pytest
from conftest import Server

from tenure import RESTART_EXIT_CODE, Client, DigestStale, PersistedAgentState, ProblemError
from tenure.flow import encode_path, get


# S3-8, S3-17, O-19
def test_agent_that_restarts_in_time_resumes_its_leases(client: Client, tmp_path: pathlib.Path) -> None:
    manifest = client.agent("phoenix", ttl=5.0).declare([("MUTATES", "FILE:phoenix")])
    digest = manifest.prepare_restart()
    digest.save(tmp_path / "digest.json")
    manifest.release()
    state = client.send(get(encode_path("v1", "resource", "FILE:phoenix", "state")))
    assert state["leases"][0]["remainingMs"] > 10_000, "nothing is given back, and there are 15 s more"
    remembered = PersistedAgentState.load(tmp_path / "digest.json")
    assert remembered == digest and remembered is not None
    with client.resume(remembered) as resumed:
        resumed.check()
        assert resumed.is_continuous and [lease.id for lease in resumed.leases] == list(digest.lease_ids)
        assert resumed.agent.core.priority == digest.priority_timestamp
        later = resumed.persisted_state()
        assert later.epoch == digest.epoch + 1
        resumed.prepare_restart()
        client.resume(later).release()
    with pytest.raises(DigestStale) as stale:
        client.resume(digest)
    assert isinstance(stale.value, ProblemError) and stale.value.code == "DIGEST_STALE"


# O-19
def test_restart_exit_code_is_107() -> None:
    ended = subprocess.run([sys.executable, "-c", "import sys, tenure; sys.exit(tenure.RESTART_EXIT_CODE)"])
    assert ended.returncode == RESTART_EXIT_CODE == 107


def test_loading_a_missing_digest_returns_none_and_an_invalid_one_is_rejected(tmp_path: pathlib.Path) -> None:
    assert PersistedAgentState.load(tmp_path / "nothing.json") is None
    (tmp_path / "other.json").write_text('{"token": "secret"}')
    with pytest.raises(ValueError, match="begin anew"):
        PersistedAgentState.load(tmp_path / "other.json")


def test_readme_examples_run(server: Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", readme, re.S)
    assert len(examples) >= 4
    monkeypatch.setenv("TENURE_URL", server.url)
    monkeypatch.setenv("TENURE_TOKEN", server.token)
    monkeypatch.chdir(tmp_path)
    for example in examples:
        try:
            exec(compile(example, "README.md", "exec"), {"__name__": "__main__"})
        except SystemExit as ended:
            assert ended.code == RESTART_EXIT_CODE
