"""Kernels that run the same machine code on both sides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.kernels import make_kernel

import rooflens as rl
from rooflens.cli.group import main
from rooflens.mcp.answers import Answers
from rooflens.mcp.root import Root
from rooflens.model.analyze import analyze
from rooflens.model.compare.compare import Change, Spread, Timing
from rooflens.model.compare.same_code import is_same_launch, same_code_words
from rooflens.model.records import Analysis, Inside


def _side(digest: str | None, name: str = "triad") -> Analysis:
    inside = None if digest is None else Inside(code_digest=digest)
    return analyze(replace(make_kernel({"duration_ns": 1e6}), name=name, inside=inside))


def _change(base: Analysis | None, head: Analysis | None) -> Change:
    spread = Spread((1e6,))
    return Change("same", base, head, (1, 1), Timing(spread, spread, 0.0))


def test_the_same_bytes_are_said_to_leave_clocks_data_or_noise() -> None:
    """Either all kernels are meant, or they are named, if others differ, are new or are gone."""
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
    """A side without machine code, or whose code was not read, is called neither the same nor different."""
    assert is_same_launch(_side("a"), _side(digest)) is None
    assert [*same_code_words([_change(_side(digest), _side(digest))])] == []


def test_another_grid_of_the_same_code_is_a_change() -> None:
    """Who launches twice the blocks of one kernel changed something: it is not left to clocks, data or noise."""
    base, head = _side("a"), _side("a")
    assert is_same_launch(base, head) is True
    assert is_same_launch(base, replace(head, kernel=replace(head.kernel, grid=(7, 1, 1)))) is False


@pytest.mark.corpus
def test_findings_of_the_same_code_are_no_changes(corpus: Path) -> None:
    """Kernels of 11 us whose stalls moved by noise have no causes, loops or findings: only their time is told."""
    sides = [str(corpus / f"GPU_workshop__MW_{side}.ncu-rep") for side in ("Baseline", "DivToMult")]
    (program,) = json.loads(CliRunner().invoke(main, ["compare", *sides, "--format", "json"]).stdout)["programs"]
    kernels = program["kernels"]
    halos = [one for one in kernels if "set_halo_values" in one["head"]["name"]]
    assert len(halos) == 2
    for one in halos:
        assert not any(one["findings"][what] for what in ("gone", "changed", "new"))
        why = one["sentence"].split(": ", 1)[1]
        assert why == "the same machine code, so clocks, data or noise, still latency-bound"


@pytest.mark.corpus
def test_a_change_of_one_loop_leaves_the_code_of_the_other_kernels(corpus: Path) -> None:
    """One kernel's source had divisions replaced by multiplications; the other four are identical byte for byte."""
    sides = [str(corpus / f"GPU_workshop__MW_{side}.ncu-rep") for side in ("Baseline", "DivToMult")]
    told = CliRunner().invoke(main, ["compare", *sides, "--format", "md"]).output
    assert "4 kernels run the same machine code on both sides" in told
    (line,) = (line for line in told.splitlines() if "4 kernels run the same machine code" in line)
    assert "x_279" not in line


@pytest.mark.corpus
def test_command_python_and_tools_say_alike_what_runs_the_same_code(corpus: Path) -> None:
    """Command, Python and tools give the same statement about two sides, word for word."""
    names = [f"GPU_workshop__MW_{side}.ncu-rep" for side in ("Baseline", "DivToMult")]
    sides = [str(corpus / name) for name in names]
    command = json.loads(CliRunner().invoke(main, ["compare", *sides, "--format", "json"]).stdout)
    (told,) = (line for line in command["programs"][0]["warnings"] if "same machine code" in line)
    compared = rl.compare(*sides)
    assert compared.to_dict() == command
    assert compared.changes[0].base is not None
    opened = rl.open(sides[0])
    kept = rl.compare(opened, sides[1]).changes[0].base
    assert kept is not None
    assert kept in opened
    # The server reads the code of a report that is opened; for comparisons it reads reports as the command does.
    answers = Answers(Root(corpus))
    answers.open_report(names[0])
    assert told.replace("_", r"\_") in answers.compare(*names, max_tokens=4000).text
