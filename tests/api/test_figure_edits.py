"""Figures for papers: what a user does to a chart works, sizes hold, and the same rows are there as frames."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from math import hypot
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pypdf
import pytest
import vl_convert
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

import rooflens as rl
from rooflens.errors import InputError, UsageError
from rooflens.model.records import LEVELS

WEATHER = "GPU_workshop__MW_Baseline.ncu-rep"

FIXTURES = Path(__file__).parents[2] / "fixtures"

MM = 72 / 25.4

Chart = Any


@pytest.fixture(scope="module")
def report(fixtures: Path) -> rl.Report:
    """Open the five kernels of a weather model, three of which have a place."""
    return rl.open(fixtures / "published" / WEATHER)


def drawn(chart: Chart) -> str:
    """Draw a chart as SVG, validated by Altair first."""
    return vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=alt.SCHEMA_VERSION.strip("v").rpartition(".")[0])


def texts(svg: str) -> list[str]:
    """Return the texts of a drawing."""
    return [text for text in re.findall(r"<text[^>]*>([^<]*)", svg) if text]


def width_of(svg: str) -> float:
    """Return how wide a drawing is."""
    found = re.search(r'width="([\d.]+)"', svg)
    assert found
    return float(found[1])


def _brushed(figure: Chart) -> Chart:
    brush = alt.selection_interval()
    return figure.add_params(brush).encode(opacity=alt.when(brush).then(alt.value(1)).otherwise(alt.value(0.2)))


def _by_legend(figure: Chart) -> Chart:
    chosen = alt.selection_point(fields=["verdict"], bind="legend")
    return figure.add_params(chosen).encode(opacity=alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.1)))


def _slider(figure: Chart) -> Chart:
    least = alt.param(value=0.3, bind=alt.binding_range(min=0, max=1))
    figure.layer[0] = figure.layer[0].transform_filter(alt.datum.time_share >= least)
    return figure.add_params(least)


def _own_point(figure: Chart) -> Chart:
    own = pd.DataFrame({"intensity_flop_per_byte": [3.0], "flop_per_s": [2e12], "name": ["our model"]})
    at = {"x": "intensity_flop_per_byte:Q", "y": "flop_per_s:Q"}
    return (
        figure
        + alt.Chart(own).mark_point(shape="triangle").encode(**at)
        + alt.Chart(own).mark_text(dy=-9).encode(**at, text="name:N")
    )


def _axes(figure: Chart) -> Chart:
    across = alt.X(
        "intensity_flop_per_byte:Q", title="FLOP per byte", scale=alt.Scale(type="log", domain=[0.001, 1000])
    )
    figure.layer[0] = figure.layer[0].encode(x=across)
    return figure


def _other() -> Chart:
    return rl.figure(rl.open(FIXTURES / "synthetic" / "attention.synthetic.ncu-rep"), level="all", font=9)


def _bars() -> alt.Chart:
    return alt.Chart(alt.Data(values=[{"a": 1, "b": "my bar"}])).mark_bar().encode(x="a:Q", y="b:N")


EDITS: dict[str, tuple[Callable[[Chart], Chart], Callable[[str, str], bool]]] = {
    "wider": (lambda f: f.properties(width=900), lambda new, old: width_of(new) > width_of(old) + 200),
    "higher": (lambda f: f.properties(height=700), lambda new, old: new != old),
    "title": (lambda f: f.properties(title="Figure 3"), lambda new, _: "Figure 3" in texts(new)),
    "untitled": (lambda f: f.properties(title=""), lambda new, _: not any("V100" in text for text in texts(new))),
    "background": (lambda f: f.properties(background="beige"), lambda new, _: "beige" in new),
    "encode": (lambda f: f.encode(opacity=alt.value(0.33)), lambda new, _: 'opacity="0.33"' in new),
    "axes of all layers": (_axes, lambda new, _: {"FLOP per byte", "0.01"} <= {*texts(new)}),
    "interactive": (lambda f: f.interactive(), lambda new, old: texts(new) == texts(old)),
    "brush": (_brushed, lambda new, old: texts(new) == texts(old)),
    "legend": (_by_legend, lambda new, old: texts(new) == texts(old)),
    "slider": (_slider, lambda new, old: new.count('ault="point') <= old.count('ault="point')),
    "layer": (_own_point, lambda new, _: "our model" in texts(new)),
    "layer of ours": (
        lambda f: alt.layer(f, alt.Chart(alt.Data(values=[{"r": 1e12}])).mark_rule(color="red").encode(y="r:Q")),
        lambda new, _: 'stroke="red"' in new,
    ),
    "beside": (lambda f: f | _bars(), lambda new, _: "my bar" in texts(new)),
    "below": (lambda f: f & _bars(), lambda new, _: "my bar" in texts(new)),
    "twice": (lambda f: f | f.properties(width=200), lambda new, old: len(texts(new)) > 1.5 * len(texts(old))),
    "beside another": (lambda f: f | _other(), lambda new, _: {"L2  2.50 TB/s", "L2  15.6 TB/s"} <= {*texts(new)}),
    "concat of three": (
        lambda f: alt.concat(f, f.interactive(), _bars(), columns=2),
        lambda new, _: "my bar" in texts(new),
    ),
    "shared scales": (
        lambda f: (f | f).resolve_scale(x="shared", y="shared", size="independent"),
        lambda new, old: width_of(new) > width_of(old),
    ),
    "resolve": (lambda f: f.resolve_scale(color="independent"), lambda new, old: texts(new) == texts(old)),
    "facet": (
        lambda f: f.properties(title="").facet("verdict:N"),
        lambda new, _: {"memory", "compute"} <= {*texts(new)},
    ),
    "configure": (
        lambda f: f.configure(font="Georgia").configure_view(stroke=None),
        lambda new, _: "Georgia" in new,
    ),
    "filter": (
        lambda f: f.transform_filter("datum.verdict === 'memory'"),
        lambda new, old: len(texts(new)) < len(texts(old)),
    ),
    "from JSON": (lambda f: alt.LayerChart.from_json(f.to_json()), lambda new, old: texts(new) == texts(old)),
}


def test_a_users_edits_of_a_figure_work(report: rl.Report) -> None:
    """Each of two dozen things that Altair does with a chart passes its validation, is drawn, and does what it says."""
    old = drawn(rl.figure(report))
    must = {"HBM2  898 GB/s", "semi_discrete_step_232_gpu"}
    wrong = []
    for name, (edit, holds) in EDITS.items():
        try:
            new = drawn(edit(rl.figure(report)))
        except Exception as error:  # noqa: BLE001 - every offender is listed
            wrong.append(f"{name}: {type(error).__name__} {str(error)[:200]}")
            continue
        if not holds(new, old) or not must <= {*texts(new)}:
            wrong.append(f"{name}: lacks {must - {*texts(new)}}" if must - {*texts(new)} else f"{name}: no effect")
    assert wrong == []


def test_a_figure_is_saved_in_every_format(report: rl.Report, tmp_path: Path) -> None:
    """PDF, SVG, PNG, HTML and JSON come out of Altair's own `save`, for a report and for a kernel."""
    begins = {"pdf": b"%PDF", "svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>", "json": b"{"}
    for thing in (report, report[0]):
        for ending, begin in begins.items():
            thing.chart().save(tmp_path / f"figure.{ending}")
            assert (tmp_path / f"figure.{ending}").read_bytes().startswith(begin), ending


def sizes(pdf: bytes) -> tuple[float, dict[str, float]]:
    """Return the width of a page in millimetres, and the size in points of each of its texts, turned ones too."""
    page = pypdf.PdfReader(io.BytesIO(pdf)).pages[0]
    found: dict[str, float] = {}

    def visit(text: str, cm: list[float], tm: list[float], _font: Any, size: float) -> None:
        if text.strip():
            found[text] = size * hypot(cm[0], cm[1]) * hypot(tm[0], tm[1])

    page.extract_text(visitor_text=visit)
    return float(page.mediabox.width) / MM, found


def test_a_figure_is_as_wide_as_it_was_asked_for(fixtures: Path) -> None:
    """At 88 mm the PDF of every stored report is 88 mm wide within a point, and no word is under 7 points."""
    wrong = []
    for path in sorted((fixtures / "published").glob("*.ncu-rep")):
        try:
            chart = rl.figure(rl.open(path), width=88 * MM, height=66 * MM, font=7)
        except (InputError, UsageError):
            continue
        pdf = vl_convert.vegalite_to_pdf(chart.to_dict())
        width_mm, words = sizes(pdf)
        if abs(width_mm - 88) > 0.5 or not words or min(words.values()) < 6.99:
            wrong.append((path.name, width_mm, {text: size for text, size in words.items() if size < 6.99}))
    assert wrong == []


def test_a_figure_has_the_sizes_that_were_asked_for(report: rl.Report) -> None:
    """Width and height are those of the whole drawing, within a line of its words."""
    for width, height, font in ((640, 420, 11), (400, 300, 9), (900, 600, 16)):
        svg = drawn(rl.figure(report, width=width, height=height, font=font))
        found = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
        assert found
        assert abs(float(found[1]) - width) <= font
        assert abs(float(found[2]) - height) <= font


def test_a_path_is_opened_and_drawn(fixtures: Path) -> None:
    """As `rl.compare` takes paths or reports, so does a figure."""
    path = fixtures / "published" / "GPU_workshop__MW_Baseline.ncu-rep"
    assert rl.figure(path).to_dict() == rl.figure(rl.open(path)).to_dict() == rl.figure(str(path)).to_dict()


def test_a_figure_stands_at_the_level_asked_for(report: rl.Report) -> None:
    """Each level has its own dots, the default is that which limits each kernel, and an unknown level is refused."""
    dots = {level: rl.figure(report, level=level).to_dict()["data"]["values"] for level in (*LEVELS[:2], "all", None)}
    assert {row["level"] for row in dots["dram"]} == {"dram"}
    assert len(dots["all"]) > len(dots["dram"])
    assert all(row["is_binding"] for row in dots[None])
    with pytest.raises(UsageError, match="no level `l3`"):
        rl.figure(report, level="l3")


def test_a_figure_holds_the_kernels_asked_for(report: rl.Report) -> None:
    """A pattern, or several, choose the kernels; a figure of a kernel has no kernels to choose."""
    names = {row["kernel"] for row in rl.figure(report, kernels=["*309*", "semi*"]).to_dict()["data"]["values"]}
    assert names == {"compute_tendencies_x_309_gpu", "semi_discrete_step_232_gpu"}
    with pytest.raises(InputError):
        rl.figure(report, kernels="none_such")
    with pytest.raises(UsageError, match="a kernel holds no kernels"):
        rl.figure(report[0], kernels="*")


def test_what_no_figure_can_show_is_refused(fixtures: Path, tmp_path: Path) -> None:
    """Two GPUs, a figure without dots, an unknown theme and sizes that hold nothing are one clear error each."""
    two = rl.open([fixtures / "published" / WEATHER, fixtures / "synthetic" / "attention.synthetic.ncu-rep"])
    with pytest.raises(UsageError, match="of one GPU, and these kernels ran on"):
        rl.figure(two)
    shares = {"gpu__time_duration.sum": 2e6, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 80.0}
    with pytest.raises(InputError, match="no kernel has a place in a roofline"):
        rl.figure(rl.open(write_report(tmp_path / "a.ncu-rep", ReportSpec([KernelSpec("k", shares)]))))
    one = two[:1]
    for wrong in ({"theme": "blue"}, {"width": 20}, {"font": 0}, {"height": float("nan")}):
        with pytest.raises(UsageError):
            rl.figure(one, **wrong)  # type: ignore[arg-type] - as a user gets it wrong


def test_a_dark_figure_brings_its_ground(report: rl.Report) -> None:
    """A dark figure has light words on a dark ground, and a light one leaves the ground to its chart."""
    dark, light = (rl.figure(report, theme=theme).to_dict() for theme in ("dark", "light"))
    assert dark["background"] == "#101419"
    assert "background" not in light


def test_synthetic_data_are_marked(fixtures: Path) -> None:
    """A figure of synthetic data says so in its title."""
    chart = rl.figure(rl.open(fixtures / "synthetic" / "attention.synthetic.ncu-rep"))
    assert chart.to_dict()["title"]["text"][0].startswith("Synthetic data: NVIDIA H200")


def test_frames_hold_what_the_figure_draws(report: rl.Report) -> None:
    """Points and roofs as frames are those of the chart; a point is under the roof that is drawn over it."""
    points, roofs = report.points(), report.roofs()
    dots = rl.figure(report, level="dram").to_dict()["data"]["values"]
    at_dram = points[points.level == "dram"]
    assert {row["flop_per_s"] for row in dots} == {*at_dram.flop_per_s}
    dram = roofs[(roofs.resource == "dram") & (roofs.kind == "peak")].bytes_per_s.item()
    top = roofs.flop_per_s.max()
    roof = np.minimum(dram * at_dram.intensity_flop_per_byte, top)
    assert (at_dram.flop_per_s <= roof * 1.02).all()
    assert (roofs.bytes_per_s.isna() != roofs.flop_per_s.isna()).all()
    joined = points.merge(report.to_pandas(), left_on=["digest", "kernel_index"], right_on=["digest", "index"])
    assert len(joined) == len(points)


def test_frames_and_figure_are_the_numbers_of_the_kernels(report: rl.Report) -> None:
    """A dot is a kernel's own FLOP/s over its own bytes, as the summary has them."""
    summary = report.to_pandas().set_index(["digest", "index"])
    for row in report.points().itertuples():
        kernel = summary.loc[(row.digest, row.kernel_index)]
        assert row.flop_per_s == pytest.approx(kernel.flop_per_s)
        assert row.intensity_flop_per_byte == pytest.approx(kernel[f"{row.level}_intensity"])


def test_rows_are_named(report: rl.Report) -> None:
    """All rows of a figure are in tables whose names begin with what they are, so that a script finds them."""
    written = json.dumps(rl.figure(report).to_dict())
    found = {name.rpartition("_")[0] for name in re.findall(r'"name": "(\w+_[0-9a-f]{8})"', written)}
    assert found == {"points", "roofs", "ridges", "slopes", "flat_roofs"}


def test_frames_keep_their_columns_without_rows(tmp_path: Path) -> None:
    """Where no kernel has a place, both frames have no rows and all their columns, as numbers where they hold them."""
    times = {"gpu__time_duration.sum": 2e6}
    bare = rl.open(write_report(tmp_path / "a.ncu-rep", ReportSpec([KernelSpec("k", times)])))
    full = rl.open(FIXTURES / "synthetic" / "attention.synthetic.ncu-rep")
    for empty, rows in ((bare.points(), full.points()), (bare.roofs(), full.roofs())):
        assert len(empty) == 0
        assert list(empty.columns) == list(rows.columns)
        assert empty.flop_per_s.dtype == float


def test_the_page_of_figures_draws_with_matplotlib(
    report: rl.Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documentation's code for matplotlib draws a PDF of 88 mm in which no word is under 7 points."""
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    page = (FIXTURES.parent / "docs" / "how-to" / "figures.md").read_text(encoding="utf-8")
    found = re.search(r"```python elsewhere\n(.*?)```", page, re.DOTALL)
    assert found
    exec(compile(found[1], "figures.md", "exec"), {"report": report})  # noqa: S102 - the documentation's own code
    width_mm, words = sizes((tmp_path / "matplotlib.pdf").read_bytes())
    assert width_mm == pytest.approx(88, abs=0.5)
    assert min(words.values()) >= 6.99
