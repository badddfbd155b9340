"""The list without a browser: a row per kernel, few and different cards, launches listed up to a limit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from support import samples
from support.tags import words_of

from rooflens.analyzing import analyze_paths
from rooflens.model.records import Analysis
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import MAX_CARDS, Content, build_content
from rooflens.report.page.kernels import MAX_LAUNCHES, kernels


def page(*analyses: Analysis) -> Content:
    """Build the rows of a page of one report."""
    return build_content([samples.report(analyses)], "test", default_thresholds())


def launches(count: int, base: Analysis | None = None) -> list[Analysis]:
    """Make launches of one kernel, each a little shorter than the one before."""
    base = base or samples.every_verdict()[0]
    return [
        replace(base, kernel=replace(base.kernel, index=i, counters={"duration_ns": 1e6 - 100 * i}))
        for i in range(count)
    ]


def rows(html: str) -> list[str]:
    """List the keys of the kernels in the list."""
    return re.findall(r'<tr data-k="\w+" data-g="(\w+)"', html)


def test_a_row_is_a_kernel_and_failed_ones_are_last() -> None:
    """Eleven launches of a kernel are one row; its failed launches are another, below all others."""
    failed = [samples.failed(index=i) for i in (20, 21)]
    content = page(*failed, *launches(11), samples.every_verdict()[1])
    html = str(kernels(content))
    assert rows(html) == ["g0", "g1", "f0"]
    assert re.search(r'data-g="g0" data-launches="(k\d+ ){10}k\d+"', html)
    assert [group.launch_count for group in content.listed] == [11, 1, 2]


@pytest.mark.corpus
def test_launches_of_few_kernels_are_few_rows(corpus: Path) -> None:
    """A published report of 154 launches of 5 kernels has 5 rows, and no two cards of one kernel, verdict and grid."""
    found = analyze_paths([corpus / "self-join-MiSTIC__profile.ncu-rep"])
    content = build_content(found.reports, "test", default_thresholds())
    assert len(content.analyses) == 154
    assert len(rows(str(kernels(content)))) == 5
    looks = [(one.group_key, one.shown_class, one.analysis.kernel.grid) for one in content.carded]
    assert len(set(looks)) == len(looks)


def test_cards_are_few_and_different() -> None:
    """Similar launches share the median launch's card; another verdict or grid has its own card."""
    alike = launches(20)
    wider = replace(alike[5], kernel=replace(alike[5].kernel, grid=(9, 9, 9)))
    waits = replace(alike[7], verdict=samples.every_verdict()[2].verdict)
    shown = page(*alike[:5], wider, alike[6], waits, *alike[8:]).carded
    assert [launch.analysis.kernel.index for launch in shown] == [5, 7, 9]


def test_every_kernel_has_a_card_before_any_has_a_second() -> None:
    """If cards run out, each kernel's median launch precedes further cards of the first kernel."""
    base = samples.every_verdict()[0]
    first = [replace(one, kernel=replace(one.kernel, grid=(i + 1, 1, 1))) for i, one in enumerate(launches(30, base))]
    content = page(*first, *samples.many(MAX_CARDS - 10))
    shown = {launch.key for launch in content.carded}
    assert len(shown) == MAX_CARDS
    assert {group.representative.key for group in content.listed} <= shown


def test_launches_of_a_kernel_are_listed_up_to_a_limit() -> None:
    """The longest launches are listed with their results, then the number of others; a single launch is not listed."""
    html = str(kernels(page(*launches(MAX_LAUNCHES + 7))))
    words = words_of(html)
    assert f"The {MAX_LAUNCHES} longest of {MAX_LAUNCHES + 7} launches" in words
    assert "7 more: rooflens analyze --format json" in words
    assert html.count('<tr data-k="') == MAX_LAUNCHES
    assert "Launch" not in words_of(str(kernels(page(samples.every_verdict()[0]))))


def test_a_page_of_one_kernel_has_its_card_open_and_no_list() -> None:
    """A single kernel needs no row: its card is open, with its launches."""
    html = str(kernels(page(*launches(3))))
    assert "kernels-table" not in html
    assert re.search(r'<details class="card of-one" id="k1" open>', html)
    assert html.count('<details class="card') == 1
    assert "open>" not in str(kernels(page(*samples.every_verdict())))
