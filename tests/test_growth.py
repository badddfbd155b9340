"""No reader takes much more than twice the steps for twice the input: what a stranger sends costs by its size."""

from __future__ import annotations

from support.growth import GROWING, growth

MOST = 2.1
"""What is added is 2.00 to 2.04 times as much today; comparing each of 60 launches with all others made it 2.35."""


def test_twice_the_input_takes_twice_the_steps_of_every_reader() -> None:
    """Reports, cubins, exports, prints, JSON of counters and timelines are read in time in proportion to their size."""
    grown = {f"{one.reader}, {one.what}": growth(one) for one in GROWING}
    assert not {what: found for what, found in grown.items() if not 0 < found[2] <= MOST}
