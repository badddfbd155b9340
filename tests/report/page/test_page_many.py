"""The page of very many launches sums them up, says so, counts all of them, and stays small."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec.structs import replace
from support import samples

from rooflens.model.records import Analysis
from rooflens.report.content import MAX_CARDS, MAX_FAILED, MAX_KERNELS, MAX_LAUNCHES
from rooflens.report.page.page import render_page


def launches(count: int, kernels: int) -> list[Analysis]:
    """Make this many launches of this many kernels; launches of one kernel are one record repeated."""
    distinct = samples.many(kernels)
    return [distinct[i % kernels] for i in range(count)]


def rendered(analyses: Sequence[Analysis]) -> str:
    """Render the whole page."""
    return render_page([samples.report(analyses)], title="many")


def words(analyses: Sequence[Analysis]) -> str:
    """Render the note of a page as plain text on one line."""
    return text("".join(re.findall(r'<section class="many".*?</section>', rendered(analyses), re.DOTALL)))


def text(html: str) -> str:
    """Keep the words of a page's body."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", body).replace("\u00a0", " ").split())


def test_pages_grow_neither_with_launches_nor_with_kernels() -> None:
    """Ten times as many launches, of as many or ten times as many kernels, add a few digits and no rows."""
    sizes = [len(rendered(launches(*size)).encode()) for size in ((900, 900), (9000, 900), (9000, 9000))]
    assert max(sizes) < 1.05 * min(sizes)


def test_the_largest_page_of_single_launches_is_under_the_limit() -> None:
    """The largest number of individually drawn launches, with long names, stays well under five megabytes."""
    assert len(rendered(samples.many(MAX_LAUNCHES)).encode()) < 4_000_000


def test_rows_name_no_launch_that_is_not_drawn() -> None:
    """If one launch represents its kernel, scripts know no other, as looking one up would fail."""
    named = [
        replace(one, kernel=replace(one.kernel, name=f"k{i % 6}", function_name=f"k{i % 6}"))
        for i, one in enumerate(samples.many(MAX_LAUNCHES + 1))
    ]
    html = rendered([*named, *(samples.failed(index=i) for i in range(1000, 1000 + MAX_FAILED + 3))])
    items = json.loads(re.findall(r'<script type="application/json" id="items">(.*?)</script>', html, re.DOTALL)[0])
    rows = re.findall(r'<tr data-k="(\w+)" data-g="\w+"(?: data-launches="([^"]*)")?', html)
    assert len(rows) == 7
    assert {key for row in rows for key in " ".join(row).split()} <= {item["k"] for item in items}


def test_few_launches_need_no_note() -> None:
    """A page that draws every launch does not mention sums."""
    assert words(samples.many(MAX_LAUNCHES)) == ""


def test_many_launches_are_said_to_be_represented() -> None:
    """The page says what is drawn, and how many kernels, launches and how much time are not."""
    said = words(launches(2000, 400))
    assert "The median launch of a kernel stands for all of its launches" in said
    assert "1,000 launches of 200 kernels below" in said
    share = re.search(r"200 other kernels \(1,000 launches, (\d+(?:\.\d)?) % of GPU time\)\. Totals", said)
    assert share
    assert 0 < float(share[1]) < 50


def test_no_others_are_named_where_all_kernels_are_drawn() -> None:
    """Thousands of launches of a few kernels leave nothing out."""
    said = words(launches(2000, 10))
    assert "2,000 launches of 10 kernels" in said
    assert "other kernel" not in said


def test_header_and_table_count_what_is_not_drawn() -> None:
    """Counts at the top and by verdict include all launches and failures; rows and cards end at their limits."""
    failed = [samples.failed(index=i) for i in range(70)]
    flagged = [replace(a, flags=("clocks_moved",)) for a in launches(300, 300)]
    html = rendered([*launches(3000, 1500), *flagged, *failed])
    said = text(html)
    assert "1,500 kernels" in said
    assert "3,300 launches" in said
    assert "70 launches failed" in said
    assert "500 of 3,300 launches" in said
    assert "300 of 3,300 launches" in said
    assert f"lists {MAX_FAILED} of 70 failed launches" in said
    table = html.partition('id="kernels-table"')[2].partition("</table>")[0]
    assert 0 < table.count("data-k=") <= MAX_KERNELS + MAX_FAILED
    assert len(re.findall(r'class="card\b', html)) <= MAX_CARDS
