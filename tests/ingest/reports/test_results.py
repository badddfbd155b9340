from __future__ import annotations

from typing import Any

import pytest
from support.loops import for_all

from rooflens.ingest.metrics.code import Code
from rooflens.ingest.metrics.stored import THREAD_TABLES, WARP_TABLE
from rooflens.ingest.reports.results import RawResult, bare_name, is_measured, to_kernel, with_code
from rooflens.model.records import Hotspot, Kernel, Rule, Series

NUMBERS = {"gpu__time_duration.sum": 1e6, "sm__cycles_elapsed.avg.per_second": 1.5e9}
TENSOR = "sm__ops_path_tensor_src_bf16_dst_fp32"
SAMPLED = "smsp__pcsamp_warps_issue_stalled_"
COUNTED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def kernel(numbers: dict[str, float] | None = None, **overrides: Any) -> Kernel:
    """Make a kernel record from one raw result."""
    fields: dict[str, Any] = {
        "index": 3,
        "function_name": "scale",
        "signature": "void scale<float>(float *, int)",
        "workload": "kernel",
        "numbers": NUMBERS | (numbers or {}),
        "texts": {},
        "tables": {},
        "nan_count": 0,
        "rules": (),
    }
    return to_kernel(RawResult(**{**fields, **overrides}), "d" * 64, "given/path.ncu-rep", synthetic=False)


@for_all(
    "signature, expected",
    [
        ("void at::native::relu<float>(float *, int)", "at::native::relu<float>"),
        ("scale(float *)", "scale"),
        ("scale", "scale"),
        ("void k<(int)4, (bool)1>(T1 *, void (*)(int))", "k<(int)4, (bool)1>"),
        ("(anonymous namespace)::k<2>(int)", "(anonymous namespace)::k<2>"),
        ("void (anonymous namespace)::k(int)", "(anonymous namespace)::k"),
        ("Functor::operator()(int)", "Functor::operator()"),
        ("std::enable_if<(bool)1, void>::type ns::k<float, (int)4>(T1 *)", "ns::k<float, (int)4>"),
        ("unsigned int (anonymous namespace)::k<2>(int)", "(anonymous namespace)::k<2>"),
        ("float const *k<f(int, int)>(int)", "k<f(int, int)>"),
        ("a name of several words", "a name of several words"),
        ("void k<at::f(int)::{lambda(float)#1}>(int)", "k<at::f(int)::{lambda(float)#1}>"),
        ("ampere_bf16_s16816gemm_bf16_128x128_tn", "ampere_bf16_s16816gemm_bf16_128x128_tn"),
        ("(int)", "(int)"),
        ("k)", "k)"),
        ("", ""),
    ],
)
def test_names_lose_return_type_and_arguments(signature: str, expected: str) -> None:
    """The parts that distinguish kernels stay: namespace, name and template arguments."""
    assert bare_name(signature) == expected


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "k\x00\u202e", "((((", "\n\t"]
)
def test_hostile_names_pass_through(name: str) -> None:
    """A name is data: it is neither escaped nor shortened nor interpreted here."""
    assert bare_name(name) == name
    record = kernel(function_name=name, signature=name)
    assert (record.name, record.function_name) == (name, name)


def test_identity_and_launch() -> None:
    """Digest, path as given, position, GPU, compute capability and launch sizes are carried over."""
    launch = {
        f"launch__{what}_dim_{axis}": float(size)
        for what, sizes in (("grid", (4, 3, 2)), ("block", (64, 2, 1)))
        for axis, size in zip("xyz", sizes, strict=True)
    }
    capability = {"device__attribute_compute_capability_major": 12.0, "device__attribute_compute_capability_minor": 0.0}
    rule = Rule("SOLBottleneck", "SpeedOfLight", "Small Grid", "text")
    record = kernel(launch | capability, texts={"device__attribute_display_name": "NVIDIA H200"}, rules=(rule,))
    assert (record.digest, record.source, record.index) == ("d" * 64, "given/path.ncu-rep", 3)
    assert (record.name, record.function_name, record.workload) == ("scale<float>", "scale", "kernel")
    assert (record.gpu, record.compute_capability) == ("NVIDIA H200", "12.0")
    assert (record.grid, record.block) == ((4, 3, 2), (64, 2, 1))
    assert record.rules == (rule,)
    assert record.synthetic is False


def test_a_range_has_no_launch() -> None:
    """Ranges and graphs have no launch figures, and a report may lack the GPU: both are None, never 0."""
    record = kernel({"launch__grid_dim_x": 4.0}, workload="range")
    assert (record.workload, record.grid, record.block, record.gpu, record.compute_capability) == (
        "range",
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("numbers", "nan_count", "status"),
    [
        (NUMBERS, 0, "ok"),
        (NUMBERS, 3, "partial"),
        ({}, 0, "partial"),
        ({}, 250, "failed"),
        ({"device__attribute_multiprocessor_count": 132.0}, 250, "failed"),
    ],
)
def test_status(numbers: dict[str, float], nan_count: int, status: str) -> None:
    """A kernel with NaN and no duration has failed; with some NaN, or no duration, it is partial."""
    raw = RawResult(0, "k", "k()", "kernel", numbers, {}, {}, nan_count, ())
    assert to_kernel(raw, "", "", synthetic=True).status == status


@for_all(
    "metric, expected",
    [
        ("gpu__time_duration.sum", True),
        ("dram__bytes_read.sum.per_second", True),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", True),
        ("launch__waves_per_multiprocessor", False),
        ("device__attribute_multiprocessor_count", False),
        ("smsp__pcsamp_sample_count", False),
        ("sm__maximum_warps_per_active_cycle_pct", False),
    ],
)
def test_a_launch_figure_without_value_is_no_failed_profile(metric: str, *, expected: bool) -> None:
    """Only NaN for a measurement means that profiling failed: a report without counters has no measurements."""
    assert is_measured(metric) is expected


@pytest.mark.parametrize("name", THREAD_TABLES)
def test_opcode_tables(name: str) -> None:
    """Thread and warp tables are kept separately and unchanged."""
    record = kernel(tables={name: {"FFMA": 64}, WARP_TABLE: {"HMMA.16816.F32": 2}})
    assert record.thread_opcodes == {"FFMA": 64}
    assert record.warp_opcodes == {"HMMA.16816.F32": 2}


def test_the_thread_table_with_modifiers_goes_first() -> None:
    """Modifiers distinguish conversions from arithmetic; an empty table is ignored."""
    with_modifiers, without = THREAD_TABLES
    tables = {without: {"HADD2": 3}, with_modifiers: {"HADD2.F32": 3}}
    assert kernel(tables=tables).thread_opcodes == {"HADD2.F32": 3}
    assert kernel(tables={**tables, with_modifiers: {}}).thread_opcodes == {"HADD2": 3}
    assert kernel().thread_opcodes == kernel().warp_opcodes == {}


@pytest.mark.parametrize(
    ("form", "stored", "expected"),
    [(".sum", 6e6, 6e6), (".sum.per_second", 6e9, 6e6), (".sum.per_cycle_elapsed", 4.0, 6e6)],
)
def test_tensor_counters_in_each_form(form: str, stored: float, expected: float) -> None:
    """Operations are found by name without prefix and roll-up: 4 per cycle at 1.5 GHz for 1 ms are 6e6."""
    assert kernel({f"{TENSOR}{form}": stored}).tensor_ops == {"src_bf16_dst_fp32": pytest.approx(expected)}


def test_tensor_peaks_need_no_operations() -> None:
    """Every type has a peak, 1,000 per cycle at 1.5 GHz; types without operations have no entry."""
    record = kernel({f"{TENSOR}_sparsity_off.sum.peak_sustained": 1000.0})
    assert record.tensor_peaks_per_s == {"src_bf16_dst_fp32_sparsity_off": 1.5e12}
    assert record.tensor_ops == {}


def test_a_measured_zero_of_a_tensor_counter_is_kept() -> None:
    """An operation count of zero is evidence and is kept."""
    assert kernel({f"{TENSOR}.sum": 0.0}).tensor_ops == {"src_bf16_dst_fp32": 0}


def test_stalls_are_fractions_of_all_samples() -> None:
    """60 + 30 + 10 samples are stalled; `selected` warps issued, so they are not."""
    record = kernel(
        {
            f"{SAMPLED}long_scoreboard": 60.0,
            f"{SAMPLED}barrier": 30.0,
            f"{SAMPLED}not_selected": 10.0,
            f"{SAMPLED}selected": 99.0,
        }
    )
    assert record.stalls == {"long_scoreboard": 0.6, "barrier": 0.3, "not_selected": 0.1}


def test_twins_of_samples_that_did_not_issue_are_left_out() -> None:
    """The `_not_issued` twin counts a part of the same samples, so it is left out."""
    record = kernel({f"{SAMPLED}wait": 50.0, f"{SAMPLED}wait_not_issued": 40.0, f"{SAMPLED}barrier": 50.0})
    assert record.stalls == {"wait": 0.5, "barrier": 0.5}


def test_samples_go_before_counters() -> None:
    """Stalls are taken from samples if there are any, otherwise from counters; the two are never mixed."""
    counted = {COUNTED.format("wait"): 3.0, COUNTED.format("selected"): 1.0, COUNTED.format("barrier"): 1.0}
    assert kernel(counted).stalls == {}  # nothing says whether these are all reasons
    counted["smsp__average_warp_latency_per_inst_issued.ratio"] = 9.0
    assert kernel(counted).stalls == {}  # the others take four of nine cycles
    counted["smsp__average_warp_latency_per_inst_issued.ratio"] = 5.0
    assert kernel(counted).stalls == {"wait": 0.75, "barrier": 0.25}
    assert kernel({**counted, f"{SAMPLED}branch_resolving": 5.0}).stalls == {"branch_resolving": 1}
    assert kernel({**counted, f"{SAMPLED}branch_resolving": 0.0}).stalls == {"wait": 0.75, "barrier": 0.25}


def test_samples_under_their_newer_prefix() -> None:
    """The prefix `warpsampling:` of newer versions is understood."""
    assert kernel({f"warpsampling:{SAMPLED}wait": 2.0}).stalls == {"wait": 1}


@pytest.mark.parametrize("numbers", [{}, {f"{SAMPLED}wait": 0.0}, {f"{SAMPLED}selected": 9.0}])
def test_no_samples_mean_not_measured(numbers: dict[str, float]) -> None:
    """Without a single stalled sample, stalls count as not measured."""
    assert kernel(numbers).stalls == {}


def test_counters_carry_their_sources() -> None:
    """Every resolved counter of the record names the stored metrics that gave it."""
    record = kernel({"dram__bytes_read.sum": 3.0, "dram__bytes_write.sum": 4.0})
    assert record.counters["dram_bytes"] == 7
    assert record.counter_sources["dram_bytes"] == "dram__bytes_read.sum + dram__bytes_write.sum"
    assert record.counters.keys() == record.counter_sources.keys()
    assert record.duration_ns == 1e6


def test_labels_have_an_end() -> None:
    """Labels of a kernel are cut where no real label is longer; its name is kept up to 65,536 characters."""
    long = "w" * 65_000
    found = kernel(
        texts={"device__attribute_display_name": long}, process=long, nvtx_range=long, signature=f"{long}(int)"
    )
    assert (found.gpu, found.process) == (f"{long[:199]}…", f"{long[:199]}…")
    assert found.nvtx_range == f"{long[:999]}…"
    assert found.name == long
    assert kernel(signature="w" * 65_537).name == f"{'w' * 65_535}…"
    assert kernel(texts={"device__attribute_display_name": "NVIDIA H200"}).gpu == "NVIDIA H200"


# What cannot be

LAUNCH = {f"launch__{what}_dim_{axis}": 4.0 for what in ("grid", "block") for axis in "xyz"}
DURATION = "gpu__time_duration.sum"


@for_all(
    "numbers, named",
    [
        ({"sm__cycles_elapsed.avg.per_second": 1e308}, "sm_clock_hz = 1e+308, of `sm__cycles_elapsed.avg.per_second`"),
        ({DURATION: 0.0}, "duration_ns = 0"),
        ({DURATION: -1e6}, "duration_ns = -1e+06"),
        ({"dram__bytes_read.sum": -3.0, "dram__bytes_write.sum": 1.0}, "dram_bytes = -2"),
        ({"launch__grid_dim_y": 1e308}, "launch__grid_dim_y = 1e+308"),
        ({"launch__block_dim_x": 2.0**40}, "launch__block_dim_x"),
        ({"device__attribute_compute_capability_major": 1e300}, "device__attribute_compute_capability_major"),
        ({f"{SAMPLED}wait": -5.0, f"{SAMPLED}barrier": 50.0}, f"{SAMPLED}wait = -5"),
        ({f"{TENSOR}.sum": 1e300}, "operations of src_bf16_dst_fp32"),
        ({f"{TENSOR}.sum.peak_sustained": 1e40}, "peak of src_bf16_dst_fp32"),
    ],
)
def test_an_impossible_value_fails_its_kernel(numbers: dict[str, float], named: str) -> None:
    """One flipped bit can make a clock of 1e308 Hz: none of the kernel's numbers is used, and the reason names it."""
    record = kernel(LAUNCH | numbers)
    assert record.status == "failed"
    assert named in (record.status_reason or "")
    assert "is impossible: " in (record.status_reason or "")
    assert [record.counters, record.stalls, record.tensor_ops, record.tensor_peaks_per_s] == [{}] * 4
    assert record.name == "scale<float>"


@pytest.mark.parametrize("name", [*THREAD_TABLES, WARP_TABLE])
def test_more_instructions_than_a_kernel_executes_fail_it(name: str) -> None:
    """A count over 2^62 in an opcode table is damage, and would not fit into the store."""
    record = kernel(tables={name: {"FFMA": 2**62 + 1}})
    assert (record.status, record.thread_opcodes, record.warp_opcodes) == ("failed", {}, {})
    assert "FFMA = 4.61e+18 is impossible" in (record.status_reason or "")


def test_impossible_samples_and_offsets_fail_their_kernel() -> None:
    """Samples over 10,000 % and code of 2^40 bytes are damage, as impossible counters are."""
    assert kernel(series=Series(1e3, {"dram": (0.5, None, 1e9)})).status == "failed"
    assert kernel(series=Series(1e300, {"dram": (0.5, 0.5)})).status == "failed"
    assert kernel(series=Series(1e3, {"dram": (0.5, None, 1.2)})).status == "ok"
    assert with_code(kernel(), Code((Hotspot("sass", pc=2**50),))).status == "failed"
    assert with_code(kernel(), Code(totals={"warp_inst": 1e30})).status == "failed"


def test_an_impossible_launch_size_is_not_known() -> None:
    """A failed kernel keeps what is plausible: its grid, for example, if only its block is damaged."""
    record = kernel(LAUNCH | {"launch__block_dim_x": 1e308, "device__attribute_compute_capability_minor": -1e300})
    assert (record.grid, record.block, record.compute_capability) == ((4, 4, 4), None, None)


def test_an_impossible_estimate_of_nvidia_is_left_out() -> None:
    """The rule keeps its text: its estimate is not a measurement."""
    record = kernel(rules=(Rule("CPIStall", "s", "t", "m", 1e300, 40.0), Rule("CPIStall", "s", "t", "m", 12.5, -1.0)))
    assert [(rule.speedup_pct, rule.unit_speedup_pct) for rule in record.rules] == [(None, 40.0), (12.5, None)]
    assert record.status == "ok"


def test_a_failed_profile_says_so() -> None:
    """If every measurement is NaN, the reason says that profiling failed."""
    raw = RawResult(0, "k", "k()", "kernel", {}, {}, {}, 9, ())
    assert "every counter is NaN" in (to_kernel(raw, "", "", synthetic=True).status_reason or "")
    assert kernel().status_reason is None
