"""What schemathesis must know of this server: some answers take as long as they are asked to, and one never ends.

A request with `waitMs` stays open for as long as it says. What `/v1/events` answers to a good question has no end, which
schemathesis cannot wait for: it is asked with one field too many, so that every one of its refusals is tried and nothing
else. `/v1/stream` answers only WebSockets at length, and schemathesis cannot open one: all that it sends is refused. The
tests of the server listen to both.
"""

import schemathesis

LONGEST_WAIT_MS = 50


def shorten_wait(value):
    if isinstance(value, dict):
        wait = value.get("waitMs")
        if isinstance(wait, (int, float)) and not isinstance(wait, bool) and wait > LONGEST_WAIT_MS:
            value = {**value, "waitMs": LONGEST_WAIT_MS}
        return {name: shorten_wait(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shorten_wait(item) for item in value]
    return value


@schemathesis.hook
def map_body(context, body):
    return shorten_wait(body)


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.path == "/v1/events":
        case.query = {**(case.query or {}), "colour": "red"}
