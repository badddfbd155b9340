from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import altair as alt
import pytest
import vl_convert
from msgspec import Struct
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.snapshots import check_snapshot

from rooflens import format as fmt
from rooflens.model.bounds import BOUNDS
from rooflens.model.records import Analysis
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import MAX_KERNELS, Content, build_content
from rooflens.report.html.embed import VEGA_LITE
from rooflens.report.page.time_chart import MAX_ROWS, time_pieces, time_spec
from rooflens.report.plane.marks import FAINT_BAR

pytestmark = pytest.mark.if_changed("imports", "fixtures")

VERSION = VEGA_LITE.rpartition(".")[0]


class Bar(Struct, frozen=True):
    """One drawn bar: its words, and the length of each piece by verdict as a part of the longest bar."""

    name: str
    words: str
    pieces: dict[str, float]
    opacity: float


def make_page(analyses: Sequence[Analysis]) -> Content:
    """Build the page's rows over one report."""
    return build_content([samples.report(analyses)], "test", default_thresholds())


def draw(page: Content, **signals: Any) -> list[Bar]:
    """Draw the chart with these signals without a browser, and read its bars from the top down."""
    spec = time_spec(page)
    spec["params"] = [{**param, "value": signals.get(param["name"], param["value"])} for param in spec["params"]]
    svg = ET.fromstring(vl_convert.vegalite_to_svg(spec, vl_version=VERSION))  # noqa: S314 - a picture of ours
    words, pieces = (marks(svg, layer) for layer in ("layer_2_marks", "layer_3_marks"))
    rows: dict[int, Bar] = {}
    for mark, label in sorted(pieces, key=lambda piece: float(piece[1].split(";")[0].removeprefix("x: "))):
        found = re.match(r"x: (\S+); top: (\S+); x2: (\S+); bottom: \S+; bound: (\w+); Kernel: (.*); Time: ", label)
        assert found, label
        x, top, x2 = (float(found[i]) for i in (1, 2, 3))
        bar = rows.setdefault(int(top), Bar(found[5], "", {}, float(mark.get("opacity", 1))))
        bar.pieces[found[4]] = x2 - x
    said = {int(float(re.findall(r"[\d.]+", label)[0])): mark.text or "" for mark, label in words}
    assert rows.keys() == said.keys() == set(range(len(rows)))
    return [replace(rows[i], words=said[i]) for i in range(len(rows))]


def marks(svg: ET.Element, layer: str) -> list[tuple[ET.Element, str]]:
    """Find the marks of one layer with their descriptions."""
    groups = [element for element in svg.iter() if layer in element.get("class", "").split()]
    return [(mark, mark.get("aria-label", "")) for group in groups for mark in group]


def words(ns: float, share: float) -> str:
    """Write time and share as the rest of the page does."""
    return f"{fmt.duration(ns)}  {fmt.percent(share)}"


def renamed(analyses: Sequence[Analysis], name: str) -> list[Analysis]:
    """Give launches one name."""
    return [replace(a, kernel=replace(a.kernel, name=name)) for a in analyses]


def test_every_kernel_has_a_bar_with_its_time_and_share() -> None:
    """Bars stand in order of time, as long as their time, with the words that the rest of the page uses."""
    page = make_page(samples.every_verdict())
    bars = draw(page)
    assert [bar.name for bar in bars] == [group.shown for group in page.kernels]
    assert [bar.words for bar in bars] == [words(g.duration_ns or 0, g.time_share or 0) for g in page.kernels]
    parts = [(group.duration_ns or 0) / (page.kernels[0].duration_ns or 1) for group in page.kernels]
    assert [sum(bar.pieces.values()) for bar in bars] == pytest.approx(parts)


def test_bars_keep_all_of_the_time() -> None:
    """The bars add up to the whole GPU time: kernels beyond the last row share one bar."""
    page = make_page(samples.many(40))
    bars = draw(page)
    own_ns = [group.duration_ns or 0 for group in page.kernels[: MAX_ROWS - 1]]
    rest_ns = page.total_ns - sum(own_ns)
    assert [bar.name for bar in bars][-1] == "29 other kernels"
    assert [bar.words for bar in bars] == [words(ns, ns / page.total_ns) for ns in (*own_ns, rest_ns)]
    total = sum(sum(bar.pieces.values()) for bar in bars)
    assert total * max(*own_ns, rest_ns) == pytest.approx(page.total_ns)


def test_bars_split_a_kernel_by_verdict() -> None:
    """Launches of one kernel with different verdicts are pieces of one bar, in the order of verdicts."""
    (bar,) = draw(make_page(renamed(samples.every_verdict()[:3], "same")))
    assert list(bar.pieces) == ["memory", "compute", "latency"]
    assert sum(bar.pieces.values()) == pytest.approx(1)


def test_twelve_kernels_need_no_common_bar() -> None:
    """As many kernels as there are rows have one each; only one more makes some of them share."""
    assert not any("other" in bar.name for bar in draw(make_page(samples.many(MAX_ROWS))))
    assert draw(make_page(samples.many(MAX_ROWS + 1)))[-1].name == "2 other kernels"


def test_kernels_that_are_not_drawn_share_the_last_bar_too() -> None:
    """Of thousands of kernels, those without a row of their own are counted and timed in the last bar."""
    page = make_page(samples.many(2500))
    last = draw(page)[-1]
    assert last.name == "2,489 other kernels"
    own_ns = sum(group.duration_ns or 0 for group in page.kernels[: MAX_ROWS - 1])
    assert last.words == words(page.total_ns - own_ns, 1 - own_ns / page.total_ns)
    assert set(last.pieces) == set(BOUNDS)


def test_few_drawn_kernels_keep_their_bars_beside_the_others() -> None:
    """The bar of kernels that are not drawn stands last, also where there is room for more."""
    page = make_page(samples.many(2500))
    hidden = {piece["k"]: True for piece in time_pieces(page) if piece["g"] not in {"g0", "g1", ""}}
    assert [bar.name for bar in draw(page, hidden=hidden)][-1] == "2,300 other kernels"
    assert len(draw(page, hidden=hidden)) == 3
    assert len(draw(page, hidden=hidden | {"": True})) == 2


def test_hidden_launches_lay_out_the_rest_anew() -> None:
    """Without the launches of one verdict others move up, and shares stay those of the whole GPU time."""
    page = make_page(samples.many(40))
    hidden = {launch.key: True for launch in page.launches if launch.bound != "memory"}
    bars = draw(page, hidden=hidden)
    left = [launch for launch in page.launches if launch.key not in hidden]
    assert [bar.words for bar in bars] == [words(one.duration_ns or 0, one.time_share or 0) for one in left]
    assert sum(bars[0].pieces.values()) == pytest.approx(1)


def test_a_part_of_a_kernel_can_be_hidden() -> None:
    """A kernel keeps the time of its launches that are left."""
    page = make_page(renamed(samples.every_verdict()[:2], "same"))
    (bar,) = draw(page, hidden={"k0": True})
    assert bar.words == words(1.1e6, 1.1e6 / page.total_ns)
    assert set(bar.pieces) == {"compute"}


def test_nothing_left_draws_nothing() -> None:
    """A chart with every launch hidden has no bar and raises no error."""
    page = make_page(samples.every_verdict())
    assert draw(page, hidden={launch.key: True for launch in page.launches}) == []


def test_other_kernels_are_faint_while_one_is_isolated() -> None:
    """The isolated kernel stays as it was, and every other bar is drawn faint."""
    bars = draw(make_page(samples.every_verdict()), kernel="g2")
    assert [bar.opacity for bar in bars] == [FAINT_BAR, FAINT_BAR, 1, FAINT_BAR, FAINT_BAR, FAINT_BAR]


def test_an_isolated_kernel_leaves_the_common_bar() -> None:
    """A kernel too short for a row gets the last one before the others, and no time is lost or counted twice."""
    page = make_page(samples.many(40))
    bars = draw(page, kernel="g30")
    group = page.kernels[30]
    assert bars[-2].words == words(group.duration_ns or 0, group.time_share or 0)
    assert (bars[-2].opacity, bars[-1].opacity) == (1, FAINT_BAR)
    assert bars[-1].name == "29 other kernels"
    own_ns = sum(g.duration_ns or 0 for g in (*page.kernels[: MAX_ROWS - 2], group))
    assert bars[-1].words == words(page.total_ns - own_ns, 1 - own_ns / page.total_ns)


@for_all("short_ns", [0.5, 850, 999.4, 999.6, 12_345, 999_600, 4_310_000, 1.2e9, 4.5678e12], lambda ns: f"{ns:g}")
def test_words_in_the_chart_are_those_of_the_page(short_ns: float) -> None:
    """Times and shares that the chart writes itself read as those that Python writes, at every order of size."""
    one, two = samples.every_verdict()[:2]
    times_ns = (short_ns, 1e6)
    page = make_page(
        [
            replace(a, kernel=replace(a.kernel, counters={**a.kernel.counters, "duration_ns": ns}))
            for a, ns in zip((one, two), times_ns, strict=True)
        ]
    )
    expected = [words(ns, ns / sum(times_ns)) for ns in sorted(times_ns, reverse=True)]
    assert [bar.words for bar in draw(page)] == expected


def test_pieces_lead_to_the_median_launch() -> None:
    """The first row of a kernel is its median launch: what a click on its bar isolates."""
    page = make_page(renamed(samples.every_verdict(), "same"))
    assert time_pieces(page)[0]["k"] == page.kernels[0].representative.key
    assert {piece["g"] for piece in time_pieces(page)} == {"g0"}


def test_rows_of_the_chart_do_not_grow_with_launches() -> None:
    """Ten times the launches make no more rows of data."""
    few, many = (len(time_pieces(make_page(samples.many(count)))) for count in (600, 6000))
    assert few == many <= MAX_KERNELS + len(BOUNDS)


def test_long_names_are_cut_in_the_data() -> None:
    """A name of 4,000 characters costs the page a few."""
    (piece,) = time_pieces(make_page(renamed(samples.every_verdict()[:1], samples.LONG_NAME)))
    assert len(piece["name"]) < 200


def test_specification_is_the_stored_one() -> None:
    """A change of the chart shows as a diff of its specification."""
    check_snapshot("time", time_spec(make_page(samples.every_verdict()[:2])))


def test_specification_follows_the_schema() -> None:
    """Vega-Lite's own schema accepts the chart."""
    alt.LayerChart.from_dict(time_spec(make_page(samples.every_verdict())), validate=True)
