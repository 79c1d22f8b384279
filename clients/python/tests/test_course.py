"""What an agent does about each verdict, with the time told; and where a server is found."""

import pytest

from tenure.course import Course
from tenure.place import find

WAIT = {"verdict": "WAIT", "blockedBy": ["bob"]}


def die(milliseconds: int) -> dict:  # type: ignore[type-arg]
    return {"verdict": "DIE", "retryAfterMs": milliseconds, "blockedBy": ["carol"]}


def test_wait_verdict_is_retried_with_backoff_until_the_wait_limit() -> None:
    course, at, asked = Course(5.0, 60.0, 0.0), 0.0, 0
    while True:
        again = course.after(WAIT, at)
        if again is None:
            break
        assert at < again <= at + 1.0
        at, asked = again, asked + 1
    assert at == 5.0 and 8 <= asked <= 12
    assert course.blocked_by == ["bob"]


def test_die_verdict_is_retried_after_its_delay_unless_past_the_wait_limit() -> None:
    course = Course(5.0, 60.0, 0.0)
    assert course.after(die(400), 1.0) == 1.4
    assert course.after(die(4000), 1.4) is None
    assert Course(None, 60.0, 0.0).after(die(30_000), 7.0) == 37.0


def test_retry_interval_is_limited_to_a_quarter_of_the_ttl() -> None:
    course = Course(None, 1.0, 0.0)
    assert all((course.after(WAIT, 0.0) or 9.0) <= 0.25 for _ in range(20))


def test_url_is_preferred_to_the_socket_and_the_socket_has_a_default() -> None:
    def address(**variables: str) -> str:
        return str(find(environment=variables))

    assert address(TENURE_URL="http://a:1", TENURE_SOCKET="/b") == "http://a:1"
    assert address(TENURE_URL="unix:///a") == "unix:/a"
    assert address(TENURE_URL="", TENURE_SOCKET="/b", XDG_RUNTIME_DIR="/r") == "unix:/b"
    assert address(XDG_RUNTIME_DIR="/r") == "unix:/r/tenure/tenure.sock"
    assert address().startswith("unix:/tmp/tenure-")


def test_token_is_not_sent_to_a_socket_and_not_shown_in_errors() -> None:
    assert find("unix:/a", "secret").headers == {}
    assert find("http://a:1", "secret").headers == {"Authorization": "Bearer secret"}
    with pytest.raises(ValueError) as refused:
        find("http://a:1", "two words")
    assert "TENURE_TOKEN" in str(refused.value) and "words" not in str(refused.value)


@pytest.mark.parametrize("url", ["a:1", "ftp://x", "http://x/path", "http://x?q", "unix:run.sock", "http://"])
def test_invalid_server_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="is not the address of a server"):
        find(url)


def test_password_in_a_url_is_not_shown_in_errors() -> None:
    with pytest.raises(ValueError) as refused:
        find("http://user:hunter2@x")
    assert "hunter2" not in str(refused.value)
