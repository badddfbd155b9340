"""Sweeps of made reports for the tests of their picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace
from support import samples

from rooflens.model.predict.expectations import check_reports, predict_case
from rooflens.model.predict.measured import Prediction
from rooflens.model.records import AnalyzedReport
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.page.sweeps import Sweep, find_sweeps
from rooflens.workloads.registry import find_workload

Report = tuple[str, str, list[samples.Sample]]
CHIP = replace(samples.A100, pipe_peaks={**samples.A100.pipe_peaks, "tensor_fp16": 312e12, "tensor_tf32": 156e12})


def done(
    flop: float, dram_bytes: float, time_us: float, pipe: str = "fp32", bound: Any = "memory", **more: Any
) -> samples.Sample:
    """Make a kernel with these amounts."""
    return samples.Sample(
        more.pop("name", "kernel"),
        bound,
        time_us,
        None,
        {"dram": dram_bytes},
        {pipe: flop},
        chip=more.pop("chip", CHIP),
    )


def make_page(reports: Iterable[Report]) -> Content:
    """Make a page of one report for each (workload, case, kernels)."""
    made: list[AnalyzedReport] = []
    predictions: dict[str, Prediction] = {}
    for at, (workload, case, kernels) in enumerate(reports):
        digest = f"{at:064x}"
        analyses = [samples.analysis(kernel, i, digest) for i, kernel in enumerate(kernels)]
        made.append(samples.report(analyses, digest=digest, source=f"{workload}.{case}.ncu-rep"))
        predictions[digest] = predict_case(workload, find_workload(workload).case(case))
    return build_content(made, "test", default_thresholds(), predictions=check_reports(made, predictions))


def gemms(sizes: Iterable[int], dtype: str = "bf16") -> list[Report]:
    """Make reports of square products: FLOPs and bytes as predicted, at 60 % of the tensor peak."""
    return [
        (
            "gemm",
            f"{dtype}_{n}",
            [done(2.0 * n**3, 6.0 * n**2, 2.0 * n**3 / 187e12 * 1e6, f"tensor_{dtype}", "compute")],
        )
        for n in sizes
    ]


def ladder() -> list[Report]:
    """Make a report of every rung, each faster than the one before."""
    times_us = {1: 95e3, 2: 52e3, 3: 36e3, 4: 16e3, 5: 10.8e3, 6: 8.8e3, 7: 7.9e3, 8: 900.0}
    cases = {int(case.parameters["rung"]): case.name for case in find_workload("gemm_ladder").cases}
    return [
        (
            "gemm_ladder",
            cases[rung],
            [done(2.0 * 4096**3, 1.2 * 12 * 4096**2, time_us, "tensor_fp16" if rung == 8 else "fp32")],
        )
        for rung, time_us in times_us.items()
    ]


def the_sweep(reports: Iterable[Report]) -> Sweep:
    """Return the only sweep of a page."""
    (sweep,) = find_sweeps(make_page(reports))
    return sweep
