"""Where the client finds the server."""

import pytest

from tenure.endpoint import resolve_endpoint


def test_url_is_preferred_to_the_socket_and_the_socket_has_a_default() -> None:
    def address(**variables: str) -> str:
        return str(resolve_endpoint(environment=variables))

    assert address(TENURE_URL="http://a:1", TENURE_SOCKET="/b") == "http://a:1"
    assert address(TENURE_URL="unix:///a") == "unix:/a"
    assert address(TENURE_URL="", TENURE_SOCKET="/b", XDG_RUNTIME_DIR="/r") == "unix:/b"
    assert address(XDG_RUNTIME_DIR="/r") == "unix:/r/tenure/tenure.sock"
    assert address().startswith("unix:/tmp/tenure-")


def test_token_is_not_sent_to_a_socket_and_not_shown_in_errors() -> None:
    assert resolve_endpoint("unix:/a", "secret").headers == {}
    assert resolve_endpoint("http://a:1", "secret").headers == {"Authorization": "Bearer secret"}
    with pytest.raises(ValueError) as rejected:
        resolve_endpoint("http://a:1", "two words")
    assert "TENURE_TOKEN" in str(rejected.value) and "words" not in str(rejected.value)


@pytest.mark.parametrize("url", ["a:1", "ftp://x", "http://x/path", "http://x?q", "unix:run.sock", "http://"])
def test_invalid_server_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="is not the address of a server"):
        resolve_endpoint(url)


def test_password_in_a_url_is_not_shown_in_errors() -> None:
    with pytest.raises(ValueError) as rejected:
        resolve_endpoint("http://user:hunter2@x")
    assert "hunter2" not in str(rejected.value)
