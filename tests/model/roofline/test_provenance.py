from __future__ import annotations

from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis
from rooflens.model.roofline.provenance import Sources, level_sources, pipe_sources


def analysis_of(counters: dict[str, float], **overrides: object) -> Analysis:
    """Analyze a kernel whose counters come from metrics with their own, capitalized, names."""
    sources = {name: name.upper() for name in counters}
    return analyze(make_kernel(counters, counter_sources=sources, **overrides))


def test_a_share_of_amount_over_peak_needs_no_source_of_its_own() -> None:
    """DRAM's share is its bytes over its peak, so two sources are enough."""
    analysis = analysis_of({"dram_bytes": 1e9, "dram_bus_peak_bytes_per_s": 2e12})
    assert level_sources(analysis, "dram") == Sources("DRAM_BYTES", "DRAM_BUS_PEAK_BYTES_PER_S")


def test_the_busiest_stage_is_named() -> None:
    """A share that is a stored per cent, or another stage's bytes, says so."""
    counters = {"l2_bytes": 1e6, "l2_tag_peak_bytes_per_s": 4e12, "l2_data_share": 0.5}
    assert level_sources(analysis_of(counters), "l2").share == "L2_DATA_SHARE"
    counters = {"l1_tag_bytes": 1e6, "l1_data_bytes": 2e9, "l1_data_peak_bytes_per_s": 4e12}
    assert level_sources(analysis_of(counters), "l1").share == "L1_DATA_BYTES / (L1_DATA_PEAK_BYTES_PER_S x t)"


def test_what_was_not_measured_has_no_source() -> None:
    """A level without counters has no sources."""
    assert level_sources(analysis_of({}), "smem") == Sources()


def test_sources_of_counted_flops() -> None:
    """SASS counters name the fma counter and its peak; opcode tables name the table."""
    counted = {"ffma_threads": 1e6, "fadd_threads": 0.0, "fmul_threads": 0.0, "ffma_peak_threads_per_s": 1e12}
    found = pipe_sources(analysis_of(counted), "fp32")
    assert found == Sources("FFMA_THREADS, with its add and mul", "FFMA_PEAK_THREADS_PER_S")
    table = pipe_sources(analysis_of({}, thread_opcodes={"FFMA": 1000}), "fp32")
    assert "opcode table" in (table.amount or "")
    assert table.peak is None


def test_published_peaks_are_told_from_the_reports_own() -> None:
    """A published peak, used if the report lacks it, is called that."""
    analysis = analysis_of(
        {"sm_clock_hz": 1.41e9}, thread_opcodes={"FFMA": 1000}, gpu="NVIDIA A100-SXM4-40GB", compute_capability="8.0"
    )
    peak = pipe_sources(analysis, "fp32").peak
    assert peak == "datasheet of NVIDIA A100-SXM4-40GB, scaled to the profiled clock"


def test_sources_of_other_pipes() -> None:
    """The largest stored per cent is the share's source; without it, amount over peak is."""
    busy = pipe_sources(analysis_of({"alu_inst_share": 0.2, "alu_busy_share": 0.4}), "alu")
    assert busy == Sources(None, None, "ALU_BUSY_SHARE")
    counted = pipe_sources(analysis_of({"xu_inst_share": 0.1, "xu_inst": 1e6, "xu_peak_inst_per_s": 1e9}), "xu")
    assert counted == Sources("XU_INST", "XU_PEAK_INST_PER_S")
