"""Counters as JSON, as scripts and agents write them."""

from __future__ import annotations

import json

import pytest
from support.loops import for_all

from rooflens.errors import InputError
from rooflens.ingest.exports.read import is_printed
from rooflens.ingest.reports.read import ReadOptions, read_bytes

COUNTERS = {
    "dram__bytes_read.sum": 6e8,
    "dram__bytes_write.sum": 4e8,
    "dram__bytes.sum.per_second": 1e12,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "12.5",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": {"value": 25.0, "unit": "%"},
}


@for_all(
    "written",
    [
        {"void ns::gemm<float>(int)": COUNTERS},
        {"metrics": {"void ns::gemm<float>(int)": COUNTERS}, "metadata": {"gpu": "H100"}},
        {"void ns::gemm<float>(int)": {"metrics": COUNTERS}},
        [{"kernel": "void ns::gemm<float>(int)", "metrics": COUNTERS}],
    ],
)
def test_counters_by_kernel_open_at_any_depth(written: object) -> None:
    """The time follows from bytes and their rate, and loads that use a quarter of their sectors are reported."""
    data = json.dumps(written).encode()
    assert is_printed(data)
    (kernel,) = read_bytes(data, "counters.json", ReadOptions(gpu="h100-sxm")).kernels
    assert (kernel.function_name, kernel.duration_ns) == ("gemm", pytest.approx(1e6))
    assert kernel.counters["global_load_bytes_per_sector"] == 8.0
    assert kernel.counters["sol_compute"] == 0.125


@for_all("data", [b'{"a": 1}', b'{"traceEvents": [], "dram__bytes.sum": 1}', b"[]", b'{"a__b": ', b'"dram__bytes": 1'])
def test_other_json_is_not_counters(data: bytes) -> None:
    """Timelines, our own JSON and files without a metric are left to their readers."""
    assert not is_printed(data)


@for_all("data", [b'{"k": {"dram__bytes.sum": 1', b'{"k": ' + b"[" * 20_000 + b'{"dram__bytes.sum": 1}'])
def test_broken_json_is_refused_with_what_to_write(data: bytes) -> None:
    """Unreadable JSON gives one error and a hint; nesting costs no more than its refusal."""
    with pytest.raises(InputError, match="not complete JSON"):
        read_bytes(data, "counters.json", ReadOptions(gpu="h100-sxm"))
