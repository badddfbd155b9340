"""Short fuzzing: earlier findings and a few mutated inputs, each time the same; `make fuzz` draws new ones."""

from __future__ import annotations

from random import Random

import pytest
from fuzzing.targets import FOUND, TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

INPUTS = {name: target.seeds() for name, target in TARGETS.items()}


def test_what_was_found_stays_mended() -> None:
    """An input that once crashed a reader gives records or our error."""
    for file in sorted(FOUND.glob("*-*")):
        TARGETS[file.name.partition("-")[0]].read(file.read_bytes())


@pytest.mark.parametrize("name", list(TARGETS))
def test_inputs_to_begin_with_are_read(name: str) -> None:
    """The inputs are valid before mutation: otherwise only refusals would be tested."""
    assert [at for at, data in enumerate(INPUTS[name]) if not TARGETS[name].read(data)] == []


@pytest.mark.parametrize("name", list(TARGETS))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, 2**16), count=st.integers(1, 5), chance=st.randoms(use_true_random=False))
def test_changed_inputs_end_no_reader(name: str, at: int, count: int, chance: Random) -> None:
    """Any mutated input gives records or our error."""
    data = INPUTS[name][at % len(INPUTS[name])]
    for _ in range(count):
        data = TARGETS[name].mutate(data, chance)
    TARGETS[name].read(data)
