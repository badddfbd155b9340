"""Simulate what ncu stores for one metric tier: exactly its names, with values that fit together."""

from __future__ import annotations

from support.ncu_rep_writer import Instances, MetricValue

from rooflens.collect.tiers import metrics_for
from rooflens.model.counters.chips import CHIPS, FAMILIES, TCGEN05, TU10X, TU11X, VOLTA

SHARE = 0.3
"""Every other counter reaches this part of its peak."""
_TENSOR_SHARE = 0.1
"""Less for tensor counters, whose stored peak may be that of sparse operands, twice the dense one."""
DURATION_NS = 1_000_000.0
_SM_COUNT = 100
_PEAKS = {
    "smsp__issue_active": 4.0 * _SM_COUNT,
    "l1tex__t_bytes": 128.0 * _SM_COUNT,
    "l1tex__data_pipe_lsu_wavefronts": 1.0 * _SM_COUNT,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared": 1.0 * _SM_COUNT,
    "l1tex__lsu_writeback_active": 1.0 * _SM_COUNT,
    "l1tex__lsu_writeback_active_mem_lg": 1.0 * _SM_COUNT,
    "l1tex__lsu_writeback_active_mem_lgds": 1.0 * _SM_COUNT,
}
"""Units a cycle where the model knows the peak of an SM itself; elsewhere any will do."""
_ANY_PEAK = 1024.0
_CLOCKS_HZ = {"sm": 1.5e9, "smsp": 1.5e9, "l1tex": 1.5e9, "lts": 1.6e9, "dram": 3e9}

_STALLS = {"long_scoreboard": 200, "wait": 100, "barrier": 100, "selected": 100}
_OPCODES = {"FFMA": 1e7, "DADD": 1e6, "HADD2": 1e6, "MUFU.EX2": 2e6, "LDG.E.128": 4e6}
_TENSOR_OPCODES = {
    VOLTA: {"HMMA.884.F32.F32.STEP0": 1e5},
    TU10X: {"HMMA.1688.F32": 1e5},
    TU11X: {},
    TCGEN05: {"UTCHMMA": 1e4},
    frozenset(CHIPS): {"HMMA.16816.F32.BF16": 1e5},
}
"""Chips -> their matrix instruction; the first that fits counts. TU11X has no tensor cores."""

_FIXED: dict[str, MetricValue] = {
    "gpu__time_duration.sum": DURATION_NS,
    "sm__cycles_elapsed.max": _CLOCKS_HZ["sm"] * DURATION_NS / 1e9,
    "sm__cycles_active.avg": 0.9 * _CLOCKS_HZ["sm"] * DURATION_NS / 1e9,
    "sm__cycles_active.max": 0.99 * _CLOCKS_HZ["sm"] * DURATION_NS / 1e9,
    "sm__maximum_warps_per_active_cycle_pct": 75.0,
    "smsp__pcsamp_sample_count": sum(_STALLS.values()),
    "launch__waves_per_multiprocessor": 2.5,
}

_LOAD, _STORE = 0x100, 0x110
_BY_ADDRESS: dict[str, dict[str | int, float]] = {
    "inst_executed": {_LOAD: 1e6, _STORE: 5e5},
    "thread_inst_executed_true": {_LOAD: 3.2e7, _STORE: 1.6e7},
    "memory_access_type": {_LOAD: 2, _STORE: 4},
    "memory_type": {_LOAD: 1, _STORE: 1},
    "memory_l2_theoretical_sectors_global": {_LOAD: 4e6, _STORE: 2e6},
    "memory_l2_theoretical_sectors_global_ideal": {_LOAD: 4e6, _STORE: 2e6},
    "memory_l2_theoretical_sectors_local": {_LOAD: 1e3},
    "memory_l1_wavefronts_shared": {_LOAD: 1e6},
    "memory_l1_wavefronts_shared_ideal": {_LOAD: 1e6},
}
"""What single instructions count: a load and a store."""

_RATIOS = {
    "pct_of_peak_sustained_elapsed": 100 * SHARE,
    "pct_of_peak_sustained_active": 100 * SHARE / 0.9,
    "per_cycle_active": 0.7,
    "pct": 80.0,
    "ratio": 16.0,
}
"""Last part of a name -> value."""


def stored_metrics(chip: str, detail: str) -> dict[str, MetricValue]:
    """Return the contents of a one-kernel report after collecting a tier on a chip."""
    stored = _attributes(chip)
    for metric in metrics_for(chip, detail):
        stored |= _stored(chip, metric.name)
    return stored


def _attributes(chip: str) -> dict[str, MetricValue]:
    """Return what ncu stores without being asked."""
    major, minor = next(known for known, family in FAMILIES if chip in family).split(".")
    return {
        "device__attribute_display_name": f"synthetic {chip}",
        "device__attribute_compute_capability_major": int(major),
        "device__attribute_compute_capability_minor": int(minor),
        "device__attribute_multiprocessor_count": _SM_COUNT,
        "profiler__replayer_passes": 4.0,
    }


def _stored(chip: str, name: str) -> dict[str, MetricValue]:
    if name.startswith("group:"):
        return {f"smsp__pcsamp_warps_issue_stalled_{reason}": count for reason, count in _STALLS.items()}
    if name.startswith("sass__"):
        return {name: _opcode_table(chip, threads=32 if "thread" in name else 1)}
    if name in _BY_ADDRESS:
        return {name: Instances(_BY_ADDRESS[name], sum(_BY_ADDRESS[name].values()))}
    if name.startswith("launch__"):
        return {name: _FIXED.get(name, 64)}
    return {name: _FIXED.get(name, _value(name))}


def _opcode_table(chip: str, threads: int) -> Instances:
    opcodes = _OPCODES | next(opcodes for chips, opcodes in _TENSOR_OPCODES.items() if chip in chips)
    return Instances({opcode: count * threads for opcode, count in opcodes.items()})


def _value(name: str) -> float:
    base, _, form = name.partition(".")
    clock_hz, peak = _CLOCKS_HZ.get(base.partition("__")[0], 0.0), _PEAKS.get(base, _ANY_PEAK)
    match form.rpartition(".")[2]:
        case "per_second":
            return clock_hz
        case "peak_sustained":
            return peak
        case ratio if ratio in _RATIOS:
            return _RATIOS[ratio]
    share = _TENSOR_SHARE if "_ops_path_tensor_" in base else SHARE
    return share * peak * clock_hz * DURATION_NS / 1e9
