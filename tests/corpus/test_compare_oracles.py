"""Check comparisons of published reports, and their pages, against NVIDIA's numbers, read without our resolver."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import duration
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.model.analyze import analyze
from rooflens.model.compare.compare import Change
from rooflens.model.compare.ladder import Ladder
from rooflens.model.compare.pairing import pair_sides, warnings
from rooflens.model.records import AnalyzedReport, Rule
from rooflens.writing.answers import of_comparison

DURATION = "gpu__time_duration.sum"
DRAM_PCT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SM_PCT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
CYCLES_PER_S = "smsp__cycles_elapsed.avg.per_second"
PER_CYCLE = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
FLOP_OF = {"dadd": 1, "dmul": 1, "dfma": 2, "fadd": 1, "fmul": 1, "ffma": 2}

TENDENCIES = "compute_tendencies_x_279_gpu"
"""The kernel whose divisions became multiplications."""

POINT = 0.01


class Report(Struct, frozen=True):
    """A report with NVIDIA's stored values of each kernel, by position and metric."""

    path: Path
    stored: dict[int, dict[str, float]]
    names: dict[int, str]
    rules: dict[int, tuple[Rule, ...]]

    def of(self, name: str) -> dict[str, float]:
        """Return the metrics of the only kernel of this name."""
        (index,) = (index for index, other in self.names.items() if other == name)
        return self.stored[index]

    def said(self, name: str, rule: str) -> str:
        """Return the texts of NVIDIA's rule about a kernel."""
        (index,) = (index for index, other in self.names.items() if other == name)
        return " ".join(f"{one.title}: {one.message}" for one in self.rules[index] if one.identifier == rule)

    @property
    def total_ns(self) -> float:
        """Sum of all durations."""
        return sum(metrics[DURATION] for metrics in self.stored.values())


class Pair(Struct, frozen=True):
    """Two reports, our comparison of them, and its page."""

    base: Report
    head: Report
    compared: Ladder
    page: str

    def change(self, name: str) -> Change:
        """Return the change of the kernel with this name after, or before."""
        return next(one for one in self.compared.changes if one.name == name)

    @property
    def text(self) -> str:
        """The words of the page, without markup."""
        body = re.sub(r"<script.*?</script>|<style.*?</style>", "", self.page, flags=re.DOTALL)
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)).replace("\u00a0", " "))

    def dots(self) -> list[dict[str, Any]]:
        """Return the dots of the roofline."""
        block = re.search(r'id="spec-arrows-p0">(.*?)</script>', self.page, re.DOTALL)
        assert block is not None
        tables: list[list[dict[str, Any]]] = [rows for rows in json.loads(block[1])["datasets"].values() if rows]
        return max((rows for rows in tables if "Side" in rows[0]), key=len)


@cache
def pair_of(base: Path, head: Path) -> Pair:
    """Compare two reports."""
    reports, sides = [], []
    for path in (base, head):
        loaded = read_report(path, str(path), ReadOptions(raw="all"))
        assert loaded.raw is not None
        columns = (loaded.raw[name].to_pylist() for name in ("kernel_index", "name", "value_double"))
        stored: dict[int, dict[str, float]] = {}
        for index, name, value in zip(*columns, strict=True):
            if value is not None:
                stored.setdefault(index, {})[name] = value
        names = {kernel.index: kernel.name for kernel in loaded.kernels}
        reports.append(Report(path, stored, names, {kernel.index: kernel.rules for kernel in loaded.kernels}))
        sides.append([AnalyzedReport(loaded.run, tuple(analyze(kernel) for kernel in loaded.kernels))])
    (pair,) = pair_sides((sides[0], sides[1]), ("base", "head"))[0]
    compared = replace(pair, warnings=tuple(warnings(pair)))
    return Pair(reports[0], reports[1], compared, of_comparison([compared]).text("html"))


@pytest.fixture
def weather(corpus: Path) -> Pair:
    """Return the weather code on a V100, whose divisions became multiplications."""
    return pair_of(corpus / "GPU_workshop__MW_Baseline.ncu-rep", corpus / "GPU_workshop__MW_DivToMult.ncu-rep")


@pytest.fixture
def julia(corpus: Path) -> Pair:
    """Return two versions of a Julia program on an A40, recorded by two versions of ncu."""
    return pair_of(corpus / "IndexSpaces.jl__profile.ncu-rep", corpus / "IndexSpaces.jl__profile@3176628c.ncu-rep")


@pytest.mark.parametrize(("name", "outcome", "apart"), [("weather", "single", ""), ("julia", "unknown", "other work")])
def test_times_are_nvidias(name: str, outcome: str, apart: str, request: pytest.FixtureRequest) -> None:
    """The totals of each side and of every kernel, also on the page, are the sums of NVIDIA's durations.

    The only Julia kernel on both sides writes seven times the bytes after, so those totals are not compared.
    """
    pair: Pair = request.getfixturevalue(name)
    total = pair.compared.total
    assert (total.base.median_ns, total.head.median_ns) == (pair.base.total_ns, pair.head.total_ns)
    assert (total.outcome(), total.apart.partition(":")[0]) == (outcome, apart)
    for side in (pair.base, pair.head):
        assert apart or duration(side.total_ns).replace("\u00a0", " ") in pair.text
    changes = pair.compared.changes
    for report, at in ((pair.base, 0), (pair.head, 1)):
        for kernel in set(report.names.values()):
            theirs = [report.stored[index][DURATION] for index, other in report.names.items() if other == kernel]
            ours = [
                (change.timing.base, change.timing.head)[at].median_ns
                for change in changes
                if (one := (change.base, change.head)[at]) and one.kernel.name == kernel
            ]
            assert sum(time or 0.0 for time in ours) == pytest.approx(sum(theirs))


def test_division_bound_kernel_became_memory_bound(weather: Pair) -> None:
    """The kernel is 1.78x faster; NVIDIA, too, calls it compute-bound before and names DRAM after."""
    change = weather.change(TENDENCIES)
    before, after = weather.base.of(TENDENCIES), weather.head.of(TENDENCIES)
    assert change.how == "same"
    assert change.timing.factor == pytest.approx(before[DURATION] / after[DURATION])
    assert change.timing.factor == pytest.approx(1.78, abs=0.005)
    assert "Compute is more heavily utilized than Memory" in weather.base.said(TENDENCIES, "SOLBottleneck")
    assert "Start by analyzing DRAM" in weather.head.said(TENDENCIES, "SOLBottleneck")
    assert change.base is not None
    assert change.head is not None
    assert (change.base.verdict.bound, change.base.verdict.resource) == ("compute", "fp64")
    assert (change.head.verdict.bound, change.head.verdict.resource) == ("memory", "dram")


def test_walls_before_and_after_are_nvidias_speed_of_light(weather: Pair) -> None:
    """The shares of both limiters are NVIDIA's SM and DRAM throughput, in the model, the sentence and the table."""
    change = weather.change(TENDENCIES)
    sm, dram = weather.base.of(TENDENCIES)[SM_PCT], weather.head.of(TENDENCIES)[DRAM_PCT]
    assert change.base is not None
    assert change.head is not None
    assert change.base.verdict.bottleneck is not None
    assert 100 * change.base.verdict.bottleneck.share == pytest.approx(sm, rel=POINT)
    assert change.head.verdict.bottleneck is not None
    assert 100 * change.head.verdict.bottleneck.share == pytest.approx(dram, rel=POINT)
    assert f"compute-bound at FP64 pipe ({sm:.0f} %) \u2192 memory-bound at HBM2 ({dram:.0f} %)" in weather.text
    assert f"compute-bound, FP64 pipe {sm:.0f} % \u2192 memory-bound, HBM2 {dram:.0f} %" in weather.text


def test_fp64_fell_as_nvidias_rule_says(weather: Pair) -> None:
    """By NVIDIA's rule and by ours, 52 % of the fp64 peak were achieved before and 39 % after."""
    change = weather.change(TENDENCIES)
    for report, analysis in ((weather.base, change.base), (weather.head, change.head)):
        said = re.search(r"(\d+)% of its fp64 peak", report.said(TENDENCIES, "SOLFPRoofline"))
        assert said is not None
        assert analysis is not None
        assert analysis.pipes["fp64"].share is not None
        assert analysis.pipes["fp64"].share * 100 == pytest.approx(float(said[1]), abs=1.0)
    assert weather.base.said(TENDENCIES, "SOLFPRoofline").count("52% of its fp64 peak") == 1
    assert weather.head.said(TENDENCIES, "SOLFPRoofline").count("39% of its fp64 peak") == 1


@pytest.mark.parametrize("name", [TENDENCIES, "compute_tendencies_x_309_gpu", "semi_discrete_step_232_gpu"])
def test_dots_stand_where_nvidias_counters_put_them(weather: Pair, name: str) -> None:
    """FLOP/s from operations per cycle and intensity from DRAM bytes: both ends of each arrow agree within 1 %."""
    dots = [row for row in weather.dots() if row["name"] == name]
    assert {dot["Side"] for dot in dots} == {"before", "after"}
    for dot in dots:
        metrics = (weather.base if dot["Side"] == "before" else weather.head).of(name)
        a_cycle = sum(count * metrics.get(PER_CYCLE.format(op), 0.0) for op, count in FLOP_OF.items())
        flop_per_s = a_cycle * metrics[CYCLES_PER_S]
        moved_bytes = metrics["dram__bytes_read.sum"] + metrics["dram__bytes_write.sum"]
        assert dot["y"] == pytest.approx(flop_per_s, rel=0.01)
        assert dot["x"] == pytest.approx(flop_per_s * metrics[DURATION] * 1e-9 / moved_bytes, rel=0.01)


def test_what_did_not_change_is_said_so(weather: Pair) -> None:
    """The other two large kernels differ by at most 1 % in NVIDIA's durations, and the table says so."""
    for name in ("compute_tendencies_x_309_gpu", "semi_discrete_step_232_gpu"):
        factor = weather.base.of(name)[DURATION] / weather.head.of(name)[DURATION]
        assert factor == pytest.approx(1, rel=0.01)
        row = weather.text.partition(f" {name} ")[2].partition("_gpu ")[0]
        assert "unchanged (1 run each): still memory-bound" in row


def test_renamed_julia_kernel_is_matched(julia: Pair) -> None:
    """The kernel that fills arrays has another number in its name and seven times the bytes, so it is not compared."""
    change = julia.change("julia__5_6739")
    assert change.how == "renamed"
    assert change.base is not None
    assert change.base.kernel.name == "julia__5_11155"
    after = julia.head.of("julia__5_6739")
    (before,) = (m for m in julia.base.stored.values() if m[DURATION] == change.timing.base.median_ns)
    assert before[DURATION] < after[DURATION]
    assert change.timing.factor is None
    assert change.work is not None
    assert change.work.same is False
    for analysis, metrics in ((change.base, before), (change.head, after)):
        assert analysis is not None
        level = analysis.levels["dram"]
        assert level.amount_bytes == metrics["dram__bytes_read.sum"] + metrics["dram__bytes_write.sum"]
        assert level.share == pytest.approx(metrics[DRAM_PCT] / 100, rel=POINT)
    assert "was julia__5_11155" in julia.text
    assert f"{before[DRAM_PCT]:.0f} %" in julia.text
    assert f"{after[DRAM_PCT]:.0f} %" in julia.text


def test_rewritten_julia_kernel_is_new_and_gone(julia: Pair) -> None:
    """The large kernels differ in name and work: one is listed as gone, the other as new, with NVIDIA's durations."""
    gone, new = julia.change("julia_frb_5885"), julia.change("julia_bb_4477")
    assert (gone.how, new.how) == ("gone", "new")
    assert gone.timing.base.median_ns == julia.base.of("julia_frb_5885")[DURATION]
    assert new.timing.head.median_ns == julia.head.of("julia_bb_4477")[DURATION]
    assert "3 gone 1 new" in julia.text
    assert "Gone: julia_frb_5885 ," in julia.text
    assert "New: julia_bb_4477" in julia.text
    assert f"compute-bound, ALU pipe {julia.head.of('julia_bb_4477')[SM_PCT]:.0f} %" in julia.text


def test_what_was_recorded_differently_is_told(julia: Pair) -> None:
    """The page shows both ncu versions, and one plane of FLOP/s, as the main kernels ran at the same clock."""
    assert "2022.4.0.0 2022.1.1.0" in julia.text
    clocks = [
        side.of(name)[CYCLES_PER_S] for side, name in ((julia.base, "julia_frb_5885"), (julia.head, "julia_bb_4477"))
    ]
    assert clocks[0] == pytest.approx(clocks[1], rel=0.03)
    assert "Heights are shares" not in julia.text
