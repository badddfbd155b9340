"""Compare our numbers with NVIDIA's own in the published reports."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from oracle_rows import Row

from rooflens.ingest.load import Loaded
from rooflens.ingest.reports.container import inspect
from rooflens.model.records import Analysis, Kernel
from rooflens.model.roofline.datasheets import datasheet_of

ROUNDING_POINTS = 1.0
"""NVIDIA's rule text rounds to whole per cents and truncates some of them: a point is what the text can say."""
SHARE_TOLERANCE = 0.01
"""Amount and per cent come from different replay passes of one kernel: 1 % relative is their usual spread."""


def _manifest(corpus: Path) -> list[dict[str, str]]:
    with (corpus / "manifest.tsv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def _held(row: Row, tolerance: float, at_least: int) -> None:
    """Assert that enough kernels are compared and all are within the tolerance."""
    assert row.tolerance <= tolerance
    assert row.kernel_count >= at_least
    assert row.outside == ()


def test_every_published_kernel_is_read(loaded: Loaded, kernels: list[Kernel]) -> None:
    """All 250 kernels are read, and the one damaged report is the only failure."""
    assert len(kernels) == 250
    assert [Path(source).name for source, _ in loaded.failures] == ["benchmark_flash_attention__window-512.ncu-rep"]


def test_status_follows_the_manifest(corpus: Path, loaded: Loaded) -> None:
    """Each report has the number of failed kernels given in its manifest line."""
    failed = {row["file"]: row["failed_kernels"] for row in _manifest(corpus)}
    for run, kernels in loaded.reports:
        name = run.source.rpartition("/")[2]
        assert str(sum(kernel.status == "failed" for kernel in kernels)) == failed[name], name


def test_provenance_follows_the_manifest(corpus: Path, loaded: Loaded) -> None:
    """GPU and ncu version of every report are those in the manifest."""
    expected = {row["file"]: (row["gpu"], row["cc"], row["ncu"]) for row in _manifest(corpus)}
    for run, kernels in loaded.reports:
        gpu, capability, version = expected[run.source.rpartition("/")[2]]
        assert kernels[0].gpu == gpu
        assert kernels[0].compute_capability == capability
        assert run.ncu_version == (None if version.startswith("not recorded") else version)


def test_fp_per_cents_equal_nvidias_rule_text(rows: dict[str, Row]) -> None:
    """Achieved over peak for fp32 and fp64 is within a point of NVIDIA's rule text, on every kernel."""
    for dtype in ("fp32", "fp64"):
        _held(rows[f"share_{dtype}"], ROUNDING_POINTS, 58)


def test_dram_share_equals_nvidias_per_cent(rows: dict[str, Row]) -> None:
    """Bytes over peak at DRAM equals NVIDIA's DRAM throughput, on every kernel that has both."""
    _held(rows["share_dram"], SHARE_TOLERANCE, 61)


def test_the_peak_of_dram_is_the_datasheet_s(analyses: list[Analysis]) -> None:
    """Memory clock x 2 x bus width / 8 is the published bandwidth within 1 %, for all kinds of memory.

    The profiled peak exceeds it only by a clock's jitter, and is below 0.9 of it only on kernels with a flag.
    """
    checked, kinds, low = 0, set(), 0
    for analysis in analyses:
        gpu, counters = datasheet_of(analysis.kernel.gpu), analysis.kernel.counters
        device = counters.get("device_dram_peak_bytes_per_s")
        if gpu is None or device is None:
            continue
        checked += 1
        kinds.add(gpu.chip)
        assert device == pytest.approx(gpu.dram_bandwidth.value, rel=0.01), analysis.kernel.source
        profiled = counters.get("dram_bus_peak_bytes_per_s", device)
        assert profiled < 1.03 * device, analysis.kernel.source
        assert ("dram_clock_low" in analysis.flags) == (profiled < 0.9 * device)
        low += "dram_clock_low" in analysis.flags
    assert checked >= 200
    assert {"ga100", "gh100", "gv100", "ga102", "gb202", "tu102"} <= kinds
    assert low >= 10


def test_shared_memory_share_equals_nvidias_per_cent(rows: dict[str, Row]) -> None:
    """Wavefronts, at a peak of one per cycle and SM, give NVIDIA's per cent on every kernel that has both."""
    _held(rows["share_smem"], SHARE_TOLERANCE, 54)


def test_three_levels_have_roofs(analyses: list[Analysis]) -> None:
    """At least 58 of the 65 kernels with FP counters (four of which failed) have DRAM, L2 and shared-memory roofs."""
    roofed = [
        analysis
        for analysis in analyses
        if "ffma_threads" in analysis.kernel.counters
        and all(analysis.levels[level].peak_bytes_per_s for level in ("dram", "l2", "smem"))
    ]
    assert len(roofed) >= 58


def test_classes_agree_with_nvidia_without_reading_its_summary(rows: dict[str, Row]) -> None:
    """Without NVIDIA's per cents and rules, every class equals NVIDIA's, except four kernels that say why.

    The attention kernel is full of tensor work for two fifths of its run, as its series shows, unlike its averages. L1
    of a Turing chip is full at half of what NVIDIA's summary counts its data stage against.
    """
    counted = rows["class_fp"]
    assert counted.kernel_count == 61
    assert [pair.report.partition("__")[0] for pair in counted.outside] == ["blackwell-kernels"]
    other = rows["class_other"]
    assert other.kernel_count >= 180
    assert len(other.outside) <= 0.02 * other.kernel_count
    assert [(pair.report, pair.index) for pair in other.outside] == [
        ("cudaCode__profile.ncu-rep", 1),
        ("self-join-MiSTIC__profile.ncu-rep", 12),
        ("self-join-MiSTIC__profile.ncu-rep", 13),
    ]


def test_no_kernel_is_faster_than_its_floor(analyses: list[Analysis]) -> None:
    """Work and traffic at their peaks never take longer than the kernel, nor longer than amount divided by roof."""
    compared = 0
    for analysis in analyses:
        time_ns, level = analysis.kernel.duration_ns, analysis.levels["dram"]
        done = [pipe for pipe in analysis.pipes.values() if pipe.is_arithmetic and pipe.amount]
        shares = [pipe.share for pipe in done if pipe.share is not None]
        if not time_ns or analysis.flop_total is None or level.share is None or len(shares) < len(done):
            continue
        if analysis.kernel.failed or "share_over_one" in analysis.flags or not max(sum(shares), level.share):
            continue
        # Replay passes differ slightly.
        assert 0.98 * max(sum(shares), level.share) <= 1, (analysis.kernel.source, analysis.kernel.index)
        if level.amount_bytes is not None and level.peak_bytes_per_s:
            assert level.share * time_ns == pytest.approx(level.amount_bytes / level.peak_bytes_per_s * 1e9)
        if (
            analysis.flop_total
            and analysis.flop_peak_per_s
            and not any(p.unit == "op" for p in analysis.pipes.values())
        ):
            assert sum(shares) * time_ns == pytest.approx(analysis.flop_total / analysis.flop_peak_per_s * 1e9)
        compared += 1
    assert compared >= 50


def _one(analyses: list[Analysis], source: str, name: str) -> Analysis:
    return next(a for a in analyses if source in a.kernel.source and a.kernel.function_name == name)


def test_flash_attention_on_blackwell(analyses: list[Analysis]) -> None:
    """The RTX 5090 attention kernel: exact tensor work, shared-memory share, flag, and a class other than NVIDIA's."""
    analysis = _one(analyses, "blackwell-kernels__v5_swizzle", "flash_attn_v2_kernel")
    assert analysis.flop["tensor_bf16"] == 8_858_370_048
    assert analysis.levels["smem"].share == pytest.approx(0.182, abs=0.0005)
    assert "dram_writes_stay_in_l2" in analysis.flags
    assert (analysis.verdict.bound, analysis.verdict.cause) == ("compute", "full for a part of its run")
    assert analysis.nvidia.bottleneck == "Latency Issue"


def test_wmma_gemm_on_turing(analyses: list[Analysis]) -> None:
    """The T4 matrix product of 4096 cubed has exactly two operations for each multiply-add."""
    analysis = _one(analyses, "cuda-fused-linear-layer__profile_report_(1)", "wmma_gemm")
    assert analysis.flop["tensor_fp16"] == 137_438_953_472 == 2 * 4096**3


def test_matmul_on_hopper(analyses: list[Analysis]) -> None:
    """The H100 matrix product without tensor cores is limited by L1's data stage and uses 8 % of fp32."""
    analysis = _one(analyses, "KernelBench__matmul_kernel", "matmul_kernel")
    assert (analysis.verdict.bound, analysis.verdict.resource) == ("memory", "l1")
    assert analysis.levels["l1"].stages["data"] == pytest.approx(0.994, abs=0.0005)
    assert analysis.pipes["fp32"].share == pytest.approx(0.08, abs=0.005)


def test_integer_tensor_work_is_no_flop(analyses: list[Analysis]) -> None:
    """The int8 matrix products count as tensor operations and never as FLOPs."""
    products = [analysis for analysis in analyses if "cutlass__384" in analysis.kernel.source]
    assert [analysis.flop["tensor_int8"] for analysis in products] == [8192 * n for n in (221_184, 110_592, 110_592)]
    for analysis in products:
        assert analysis.pipes["tensor_int8"].unit == "op"
        assert analysis.flop_total == sum(analysis.counted_flop[dtype] for dtype in ("fp64", "fp32", "fp16"))


def test_every_container_matches_its_results(corpus: Path, loaded: Loaded) -> None:
    """The number of results in the container equals NVIDIA's reader's, for every report."""
    for run, kernels in loaded.reports:
        assert inspect(corpus / run.source.rpartition("/")[2]).result_count == len(kernels)
