"""The keep-alive state machine and the local deadline, with an explicit clock."""

import threading
from typing import List

import pytest

from tenure import LeaseLost, Paused
from tenure.keepalive import KeepAlive, local_deadline


def new_keep_alive() -> KeepAlive:
    """Granted at 0 for a minute, with half a second for clocks that do not agree."""
    return KeepAlive(60.0, 0.0, 60.0, skew=0.5, can_pause=True, jitter=lambda: 0.0)


def error_type(keep_alive: KeepAlive, at: float) -> object:
    return type(keep_alive.status.check_error(at))


# S3-12
def test_heartbeat_is_due_after_a_third_of_the_ttl() -> None:
    keep_alive = new_keep_alive()
    assert 15.0 <= keep_alive.due_at <= 20.0
    keep_alive.record_success(keep_alive.due_at, 60.0)
    assert 30.0 <= keep_alive.due_at <= 40.0


# S3-27
def test_local_deadline_counts_from_sending_the_request() -> None:
    assert local_deadline(1.0, 10.0) == pytest.approx(1.0 + 9.95 - 0.05)
    assert local_deadline(7.0, 0.05) == 7.0, "too short to be believed at all"


# S3-32
def test_local_deadline_is_earlier_by_the_skew() -> None:
    keep_alive = new_keep_alive()
    deadline = local_deadline(0.0, 59.5)
    assert keep_alive.status.deadline == pytest.approx(deadline)
    assert error_type(keep_alive, deadline - 0.001) is Paused and error_type(keep_alive, deadline) is LeaseLost
    short = KeepAlive(1.0, 0.0, 1.0, skew=60.0, can_pause=True)
    assert short.status.deadline == pytest.approx(local_deadline(0.0, 0.5)), "half of it is left"


# S3-30, S3-31
def test_failed_heartbeat_pauses_at_once_and_a_successful_one_resumes() -> None:
    keep_alive = new_keep_alive()
    assert error_type(keep_alive, 19.0) is type(None)
    keep_alive.record_failure(20.0)
    assert error_type(keep_alive, 20.0) is Paused
    assert 20.0 < keep_alive.due_at < 21.0, "it is soon tried again"
    keep_alive.record_success(20.5, 60.0)
    assert error_type(keep_alive, 20.5) is type(None)


# S3-30, S3-31
def test_missing_responses_pause_and_then_lose_the_lease_for_good() -> None:
    keep_alive = new_keep_alive()
    assert error_type(keep_alive, 35.0) is Paused, "by then a heartbeat should have been answered"
    assert keep_alive.has_ended(59.5)
    keep_alive.record_success(59.0, 60.0)
    assert error_type(keep_alive, 59.6) is LeaseLost, "an answer that comes too late changes nothing"


# S3-30
def test_rejected_lease_is_lost_at_once() -> None:
    keep_alive = new_keep_alive()
    keep_alive.record_end("REVOKED")
    error = keep_alive.status.check_error(1.0)
    assert isinstance(error, LeaseLost) and error.end == "REVOKED"


def test_plain_lease_is_valid_until_its_deadline_despite_failed_renewals() -> None:
    keep_alive = KeepAlive(30.0, 0.0, 30.0)
    keep_alive.record_failure(10.0)
    assert error_type(keep_alive, 29.7) is type(None) and error_type(keep_alive, 29.8) is LeaseLost


def test_concurrent_response_does_not_revive_a_released_lease() -> None:
    for response in ("success", "failure"):
        keep_alive = new_keep_alive()
        threads: List[threading.Thread] = []

        class ReleasedConcurrently(KeepAlive):
            """Another thread releases it while the response is handled."""

            def __setattr__(self, name: str, value: object) -> None:
                if name == "status" and not getattr(value, "has_ended") and not threads:
                    other = threading.Thread(target=self.record_end, args=("RELEASED",))
                    threads.append(other)
                    other.start()
                    other.join(0.2)
                super().__setattr__(name, value)

        keep_alive.__class__ = ReleasedConcurrently
        if response == "success":
            keep_alive.record_success(20.0, 60.0)
        else:
            keep_alive.record_failure(20.0)
        threads[0].join()
        assert error_type(keep_alive, 20.0) is LeaseLost, response
