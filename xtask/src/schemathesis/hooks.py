"""What schemathesis must know of this server: a request with `waitMs` stays open for as long as it says."""

import schemathesis

LONGEST_WAIT_MS = 50


def shorten(value):
    if isinstance(value, dict):
        wait = value.get("waitMs")
        if isinstance(wait, (int, float)) and not isinstance(wait, bool) and wait > LONGEST_WAIT_MS:
            value = {**value, "waitMs": LONGEST_WAIT_MS}
        return {name: shorten(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shorten(inner) for inner in value]
    return value


@schemathesis.hook
def map_body(context, body):
    return shorten(body)
