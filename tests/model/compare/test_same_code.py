"""Kernels that run the same machine code on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.kernels import make_kernel

from rooflens.cli.group import main
from rooflens.model.analyze import analyze
from rooflens.model.compare.compare import Change, Spread, Timing
from rooflens.model.compare.same_code import has_same_code, same_code_words
from rooflens.model.records import Analysis, Inside


def _side(digest: str | None, name: str = "triad") -> Analysis:
    inside = None if digest is None else Inside(code_digest=digest)
    return analyze(replace(make_kernel({"duration_ns": 1e6}), name=name, inside=inside))


def _change(base: Analysis | None, head: Analysis | None) -> Change:
    spread = Spread((1e6,))
    return Change("same", base, head, (1, 1), Timing(spread, spread, 0.0))


def test_the_same_bytes_are_said_to_leave_clocks_data_or_noise() -> None:
    """All kernels together, or those by name where others differ, are new or are gone."""
    same, other = _change(_side("a"), _side("a")), _change(_side("a", "copy"), _side("b", "copy"))
    assert [*same_code_words([same])] == [
        "all kernels run the same machine code on both sides: what differs there is clocks, data or noise"
    ]
    for left in (other, _change(_side("a"), None), _change(None, _side("a"))):
        (told,) = same_code_words([same, left])
        assert told.startswith("1 kernel runs the same machine code on both sides (triad): ")
    assert [*same_code_words([other])] == []


@pytest.mark.parametrize("digest", ["", None])
def test_nothing_is_said_of_code_that_is_not_known(digest: str | None) -> None:
    """A side without code, or that nobody looked into, is neither the same nor another."""
    assert has_same_code(_change(_side("a"), _side(digest))) is None
    assert [*same_code_words([_change(_side(digest), _side(digest))])] == []


@pytest.mark.corpus
def test_a_change_of_one_loop_leaves_the_code_of_the_other_kernels(corpus: Path) -> None:
    """The source of one kernel got multiplications for divisions: the four others are byte for byte what they were."""
    sides = [str(corpus / f"GPU_workshop__MW_{side}.ncu-rep") for side in ("Baseline", "DivToMult")]
    told = CliRunner().invoke(main, ["compare", *sides, "--format", "md"]).output
    assert "4 kernels run the same machine code on both sides" in told
    (line,) = (line for line in told.splitlines() if "same machine code" in line)
    assert "x_279" not in line
