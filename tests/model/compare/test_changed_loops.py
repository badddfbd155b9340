"""Loops on both sides of a comparison."""

from __future__ import annotations

from msgspec.structs import replace
from support.kernels import make_kernel
from support.machine_code import listed, machine_code

from rooflens.model.analyze import analyze
from rooflens.model.compare.compare import Change, Spread, Timing
from rooflens.model.compare.loops import changed_loops
from rooflens.model.inside.look import look_inside
from rooflens.model.records import Analysis


def side(loading: float, multiplying: float, lines: tuple[int, int] = (7, 9)) -> Analysis:
    """Analyze a kernel that loads in one loop and multiplies in another."""
    code = listed(
        "LDG.E R2, [R8.64]",
        "@P0 BRA ->0",
        "FFMA R3, R2, R4, R3",
        "@P1 BRA ->2",
        "EXIT",
        lines=(lines[0], lines[0], lines[1], lines[1], 12),
    )
    samples = {0: loading, 2: multiplying, 4: 100.0 - loading - multiplying}
    inside = look_inside(machine_code(code, [4, 4, 8, 8, 1], samples=samples, global_sectors={0: 8.0}))
    return analyze(replace(make_kernel({"duration_ns": 1e6}), inside=inside))


def change(base: Analysis, head: Analysis) -> Change:
    """Compare one with the other."""
    spread = Spread((1e6,))
    return Change("same", base, head, (1, 1), Timing(spread, spread, 0.0))


def test_loops_of_the_same_line_are_one() -> None:
    """Loading went from 40 to 10 % of the warps' time, multiplying from 50 to 85 %."""
    found = changed_loops(change(side(40.0, 50.0), side(10.0, 85.0)))
    assert [(one.before, one.after) for one in found] == [(0.5, 0.85), (0.4, 0.1)]


def test_loops_that_moved_are_matched_by_what_they_do() -> None:
    """Loops whose lines differ between versions are matched by what they do."""
    found = changed_loops(change(side(40.0, 50.0), side(10.0, 85.0, lines=(70, 90))))
    assert [(one.before, one.after, one.shown.loop.line if one.shown else 0) for one in found] == [
        (0.5, 0.85, 90),
        (0.4, 0.1, 70),
    ]


def test_nothing_is_said_of_sides_that_nobody_looked_into() -> None:
    """Sides without loops, and differences within the noise of samples, are not mentioned."""
    bare = analyze(make_kernel({"duration_ns": 1e6}))
    assert changed_loops(change(side(40.0, 50.0), bare)) == ()
    assert changed_loops(change(side(40.0, 50.0), side(42.0, 48.0))) == ()
