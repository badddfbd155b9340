from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.pairs import compare

from rooflens.model.compare.compare import Change, Side
from rooflens.model.compare.lines import slower_lines
from rooflens.model.records import Analysis, Hotspot

Line = tuple[int, float, str | None]
"""Number, samples, text."""


def kernel(duration_us: float, lines: list[Line], total: float = 10_000.0, file: str = "/src/k.cu") -> Analysis:
    """Make a kernel with samples at some lines."""
    one = samples.every_verdict()[0]
    hotspots = tuple(Hotspot("line", file, line, text=text, measures={"samples": at}) for line, at, text in lines)
    return replace(
        one,
        kernel=replace(
            one.kernel,
            counters={**one.kernel.counters, "duration_ns": duration_us * 1e3},
            hotspots=hotspots,
            code_totals={"samples": total},
        ),
    )


def changed(before: Analysis, after: Analysis) -> Change:
    """Compare one kernel with itself, one run each."""
    sides = (Side(name, (samples.report([one]),)) for name, one in (("base", before), ("head", after)))
    (change,) = compare(*sides).changes
    return change


def test_a_line_that_moved_is_known_by_its_text() -> None:
    """`load` moved from line 10 to 12 and takes 60 of 120 µs, after 20 of 80; `store` stayed at 40 µs."""
    before = kernel(80, [(10, 2500, "load"), (11, 5000, "store")])
    after = kernel(120, [(12, 5000, " load"), (13, 3333, "store")], file="C:\\build\\k.cu")
    (line,) = slower_lines(changed(before, after))
    assert (line.hotspot.line, line.by_text) == (12, True)
    assert (line.before_ns, line.after_ns) == (pytest.approx(20e3), pytest.approx(60e3))


def test_without_text_numbers_tell_lines_apart() -> None:
    """Without text line 10 is line 10, and a line that the base lacks is not called new, as lines may have moved."""
    before = kernel(80, [(10, 2500, None), (11, 5000, None)])
    after = kernel(120, [(10, 5000, None), (12, 4000, None)])
    (line,) = slower_lines(changed(before, after))
    assert (line.hotspot.line, line.by_text, line.lost_ns) == (10, False, pytest.approx(40e3))


def test_a_new_line_is_told_where_texts_are_known() -> None:
    """A line whose text occurs nowhere in the base is new, without a time before."""
    before = kernel(80, [(10, 8000, "load")])
    after = kernel(120, [(10, 5333, "load"), (11, 4000, "wait")])
    (line,) = slower_lines(changed(before, after))
    assert (line.hotspot.line, line.before_ns) == (11, None)


def test_an_edited_line_is_known_by_its_number() -> None:
    """`a / 12` became `a * 0.083`: line 10 went from 40 of 100 µs to 70 of 110, and 30 µs are all that lines lost."""
    before = kernel(100, [(10, 4000, "a / 12"), (11, 5000, "load")])
    after = kernel(110, [(10, 70 / 110 * 1e4, "a * 0.083"), (11, 30 / 110 * 1e4, "load")])
    (line,) = slower_lines(changed(before, after))
    assert (line.hotspot.line, line.by_text, line.before_ns) == (10, False, pytest.approx(40e3))
    assert (line.lost_ns, line.share) == (pytest.approx(30e3), pytest.approx(1.0))  # 300 % of what the kernel lost


def test_shares_are_of_the_kernels_loss_or_of_the_slower_lines() -> None:
    """10 of 40 lost µs are at line 10; with line 12 60 µs faster, shares are 75 and 25 % of 100 lost at two lines."""
    before = kernel(100, [(10, 2000, "a"), (11, 1000, "b")])
    after = kernel(140, [(10, 30 / 140 * 1e4, "a"), (11, 10 / 140 * 1e4, "b")])
    assert [line.share for line in slower_lines(changed(before, after))] == [pytest.approx(0.25)]
    before = kernel(200, [(10, 500, "a"), (11, 500, "b"), (12, 8000, "c")])
    after = kernel(240, [(10, 85 / 240 * 1e4, "a"), (11, 35 / 240 * 1e4, "b"), (12, 100 / 240 * 1e4, "c")])
    assert [line.share for line in slower_lines(changed(before, after))] == [pytest.approx(0.75), pytest.approx(0.25)]


def test_equal_lines_are_matched_in_their_order() -> None:
    """Of two lines with equal texts, the second became slower."""
    before = kernel(100, [(10, 2000, "a += b"), (20, 2000, "a += b")])
    after = kernel(140, [(11, 1400, "a += b"), (21, 4000, "a += b")])
    assert [line.hotspot.line for line in slower_lines(changed(before, after))] == [21]


@for_all(
    "before, after",
    [
        (kernel(100, [(10, 5000, "a")]), kernel(100, [(10, 9000, "a")])),  # as fast as before
        (kernel(100, [(10, 5000, "a")]), kernel(50, [(10, 9000, "a")])),
        (kernel(100, []), kernel(120, [(10, 5000, "a")])),  # nothing to compare with
        (kernel(100, [(10, 5000, "a")], 0.0), kernel(120, [(10, 5000, "a")], 0.0)),
        (kernel(100, [(10, 4, "a")], 10), kernel(120, [(10, 5, "a")], 10)),  # four samples and five are chance
        (kernel(100, [(10, 100, "a")]), kernel(120, [(10, 110, "a")])),  # 0.3 of the lost 20 µs
    ],
)
def test_what_no_line_explains_is_not_pinned_to_one(before: Analysis, after: Analysis) -> None:
    """Without a slower kernel, with few or no samples, or for a small share, no line is named."""
    assert slower_lines(changed(before, after)) == ()
