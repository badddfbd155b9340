"""Who draws the charts of a page: they come out the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from support import samples

from rooflens.ingest.children.beside import Shared, kept
from rooflens.report.page.drawing import WORTH_SHARING
from rooflens.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.records import AnalyzedReport
    from rooflens.report.page.charts import Chart
    from rooflens.report.page.drawing import DrawChart, Drawing


def on_gpus(count: int) -> AnalyzedReport:
    """Make a report of a kernel that ran on so many GPUs."""
    one = samples.every_verdict()[0]
    return samples.report(
        [replace(one, key=f"k{i}", kernel=replace(one.kernel, index=i, gpu=f"GPU {i}")) for i in range(count)]
    )


def test_charts_that_two_processes_draw_are_those_of_one() -> None:
    """Many charts are given to whoever draws several at once, few are not, and the page is the same to the letter."""
    given: list[int] = []

    def beside(draw: DrawChart, charts: Sequence[Chart]) -> Drawing:
        given.append(len(charts))
        return Shared(draw, charts)

    reports = [on_gpus(WORTH_SHARING)]
    with kept():
        assert render_page(reports, title="many", draw_many=beside) == render_page(reports, title="many")
    render_page([on_gpus(WORTH_SHARING - 1)], title="few", draw_many=beside)
    assert given == [WORTH_SHARING]
