"""What may be believed, with the time told."""

import threading
from typing import List

import pytest

from tenure import LeaseLost, Paused
from tenure.belief import Pulse, believed_until


def pulse() -> Pulse:
    """Granted at 0 for a minute, with half a second for clocks that do not agree."""
    return Pulse(60.0, 0.0, 60.0, skew=0.5, pauses=True, chance=lambda: 0.0)


def doubt(pulse: Pulse, at: float) -> object:
    return type(pulse.standing.doubt(at))


# S3-12
def test_heartbeat_is_due_after_a_third_of_the_ttl() -> None:
    kept = pulse()
    assert 15.0 <= kept.due_at <= 20.0
    kept.answered(kept.due_at, 60.0)
    assert 30.0 <= kept.due_at <= 40.0


# S3-27
def test_local_deadline_counts_from_sending_the_request() -> None:
    assert believed_until(1.0, 10.0) == pytest.approx(1.0 + 9.95 - 0.05)
    assert believed_until(7.0, 0.05) == 7.0, "too short to be believed at all"


# S3-32
def test_local_deadline_is_earlier_by_the_skew() -> None:
    kept = pulse()
    end = believed_until(0.0, 59.5)
    assert kept.standing.until == pytest.approx(end)
    assert doubt(kept, end - 0.001) is Paused and doubt(kept, end) is LeaseLost
    short = Pulse(1.0, 0.0, 1.0, skew=60.0, pauses=True)
    assert short.standing.until == pytest.approx(believed_until(0.0, 0.5)), "half of it is left"


# S3-30, S3-31
def test_failed_heartbeat_pauses_at_once_and_a_successful_one_resumes() -> None:
    kept = pulse()
    assert doubt(kept, 19.0) is type(None)
    kept.failed(20.0)
    assert doubt(kept, 20.0) is Paused
    assert 20.0 < kept.due_at < 21.0, "it is soon tried again"
    kept.answered(20.5, 60.0)
    assert doubt(kept, 20.5) is type(None)


# S3-30, S3-31
def test_missing_responses_pause_and_then_lose_the_lease_for_good() -> None:
    kept = pulse()
    assert doubt(kept, 35.0) is Paused, "by then a heartbeat should have been answered"
    assert kept.is_over(59.5)
    kept.answered(59.0, 60.0)
    assert doubt(kept, 59.6) is LeaseLost, "an answer that comes too late changes nothing"


# S3-30
def test_rejected_lease_is_lost_at_once() -> None:
    kept = pulse()
    kept.ended("REVOKED")
    found = kept.standing.doubt(1.0)
    assert isinstance(found, LeaseLost) and found.how == "REVOKED"


def test_plain_lease_is_valid_until_its_deadline_despite_failed_renewals() -> None:
    kept = Pulse(30.0, 0.0, 30.0)
    kept.failed(10.0)
    assert doubt(kept, 29.7) is type(None) and doubt(kept, 29.8) is LeaseLost


def test_concurrent_response_does_not_revive_a_released_lease() -> None:
    for heard in ("answered", "failed"):
        kept = pulse()
        ended: List[threading.Thread] = []

        class Meanwhile(Pulse):
            """Somebody gives it back just when the answer is taken in."""

            def __setattr__(self, name: str, value: object) -> None:
                if name == "standing" and not getattr(value, "is_over") and not ended:
                    other = threading.Thread(target=self.ended, args=("RELEASED",))
                    ended.append(other)
                    other.start()
                    other.join(0.2)
                super().__setattr__(name, value)

        kept.__class__ = Meanwhile
        if heard == "answered":
            kept.answered(20.0, 60.0)
        else:
            kept.failed(20.0)
        ended[0].join()
        assert doubt(kept, 20.0) is LeaseLost, heard
