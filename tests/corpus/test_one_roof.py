"""One roof a unit: every face goes by it, and reports without their peaks have nearly the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.analyze import analyze
from rooflens.model.catalogue import KERNEL
from rooflens.model.records import Analysis, Kernel, Roof
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.roofline.levels import place_levels
from rooflens.model.roofline.roof import LEAST_SHARE, at_top_clock, roof
from rooflens.model.roofline.roofs import level_roofs, pipe_roofs
from rooflens.model.roofline.standing import standings
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.roofline.work import main_work
from rooflens.report.document import Table
from rooflens.report.kernel.units import busy_units

_NEAR = 0.03
"""A rate over its per cent is of other passes than the peak and its clock."""
_PUBLISHED = 0.05
"""Datasheets round: the 1 TFLOP/s of an H800's fp64 are 1.045."""
_OTHER_MEMORY = frozenset({"NVIDIA GeForce GTX 1650"})
"""Boards that share a display name and differ in their memory: the datasheet is that of one of them."""
_ROUNDED = 1e-9


def without_peaks(kernel: Kernel, *also: str) -> Kernel:
    """Leave out the peaks of a kernel, as a list of counters has none, and some counters more."""
    kept = {name: value for name, value in kernel.counters.items() if "_peak_" not in name and name not in also}
    return replace(kernel, counters=kept, tensor_peaks_per_s={})


@pytest.fixture(scope="module")
def full(kernels: list[Kernel]) -> list[Kernel]:
    """Return the kernels whose reports hold DRAM's peak and FLOPs."""
    found = [one for one in kernels if not one.failed and one.counters.get("ffma_peak_threads_per_s")]
    return [one for one in found if one.counters.get("dram_bus_peak_bytes_per_s")]


def test_a_rate_over_its_per_cent_is_the_peak(full: list[Kernel]) -> None:
    """Without the peak, DRAM's slope from its bytes and its per cent is within 3 % of the report's own."""
    wrong, held = [], 0
    for kernel in full:
        own, rate = roof("dram", kernel), roof("dram", without_peaks(kernel))
        share, moved = kernel.counters.get("dram_bus_share", 0.0), kernel.counters.get("dram_bytes")
        if not moved or share < LEAST_SHARE:
            continue
        held += 1
        if own is None or rate is None or rate.source != "rate" or abs(rate.value / own.value - 1) > _NEAR:
            wrong.append((kernel.source, kernel.index, own, rate))
    assert wrong == []
    assert held >= 40


def test_a_published_slope_differs_by_the_clock_alone(full: list[Kernel]) -> None:
    """Without peak and per cent the slope is the datasheet's: the report's, at the rated clock of the memory."""
    wrong, held = [], 0
    for kernel in full:
        own, top = roof("dram", kernel), kernel.counters.get("device_dram_peak_bytes_per_s")
        published = roof("dram", without_peaks(kernel, "dram_bus_share"))
        if own is None or datasheet_of(kernel.gpu) is None or kernel.gpu in _OTHER_MEMORY or top is None:
            continue
        held += 1
        # The driver's top clock over that of the run is what the datasheet cannot know.
        if published is None or abs(published.value * own.value / top / own.value - 1) > _NEAR:
            wrong.append((kernel.gpu, own.value, published))
        elif (published.source, published.clock) != ("datasheet", "rated"):
            wrong.append((kernel.gpu, published))
    assert wrong == []
    assert held >= 40


def test_published_peaks_of_arithmetic_are_the_report_s_at_its_clock(full: list[Kernel]) -> None:
    """FP32 and FP64 by the datasheet, at the profiled clock, are those of the report."""
    wrong, held = [], 0
    for kernel in full:
        for dtype in ("fp32", "fp64"):
            own, published = roof(dtype, kernel), roof(dtype, without_peaks(kernel))
            if own is None or published is None:
                continue
            held += 1
            if abs(published.value / own.value - 1) > _PUBLISHED or published.clock != "profiled":
                wrong.append((kernel.gpu, dtype, own.value, published))
    assert wrong == []
    assert held >= 80


def _faces(analysis: Analysis) -> Iterator[tuple[str, str, float | None, Roof | None]]:
    """Yield what each face goes by: face, unit, its number, and the roof of the unit."""
    kernel, written = analysis.kernel, KERNEL.json(analysis)
    for name, level in analysis.levels.items():
        own = roof(name, kernel)
        yield "JSON", name, written["levels"][name]["peak_bytes_per_s"], own
        yield "level", name, level.peak_bytes_per_s, own
    for name, pipe in analysis.pipes.items():
        yield "JSON", name, written["pipes"][name]["peak_per_s"], pipe.roof
    for line in level_roofs([analysis]):
        for name in line.keys[:1]:
            yield "plane", name, line.peak, roof(name, kernel)
    for one in standings(analysis):
        yield "standing", one.level, one.slope and one.slope.value, roof(one.level, kernel)


def test_every_face_goes_by_one_roof(analyses: list[Analysis], full: list[Kernel]) -> None:
    """Plane, table, class, limit, tooltip, columns and JSON take the same peak, with and without the report's own."""
    wrong = []
    for analysis in (*analyses, *map(analyze, map(without_peaks, full))):
        kernel = analysis.kernel
        if kernel.failed:
            continue
        where = (kernel.source, kernel.index)
        for face, unit, shown, own in _faces(analysis):
            if shown != (own and pytest.approx(own.value, rel=_ROUNDED)):
                wrong.append((*where, face, unit, shown, own))
        tables = [block for block in busy_units(analysis) if isinstance(block, Table)]
        peaks = {str(row[0]): str(row[4]) for table in tables for row in table.rows}
        for name, level in analysis.levels.items():
            said = peaks.get(resource_label(name, analysis.kernel.gpu))
            peak = level.peak_bytes_per_s
            if said and level.bytes_per_s and peak and not said.startswith(fmt.si(peak, "B/s")):
                wrong.append((*where, "table", said, peak))
    assert wrong == []


def test_the_limit_and_the_class_take_it_from_there(analyses: list[Analysis], full: list[Kernel]) -> None:
    """DRAM's floor is the time of at most its bytes at its top clock; its share is its rate over its roof."""
    wrong, floors, shares = [], 0, 0
    for analysis in (*analyses, *map(analyze, map(without_peaks, full))):
        kernel, limit, level = analysis.kernel, analysis.verdict.limit, analysis.levels["dram"]
        if kernel.failed:
            continue
        where, top, moved = (kernel.source, kernel.index), at_top_clock(kernel), level.amount_bytes
        if limit.by == "DRAM traffic" and limit.floor_ns and moved and top is not None:
            floors += 1
            stayed = kernel.counters.get("l2_write_bytes", 0.0) if "dram_writes_stay_in_l2" in analysis.flags else 0.0
            if limit.floor_ns > (moved + stayed) / top.value * 1e9 * (1 + _NEAR):
                wrong.append((*where, "limit", limit.floor_ns, moved / top.value * 1e9))
        if level.bytes_per_s and level.roof is not None and "bus" in level.stages:
            shares += 1
            of_roof = level.bytes_per_s / level.roof.value
            if abs(of_roof - level.stages["bus"]) > _NEAR:
                wrong.append((*where, "class", of_roof, level.stages["bus"]))
    assert wrong == []
    assert min(floors, shares) >= 40


def test_lines_of_a_plane_say_where_they_are_from(full: list[Kernel]) -> None:
    """A line of report peaks is solid; one of a datasheet is dashed, and names the GPU."""
    wrong = []
    for kernel in full:
        for one, is_own in ((kernel, True), (without_peaks(kernel, "dram_bus_share"), False)):
            analysis = analyze(one)
            lines = [line for line in (*level_roofs([analysis]), *pipe_roofs([analysis])) if "dram" in line.keys]
            for line in lines:
                named = line.roof.of.startswith("datasheet of ") and (kernel.gpu or "?") in line.roof.of
                if line.is_measured is not is_own or named is is_own:
                    wrong.append((kernel.source, kernel.index, line))
    assert wrong == []


def test_placing_levels_costs_no_second_look(full: list[Kernel]) -> None:
    """The share of a level without its peaks is what its report says of it, within what passes differ."""
    wrong = []
    for kernel in full:
        whole, part = place_levels(kernel), place_levels(without_peaks(kernel))
        for name in ("dram", "l1"):
            shares = whole[name].share, part[name].share
            if None not in shares and abs((shares[0] or 0.0) - (shares[1] or 0.0)) > _NEAR:
                wrong.append((kernel.source, kernel.index, name, shares))
    assert wrong == []


def test_main_work_is_under_its_roof(analyses: list[Analysis]) -> None:
    """No kernel stands more than a few per cent above what it is measured against."""
    wrong = []
    for analysis in analyses:
        work = main_work(analysis)
        for one in standings(analysis):
            is_over = one.share is not None and one.share > 1.1
            if is_over and not {"share_over_one", "fp16_is_upper_bound"} & set(analysis.flags) and work.peak_per_s:
                wrong.append((analysis.kernel.source, analysis.kernel.index, one))
    assert wrong == []


def test_turing_moves_64_bytes_a_cycle(kernels: list[Kernel]) -> None:
    """On CC 7.5 the counter of L1's data stage ends at half of its peak, and where it leads is half of NVIDIA's L1."""
    turing = [one for one in kernels if one.compute_capability == "7.5" and "l1_data_share" in one.counters]
    over = [one.counters["l1_data_share"] for one in turing if one.counters["l1_data_share"] > 0.5 + _NEAR / 10]
    apart, leads = [], 0
    for kernel in turing:
        level, nvidias = place_levels(kernel)["l1"], kernel.counters.get("sol_l1_share")
        twice = 2 * max(level.stages.get("to_l2", 0.0), level.stages.get("lsu_input", 0.0) / 2)
        if nvidias is not None and level.leading_stage == "data" and level.stages["data"] > twice:
            leads += 1
            if abs(level.stages["data"] / nvidias - 1) > _NEAR:
                apart.append((kernel.source, kernel.index, level.stages["data"], nvidias))
    assert (over, apart) == ([], [])
    assert leads >= 3
