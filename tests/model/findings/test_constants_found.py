"""Findings about constants: loads whose index is known only at run time."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, found_by, make_facts, unsaid

from rooflens.model.findings.memory import indexed_constants
from rooflens.model.records import Inside, Pipe


@pytest.mark.parametrize(
    ("loads", "capability", "by_index", "said"),
    [(49, "8.6", True, False), (50, "8.6", False, True), (50, "9.0", False, False), (50, "9.0", True, True)],
)
def test_indexed_constants_fill_the_pipe_of_addresses(
    loads: int, capability: str, *, by_index: bool, said: bool
) -> None:
    """A twentieth of the instructions fill the ADU; newer compilers load parameters in the same way."""
    opcodes, inside = {"LDC": loads, "FFMA": 1000 - loads}, Inside(indexes_constants=by_index)
    kernel = {"warp_opcodes": opcodes, "compute_capability": capability, "inside": inside}
    pipes = {"adu": Pipe(float(loads), "inst", "counter", share=0.9), "fma": Pipe(None, "inst", "counter", share=0.45)}
    found = found_by(indexed_constants, make_facts(kernel=kernel, pipes=pipes, **at_limiter("adu", 0.9)))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
        assert (found.severity, found.gain) == ("limiter", pytest.approx(2.0))


@pytest.mark.parametrize(("loads", "said"), [(99, False), (100, True)])
def test_twice_as_many_are_said_where_their_pipe_was_not_measured(loads: int, *, said: bool) -> None:
    """A tenth of the instructions is needed."""
    kernel = {"warp_opcodes": {"LDC": loads, "FFMA": 1000 - loads}, "compute_capability": "8.6"}
    found = found_by(indexed_constants, make_facts(kernel=kernel))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
