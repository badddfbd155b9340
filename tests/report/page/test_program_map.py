"""The map of the program: where its kernels are launched, and what of that it leaves out."""

from __future__ import annotations

import re

from browsing import placed
from msgspec.structs import replace
from support import samples
from support.rendered import rendered

from rooflens.model.records import Analysis
from rooflens.model.unprofiled import InProgram
from rooflens.report.page.program_map import MOST_RANGES


def strips(analyses: list[Analysis]) -> list[str]:
    """Return what the strips of a page's map stand for."""
    return re.findall(r'class="strip" data-range="([^"]*)"', rendered([samples.report(analyses)], "map"))


def test_ranges_and_modules_are_strips() -> None:
    """A range comes from the report, a module from the timeline below it; the filter offers the same places."""
    ranges = ["train/step/forward", "train/step/backward", ""]
    assert strips(placed()) == ranges
    first, *others = placed()
    in_linear = replace(first, in_program=InProgram(4_000, 400, module="Linear_3"))
    assert strips([in_linear, *others]) == ["train/step/forward/Linear_3", *ranges[1:]]
    page = rendered([samples.report([in_linear, *others])], "map")
    assert '<option value="train/step/forward/Linear_3">' in page
    assert "Range, module" in page


def test_what_the_map_leaves_out_is_counted() -> None:
    """A map of many ranges shows those with most time, and says how many it does not show."""
    many = samples.many(MOST_RANGES + 6)
    apart = [replace(one, kernel=replace(one.kernel, nvtx_range=f"layer {i}")) for i, one in enumerate(many)]
    assert len(strips(apart)) == MOST_RANGES
    assert re.search(r"not shown: 6\sranges with", rendered([samples.report(apart)], "map"))
