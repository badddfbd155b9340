"""The page of a history: what it says, how its labels keep apart, and the states it is designed for."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt
import pytest
from browsing import faults
from msgspec.structs import replace
from support import samples

from rooflens.model.compare.ladder import histories
from rooflens.model.records import AnalyzedReport
from rooflens.report.history.chart import apart, datasets, history_spec, time_axis
from rooflens.report.history.document import MAX_GROUPS
from rooflens.report.history.groups import groups
from rooflens.report.html.embed import vega_bundle
from rooflens.report.ladder import BLOCKS
from rooflens.report.plane.placement import LINE_PX
from rooflens.writing.answers import of_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from playwright.sync_api import Page

    from rooflens.model.records import Analysis, Run


def recorded(day: int, program: str = "app") -> Run:
    """Make the provenance of a report of that day."""
    digest = f"{program}{day}".encode().hex().ljust(64, "0")
    return samples.run(source=f"{program}_{day}.ncu-rep", created_unix_s=86_400 * day, digest=digest)


def timed(analysis: Analysis, factor: float | None, **kernel: Any) -> Analysis:
    """Make the same kernel take `factor` times as long; None: with no time at all."""
    counters = {key: value for key, value in analysis.kernel.counters.items() if key != "duration_ns"}
    if factor is not None:
        counters["duration_ns"] = (analysis.kernel.duration_ns or 0.0) * factor
    return replace(analysis, kernel=replace(analysis.kernel, counters=counters, **kernel))


def nightly(count: int, program: str = "app", **kernel: Any) -> list[AnalyzedReport]:
    """Make runs of six kernels; one comes late, one goes early, one misses a run, one has no time in a run."""
    reports = []
    for day in range(1, count + 1):
        late, gone, gap = day < count * 0.4, day > count * 0.6, day == count // 2
        left_out = {i for i, out in ((2, late), (4, gone), (5, gap)) if out and count > 1}
        reports.append(
            AnalyzedReport(
                recorded(day, program),
                tuple(
                    timed(analysis, None if (i, day) == (3, 2) else 1.0 + 0.01 * (day % 3), **kernel)
                    for i, analysis in enumerate(samples.every_verdict())
                    if i not in left_out
                ),
            )
        )
    return reports


def page_of(reports: Iterable[AnalyzedReport]) -> str:
    """Write the page without the bundle, whose code holds words of its own."""
    return whole_page(reports).replace(vega_bundle(), "")


def whole_page(reports: Iterable[AnalyzedReport]) -> str:
    """Write the page."""
    return of_history(histories(list(reports)), by_run=False, blocks=BLOCKS).text("html")


def text_of(page: str) -> str:
    """Read the words of a page."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_kernels_that_come_and_go_are_named_so() -> None:
    """The overview says where a kernel appeared, where it vanished, and how many runs lack it between."""
    words = text_of(page_of(nightly(10)))
    assert "new in 1970-01-05" in words
    assert "gone after 1970-01-07" in words
    assert "not in 1 run between" in words


def test_a_line_breaks_where_a_run_lacks_the_kernel_or_its_time() -> None:
    """Points on both sides of a gap belong to different parts of the line."""
    (group,) = groups(histories(nightly(10)))
    parts: dict[str, list[int]] = {}
    for row in datasets(group)["points"]:
        parts.setdefault(row["part"], []).append(row["x"])
    assert all(after == before + 1 for xs in parts.values() for before, after in pairwise(xs))
    assert len(parts) == len(group.drawn) + 2


def test_labels_at_the_line_ends_do_not_overlap() -> None:
    """Texts that want one height are moved apart, inside the drawing, in the order of their lines."""
    placed = apart({0: 100.0, 1: 101.0, 2: 102.0, 3: 439.0, 4: 440.0}, 440)
    heights = [placed[key] for key in range(5)]
    assert all(below - above >= LINE_PX for above, below in pairwise(heights))
    assert heights[0] >= LINE_PX / 2
    assert heights[-1] <= 440 - LINE_PX / 2


def test_the_axis_begins_at_zero_unless_times_differ_by_much() -> None:
    """Kernels of like times stand on a linear axis; a short one among long ones makes it logarithmic."""
    first, second = samples.every_verdict()[:2]
    alike = [AnalyzedReport(recorded(day), (first, second)) for day in (1, 2)]
    (group,) = groups(histories(alike))
    assert (time_axis(group).low, time_axis(group).is_log) == (0.0, False)
    (group,) = groups(histories(nightly(4)))
    assert time_axis(group).is_log


def test_the_last_change_is_said_first() -> None:
    """A kernel that became slower in the last run is named with its change."""
    kernel = samples.every_verdict()[0]
    words = text_of(
        page_of([AnalyzedReport(recorded(1), (kernel,)), AnalyzedReport(recorded(2), (timed(kernel, 1.2),))])
    )
    assert "Last run against the one before: softmax_warp_forward" in words
    assert "+20.0 %" in words
    assert "1.2x slower" in words
    assert "0.833x" in words


def test_programs_and_gpus_have_charts_of_their_own() -> None:
    """Each program on each GPU is a section; the page says that times on one say nothing about another."""
    page = page_of([*nightly(3), *nightly(3, "tool"), *nightly(2, "other", gpu="Tesla T4")])
    assert len(re.findall(r'data-spec="spec-history-\d+"', page)) == 3
    assert "History of 3 programs" in page


def test_many_programs_are_counted() -> None:
    """Programs beyond the limit are not drawn, and the page says how many."""
    reports = [report for i in range(MAX_GROUPS + 2) for report in nightly(2, f"tool{chr(97 + i)}")]
    assert "2 programs more without a chart" in text_of(page_of(reports))


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        (nightly(1), "a line needs two runs"),
        (
            [AnalyzedReport(recorded(day), (timed(samples.every_verdict()[0], None),)) for day in (1, 2)],
            "there is nothing to draw",
        ),
        ([], "no kernel in this store"),
    ],
)
def test_what_cannot_be_drawn_is_said(reports: list[AnalyzedReport], words: str) -> None:
    """One run, runs without times, and an empty store have words instead of a chart."""
    page = page_of(reports)
    assert words in page
    assert 'data-spec="' not in page


def test_names_cannot_break_out() -> None:
    """Names from reports are text in HTML, JSON and chart."""
    reports = [AnalyzedReport(recorded(day), tuple(samples.hostile())) for day in (1, 2)]
    page = page_of(reports)
    for name in samples.HOSTILE_NAMES:
        assert name not in page


def test_a_specification_is_valid_and_holds_no_colour() -> None:
    """It keeps to the schema of Vega-Lite, and colours come from the theme alone."""
    (group,) = groups(histories(nightly(5)))
    spec = history_spec(group, title="a", subtitle="b")
    alt.Chart.from_dict(spec)
    assert not re.search(r"#[0-9a-fA-F]{6}", json.dumps(spec))


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme", "count"), [(1440, "light", 200), (390, "dark", 2)])
def test_the_page_opens_quietly_and_fits(  # noqa: PLR0913, PLR0917 - cases of a browser
    open_file: Callable[..., Page], tmp_path: Path, axe: str, width: int, scheme: str, count: int
) -> None:
    """Two runs or two hundred: every chart is drawn, nothing is too wide, no message, no request, no fault of axe."""
    file = tmp_path / "history.html"
    reports = [*nightly(count), AnalyzedReport(recorded(900, "hostile"), tuple(samples.hostile())), *nightly(3, "tool")]
    file.write_text(whole_page(reports), encoding="utf-8")
    page = open_file(file, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.locator(".chart svg").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".chart svg").first.get_by_text("fill_zero").count() >= 1
    assert page.locator("#theme").is_visible()
    assert faults(page, axe) == []


@pytest.mark.browser
def test_without_scripts_the_tables_say_it(browser: Any, tmp_path: Path) -> None:
    """With scripts off the overview with its small lines is there, and no control that would do nothing."""
    file = tmp_path / "history.html"
    file.write_text(whole_page(nightly(5)), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    assert page.locator("table").first.locator("tbody tr").count() == 6
    assert BLOCKS[-1] in page.locator("table").first.text_content()
    assert not page.locator("#theme").is_visible()
    page.close()
