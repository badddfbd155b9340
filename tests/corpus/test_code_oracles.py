"""Compare our figures of single instructions with NVIDIA's own sums and source markers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ncu_report
import pytest

from rooflens.ingest.load import Loaded
from rooflens.model.hotspots import hottest, leading_stall, places
from rooflens.model.records import Kernel

SUMS = {
    ("samples",): "smsp__pcsamp_sample_count",
    ("warp_inst",): "inst_executed",
    ("thread_inst",): "thread_inst_executed_true",
    ("load_sectors", "store_sectors"): "memory_l2_theoretical_sectors_global",
    ("load_excess_sectors", "store_excess_sectors"): "derived__memory_l2_theoretical_sectors_global_excessive",
    ("local_sectors",): "memory_l2_theoretical_sectors_local",
    ("shared_wavefronts",): "memory_l1_wavefronts_shared",
    ("shared_excess_wavefronts",): "derived__memory_l1_wavefronts_shared_excessive",
}
"""Measures that add up to a value which the report states."""


@pytest.fixture(scope="module")
def pairs(loaded: Loaded) -> list[tuple[Kernel, Any]]:
    """Return each kernel with instructions, and NVIDIA's own view of it."""
    return list(_pairs(loaded))


def _pairs(loaded: Loaded) -> Iterator[tuple[Kernel, Any]]:
    for run, kernels in loaded.reports:
        if not any(kernel.code_totals for kernel in kernels):
            continue
        context = ncu_report.load_report(run.source)
        ranges = [context.range_by_idx(index) for index in range(context.num_ranges())]
        actions = [one.action_by_idx(index) for one in ranges for index in range(one.num_actions())]
        for kernel, action in zip(kernels, actions, strict=True):
            if kernel.code_totals:
                yield kernel, action


def test_sums_over_instructions_are_the_stored_values(pairs: list[tuple[Kernel, Any]]) -> None:
    """Every measure adds up exactly to the metric's own value, on every kernel that has it."""
    compared = 0
    for kernel, action in pairs:
        for measures, name in SUMS.items():
            metric = action.metric_by_name(name)
            if metric is None or not metric.has_value():
                continue
            total = sum(kernel.code_totals[measure] for measure in measures)
            assert total == metric.value(), (kernel.source, kernel.index, name)
            compared += 1
    assert compared >= 440


def test_the_instructions_nvidia_marks_for_stalls_are_hot_spots(pairs: list[tuple[Kernel, Any]]) -> None:
    """Each instruction marked for its stalls is kept with NVIDIA's share, and its line is among the first few."""
    marked = 0
    for kernel, action in pairs:
        starts = action.metric_by_name("launch__function_pcs")
        start = min(starts.as_uint64(index) for index in range(starts.num_instances()))
        instructions = {h.pc: h for h in kernel.hotspots if h.by == "sass"}
        lines = [(h.file, h.line) for h in hottest(kernel.hotspots, "samples", 5, "line")]
        for marker in action.source_markers():
            found = re.search(r"([\d.]+)% of all warp stalls", marker["message"])
            if not found:
                continue
            hotspot = instructions[marker["source_address"] - start]
            assert 100 * hotspot.measures["samples"] / kernel.code_totals["samples"] == pytest.approx(
                float(found[1]), abs=0.06
            )
            assert hotspot.line is None or (hotspot.file, hotspot.line) in lines
            marked += 1
    assert marked >= 35


def test_the_twenty_hottest_instructions_are_nvidias(pairs: list[tuple[Kernel, Any]]) -> None:
    """Our twenty hottest instructions have as many samples as NVIDIA's twenty hottest addresses, without a gap.

    Less than a thousandth of all samples belong to code outside the kernel, which has no offset in it.
    """
    compared = 0
    for kernel, action in pairs:
        metric = action.metric_by_name("smsp__pcsamp_sample_count")
        if metric is None or not metric.num_instances():
            continue
        counted = sorted((metric.as_uint64(index) for index in range(metric.num_instances())), reverse=True)
        kept = [spot.measures.get("samples", 0) for spot in hottest(kernel.hotspots, "samples", 20, "sass")]
        expected = [count for count in counted[:20] if count >= sum(counted) / 1000]
        assert kept[: len(expected)] == expected, (kernel.source, kernel.index)
        compared += 1
    assert compared >= 50


def test_the_hottest_lines_of_two_published_kernels(pairs: list[tuple[Kernel, Any]]) -> None:
    """One line of a stencil's update has 88 % of the samples, one of an optimizer 58 %, both waiting for memory."""
    kernels = {(Path(kernel.source).name, kernel.index): kernel for kernel, _ in pairs}
    update, *_ = places(kernels["GPU_workshop__MW_Baseline.ncu-rep", 4], "samples")
    optimizer, *_ = places(kernels["llm.c__adamw_coalsecing_shared.ncu-rep", 0], "samples")
    assert (update.hotspot.line, round(update.share, 2), leading_stall(update.hotspot)) == (
        257,
        0.88,
        "long_scoreboard",
    )
    assert update.hotspot.text == "state_out(i,k,ll) = state_init(i,k,ll) + dt * tend(i,k,ll)"
    assert (optimizer.hotspot.line, round(optimizer.share, 2)) == (95, 0.58)


def test_packed_fp16_of_published_kernels_is_known(pairs: list[tuple[Kernel, Any]]) -> None:
    """In all kernels with packed multiply-adds but one, these only load constants; in the last they compute."""
    with_packed = {
        (Path(kernel.source).name, kernel.index): kernel.code_totals["fp16_constant_threads"] / executed
        for kernel, _ in pairs
        if (executed := sum(n for opcode, n in kernel.thread_opcodes.items() if opcode.startswith("HFMA2")))
        and "fp16_constant_threads" in kernel.code_totals
    }
    assert len(with_packed) >= 14
    assert {name: share for name, share in with_packed.items() if share < 1} == {
        ("IndexSpaces.jl__profile.ncu-rep", 4): 0
    }


def test_kernels_keep_few_hot_spots(pairs: list[tuple[Kernel, Any]]) -> None:
    """No kernel keeps more than 40 lines, 40 instructions and 8 functions."""
    for kernel, _ in pairs:
        assert len(kernel.hotspots) <= 88
