"""The innermost event around each moment is the one that a look at all of them finds."""

from __future__ import annotations

from array import array
from random import Random

from rooflens.ingest.timelines.spans import NONE, Spans


def test_the_innermost_is_the_shortest_that_contains_the_moment() -> None:
    """Nested, overlapping and equal events, in any order, give what trying all gives; the first of equals wins."""
    chance = Random(11)  # noqa: S311 - repeatable, not secret
    for _ in range(300):
        spans, most = Spans(), chance.choice((5, 50, 1000))
        events = [(chance.randrange(most), chance.randrange(most)) for _ in range(chance.randint(0, 40))]
        threads = [chance.randrange(2) for _ in events]
        for thread, event in zip(threads, events, strict=True):
            spans.extend([thread], [event[0]], [sum(event)], [0])
        moments = array("q", sorted(chance.randrange(2 * most) for _ in range(chance.randint(0, 40))))
        for thread in (0, 1):
            own = [(duration, at) for at, (_, duration) in enumerate(events) if threads[at] == thread]
            expected = [
                min(
                    ((duration, at) for duration, at in own if events[at][0] <= moment <= events[at][0] + duration),
                    default=(0, NONE),
                )[1]
                for moment in moments
            ]
            assert list(spans.innermost(spans.in_order(thread), moments)) == expected
