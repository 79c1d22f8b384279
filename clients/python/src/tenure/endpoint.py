"""Where the server is and who speaks: from a program, or from the environment."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Union

#: What httpx takes for ``verify``.
Verify = Union[bool, ssl.SSLContext]


@dataclass(frozen=True)
class Endpoint:
    """Where the server is, with all that it takes to get there."""

    base_url: str
    socket: Optional[str]
    headers: Mapping[str, str]
    verify: Verify

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket else self.base_url


def resolve_endpoint(
    url: Optional[str] = None,
    token: Optional[str] = None,
    certificate_authority: Optional[str] = None,
    environment: Optional[Mapping[str, str]] = None,
) -> Endpoint:
    """What the arguments say, else ``TENURE_URL``, ``TENURE_TOKEN`` and ``TENURE_CA``, else the socket on this machine:
    ``TENURE_SOCKET``, else ``$XDG_RUNTIME_DIR/tenure/tenure.sock``, else ``/tmp/tenure-UID/tenure.sock``."""
    variables = os.environ if environment is None else environment
    url = url or variables.get("TENURE_URL") or "unix:" + _default_socket(variables)
    token = (token or variables.get("TENURE_TOKEN") or "").strip()
    certificate_authority = certificate_authority or variables.get("TENURE_CA") or None
    if any(not "!" <= character <= "~" for character in token):
        raise ValueError("the API token holds characters that no token has; look at TENURE_TOKEN")
    if url.startswith("unix:"):
        path = url[len("unix:") :]
        path = path[2:] if path.startswith("//") else path
        if not path.startswith("/"):
            raise ValueError(_invalid_url_message(url))
        # There the system says who speaks, and a token would only be one more place to leak it.
        return Endpoint("http://localhost", path, {}, False)
    scheme, _, host = url.partition("://")
    host = host.rstrip("/")
    if scheme not in ("http", "https") or not host or any(character in host for character in "/?#@ "):
        raise ValueError(_invalid_url_message(url))
    headers: Dict[str, str] = {"Authorization": f"Bearer {token}"} if token else {}
    verify: Verify = ssl.create_default_context(cafile=certificate_authority) if scheme == "https" else False
    return Endpoint(f"{scheme}://{host}", None, headers, verify)


def _default_socket(variables: Mapping[str, str]) -> str:
    named = variables.get("TENURE_SOCKET")
    if named:
        return named
    folder = variables.get("XDG_RUNTIME_DIR")
    folder = f"{folder}/tenure" if folder else f"/tmp/tenure-{os.getuid()}"
    return f"{folder}/tenure.sock"


def _invalid_url_message(url: str) -> str:
    # It may hold a password, and then must not be repeated.
    shown = "…" if "@" in url else url
    return f"`{shown}` is not the address of a server; write http://HOST:PORT, https://HOST:PORT or unix:/PATH"
