"""The real server in a folder of its own, which can be stopped and started again."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import time
from typing import Callable, Iterator, Optional

import pytest

from tenure import Client
from tenure.flow import encode_path, get

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("TENURE_PROGRAM") or str(ROOT / "target/debug/tenure")


class Server:
    """One server. Its port stays the same when it is started again."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.socket = folder / "tenure.sock"
        self.process: Optional[subprocess.Popen[str]] = None
        self.start()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
        environment.update(XDG_CONFIG_HOME=str(self.folder), XDG_STATE_HOME=str(self.folder))
        arguments = ["serve", "--listen", f"127.0.0.1:{self.port}", "--socket", str(self.socket)]
        self.process = subprocess.Popen(
            [PROGRAM, *arguments, "--data", str(self.folder / "data")],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert "listening on" in self.process.stdout.readline(), "the server says where it listens"

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None

    @property
    def token(self) -> str:
        return (self.folder / "data/admin.token").read_text().strip()

    def client(self) -> Client:
        return Client(self.url, self.token)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests that do not stop it."""
    found = Server(tmp_path_factory.mktemp("server"))
    yield found
    found.stop()


@pytest.fixture
def own_server(tmp_path: pathlib.Path) -> Iterator[Server]:
    """One for this test alone."""
    found = Server(tmp_path)
    yield found
    found.stop()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client() as found:
        yield found


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Polls until the condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never became so"
        time.sleep(0.02)


def is_free(client: Client, resource: str) -> bool:
    """Whether no agent holds the resource."""
    return not client.send(get(encode_path("v1", "resource", resource, "state")))["held"]
