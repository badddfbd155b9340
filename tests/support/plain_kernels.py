"""Kernels that store only numbers and texts of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.ncu_rep_writer import Instances, KernelSpec, NvtxRange, RuleText

DURATION = "gpu__time_duration.sum"
PLAIN: Mapping[str, Any] = {
    "device__attribute_compute_capability_major": 9,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_display_name": "NVIDIA H100",
    "device__attribute_multiprocessor_count": 132,
    "launch__grid_dim_x": 7,
    "launch__grid_dim_y": 2,
    "launch__grid_dim_z": 1,
    "launch__block_dim_x": 128,
    "launch__block_dim_y": 1,
    "launch__block_dim_z": 1,
    "launch__device_id": 0,
    DURATION: 1500.0,
    "sm__cycles_elapsed.avg.per_second": 1.5e9,
    "dram__cycles_elapsed.avg.per_second": 2.6e9,
    "dram__bytes_read.sum": 1e6,
    "dram__bytes_write.sum": 2e6,
    "dram__bytes.sum.peak_sustained": 1024.0,
    "sm__ops_path_tensor_src_fp16_dst_fp32.sum": 4096.0,
    "sm__ops_path_tensor_src_fp16_dst_fp32.sum.peak_sustained": 1024.0,
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 1.5,
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": 0.5,
    "profiler__unknown_text": "some text",
    "profiler__long_text": "a text of more bytes than those that are looked up whole, which it is to be",
    "profiler__without_value": None,
    "profiler__own_and_instances": Instances({"a": 1.0, "b": 2.0}, 3.0),
    "profiler__only_instances": Instances({"a": 1.0, "b": 2.0}),
    "profiler__count": 1 << 20,
    "profiler__large_count": (1 << 64) - 1,
}


def plain_kernel(number: int, name: str = "kernel", **changed: Any) -> KernelSpec:
    """Describe a kernel whose numbers are its own; a value of `...` takes a metric away."""
    own = {DURATION: 1500.0 + number, "dram__bytes_read.sum": 1e6 * number, "profiler__count": 1 << number % 50}
    own |= {"launch__grid_dim_x": 1 + number * 37, "profiler__unknown_text": f"text {number % 3}"}
    own["profiler__own_and_instances"] = Instances({"a": 1.0, "b": float(number)}, float(number % 5))
    metrics = {name: value for name, value in ({**PLAIN, **own} | changed).items() if value is not ...}
    return KernelSpec(
        f"void {name}_{number % 5}<int>(float *)",
        metrics,
        rules=[RuleText("Rule", "Section", "Title", f"Text {number % 4}.")],
        ranges=[NvtxRange(f"step {number % 2}")],
        thread_id=1 + number % 200,
    )
