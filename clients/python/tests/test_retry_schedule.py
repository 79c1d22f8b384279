"""The retry schedule of an agent after each verdict, with an explicit clock."""

from tenure.retry_schedule import RetrySchedule

WAIT = {"verdict": "WAIT", "blockedBy": ["bob"]}


def die(milliseconds: int) -> dict:  # type: ignore[type-arg]
    return {"verdict": "DIE", "retryAfterMs": milliseconds, "blockedBy": ["carol"]}


def test_wait_verdict_is_retried_with_backoff_until_the_wait_limit() -> None:
    schedule, at, requests = RetrySchedule(5.0, 60.0, 0.0), 0.0, 0
    while True:
        retry_at = schedule.handle_verdict(WAIT, at)
        if retry_at is None:
            break
        assert at < retry_at <= at + 1.0
        at, requests = retry_at, requests + 1
    assert at == 5.0 and 8 <= requests <= 12
    assert schedule.blocked_by == ["bob"]


def test_die_verdict_is_retried_after_its_delay_unless_past_the_wait_limit() -> None:
    schedule = RetrySchedule(5.0, 60.0, 0.0)
    assert schedule.handle_verdict(die(400), 1.0) == 1.4
    assert schedule.handle_verdict(die(4000), 1.4) is None
    assert RetrySchedule(None, 60.0, 0.0).handle_verdict(die(30_000), 7.0) == 37.0


def test_retry_interval_is_limited_to_a_quarter_of_the_ttl() -> None:
    schedule = RetrySchedule(None, 1.0, 0.0)
    assert all((schedule.handle_verdict(WAIT, 0.0) or 9.0) <= 0.25 for _ in range(20))
