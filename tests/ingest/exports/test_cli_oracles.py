"""Exports against reports: NVIDIA's own CLI printed seven reports of the corpus."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.loops import for_all

from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.ingest.exports.labels import metric_of
from rooflens.ingest.exports.read import read_export
from rooflens.ingest.exports.tables import is_export
from rooflens.ingest.load import Loaded
from rooflens.ingest.reports.read import ReadOptions, read_bytes
from rooflens.ingest.reports.results import RawResult, is_wanted, to_kernel
from rooflens.model.analyze import analyze
from rooflens.model.records import Kernel
from rooflens.model.verdict.nvidia_rules import read_nvidia
from rooflens.model.verdict.thresholds import default_thresholds

pytestmark = pytest.mark.corpus

REPORTS = (
    "CudaCode__naive",
    "GPU_workshop__MW_Baseline",
    "KernelBench__matmul_kernel",
    "cutlass__384",
    "llm.c__adamw_coalsecing_shared",
    "nsight-training__manual_nvtx",
    "self-join-MiSTIC__profile",
)
MODES = ("auto", "base")
PRINTED_DIGITS = {"details": 2, "raw": 6}
"""Most digits after the decimal point: on the details page, on the scaled raw page, and in base units."""

SCALES = {
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "usecond": 1e3, "msecond": 1e6, "second": 1e9,
    "cycle/usecond": 1e6, "cycle/nsecond": 1e9, "sector/usecond": 1e6, "sector/nsecond": 1e9, "block/nsecond": 1e9,
}  # fmt: skip
"""Written by hand for these files: unit -> its size in base units."""


def text_of(corpus: Path, report: str, page: str, mode: str) -> bytes:
    """Unpack one file of NVIDIA's output."""
    return gzip.decompress((corpus / "cli" / f"{report}.{page}.{mode}.csv.gz").read_bytes())


def kernels_of(loaded: Loaded, report: str) -> tuple[Kernel, ...]:
    """Return the kernels read from the report itself."""
    return next(kernels for run, kernels in loaded.reports if Path(run.source).name == f"{report}.ncu-rep")


def actions_of(corpus: Path, report: str) -> Iterator[Any]:
    """Yield a report's results as NVIDIA's own module reads them."""
    import ncu_report  # noqa: PLC0415 - a native library: only where there is a corpus

    context = ncu_report.load_report(str(corpus / f"{report}.ncu-rep"))
    for number in range(context.num_ranges()):
        profiled = context.range_by_idx(number)
        for index in range(profiled.num_actions()):
            yield profiled.action_by_idx(index)


def scale_of(unit: str) -> float:
    """Return the size of a unit in base units, from the table above."""
    upper, slash, lower = unit.partition("/")
    return SCALES.get(unit) or SCALES.get(upper, 1.0) / (SCALES.get(lower, 1.0) if slash and lower != "second" else 1.0)


def rounding_of(text: str, unit: str, most_digits: int) -> float:
    """Return half of the last printed digit in base units; a whole number was printed without its zeros."""
    digits = len(text.partition(".")[2]) or most_digits
    return 0.5 * 10.0**-digits * scale_of(unit) * (1 + 1e-6)


def printed(data: bytes) -> list[list[tuple[str, str, str]]]:
    """Split an export into (label or metric, unit, text) by launch, using only the csv module."""
    rows = list(csv.reader(data.decode().splitlines()))
    header = rows[0]
    if "Metric Name" in header:
        places = [header.index(name) for name in ("ID", "Metric Name", "Metric Unit", "Metric Value")]
        launches: dict[str, list[tuple[str, str, str]]] = {}
        for row in rows[1:]:
            number, label, unit, text = (row[place] for place in places)
            if label:
                launches.setdefault(number, []).append((label, unit, text))
        return list(launches.values())
    first = header.index("CC") + 1
    return [list(zip(header[first:], rows[1][first:], row[first:], strict=True)) for row in rows[2:]]


@for_all("report", REPORTS)
def test_every_printed_value_is_that_of_the_report(corpus: Path, report: str) -> None:
    """Labels map to the right metrics, and values differ at most by rounding."""
    exports = {(page, mode): text_of(corpus, report, page, mode) for page in PRINTED_DIGITS for mode in MODES}
    read = {name: list(read_export(data)) for name, data in exports.items()}
    shown = {name: printed(data) for name, data in exports.items()}
    compared = 0
    for index, action in enumerate(actions_of(corpus, report)):
        for (page, mode), launches in shown.items():
            kernel = read[page, mode][index]
            assert kernel.function_name == action.name()
            digits = PRINTED_DIGITS[page] if mode == "auto" else 2
            compared += _compare(action, kernel, launches[index], digits)
    assert all(len(kernels) == index + 1 for kernels in read.values())
    assert compared > 100


def _compare(action: Any, kernel: ExportedKernel, shown: list[tuple[str, str, str]], digits: int) -> int:
    compared = 0
    for label, unit, text in shown:
        metric = metric_of(label, unit) or label
        if metric not in kernel.numbers or not re.fullmatch(r"-?[\d.]+", text):
            continue
        value = float(action.metric_by_name(metric).as_double())
        assert abs(kernel.numbers[metric] - value) <= rounding_of(text, unit, digits), (metric, text, unit)
        compared += 1
    return compared


def _counted_waves(kernel: Kernel) -> dict[str, str]:
    """Return the source of waves that ncu prints as 0.00, and that are counted from grid and occupancy instead."""
    source = kernel.counter_sources.get("waves", "")
    is_counted = source.startswith("launch__grid_size") and kernel.counters["waves"] < 0.005
    return {"waves": "launch__waves_per_multiprocessor"} if is_counted else {}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("report", REPORTS)
def test_the_raw_page_leads_to_the_same_kernels_and_verdicts(
    corpus: Path, loaded: Loaded, report: str, mode: str
) -> None:
    """Identity and the counters present are the report's, base units to the digit, and verdicts are equal."""
    data = text_of(corpus, report, "raw", mode)
    assert is_export(data)
    found = read_bytes(data, "raw.csv")
    kernels = kernels_of(loaded, report)
    is_coarse = (report, mode) == (
        "self-join-MiSTIC__profile",
        "auto",
    )  # one launch took a second, so all times are in seconds
    assert found.notes == (
        ("times of 129 launches have fewer than 3 digits: `--print-units base` prints all",) * is_coarse
    )
    assert len(found.kernels) == len(kernels) == found.run.kernel_count
    for ours, theirs in zip(found.kernels, kernels, strict=True):
        assert identity(ours) == identity(theirs)
        assert ours.gpu == theirs.gpu
        assert ours.counters.keys() == theirs.counters.keys()
        assert ours.counter_sources | _counted_waves(ours) == theirs.counter_sources
        assert verdict_of(ours) == verdict_of(theirs)
        if mode == "base":
            stored = {
                name for name, source in theirs.counter_sources.items()
                if re.fullmatch(r"[\w.]+\.sum(?: \+ [\w.]+\.sum)*|launch__[a-z_]+(?<!multiprocessor)", source)
            }  # fmt: skip
            assert {n: ours.counters[n] for n in stored} == {n: theirs.counters[n] for n in stored}
            assert "duration_ns" in stored


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("report", REPORTS)
def test_the_details_page_leads_to_the_same_kernels(corpus: Path, loaded: Loaded, report: str, mode: str) -> None:
    """Identity, status and NVIDIA's bottleneck are the report's, and the GPU is the given one."""
    kernels = kernels_of(loaded, report)
    found = read_bytes(text_of(corpus, report, "details", mode), "details.csv", ReadOptions(gpu=kernels[0].gpu))
    assert found.notes == ()
    for ours, theirs in zip(found.kernels, kernels, strict=True):
        assert identity(ours) == identity(theirs)
        assert ours.gpu == theirs.gpu
        assert ours.counters.keys() <= theirs.counters.keys()
        assert read_nvidia(ours.rules) == read_nvidia(theirs.rules)


@for_all("report", REPORTS)
def test_rounding_moves_no_verdict(corpus: Path, report: str) -> None:
    """A details page gives the verdict of the same unrounded counters of the report."""
    data = text_of(corpus, report, "details", "auto")
    read = read_bytes(data, "details.csv", ReadOptions(gpu="Some GPU")).kernels
    for ours, export, action in zip(
        read, read_export(data, "Some GPU", is_wanted), actions_of(corpus, report), strict=True
    ):
        assert verdict_of(ours) == verdict_of(unrounded(action, export))


def identity(kernel: Kernel) -> tuple[object, ...]:
    """Return what identifies a kernel's launch."""
    return (
        kernel.index, kernel.name, kernel.function_name, kernel.status, kernel.workload, kernel.compute_capability,
        kernel.device, kernel.process, kernel.nvtx_range, kernel.grid, kernel.block,
    )  # fmt: skip


def verdict_of(kernel: Kernel) -> tuple[object, ...]:
    """Return the verdict without the numbers in its sentence; reports, with opcode tables, are more certain."""
    verdict = analyze(kernel, default_thresholds()).verdict
    return verdict.bound, verdict.resource, verdict.at_roof


def unrounded(action: Any, export: ExportedKernel) -> Kernel:
    """Make a kernel from the report's values of an export's metrics, as far as there are any."""
    stored = {name: action.metric_by_name(name) for name in export.numbers}
    numbers = {
        name: export.numbers[name] if metric is None else float(metric.as_double()) for name, metric in stored.items()
    }
    raw = RawResult(
        export.index,
        export.function_name,
        export.signature,
        "kernel",
        numbers,
        export.texts,
        {},
        0,
        tuple(export.rules),
    )
    return to_kernel(raw, "digest", "source", synthetic=False)
