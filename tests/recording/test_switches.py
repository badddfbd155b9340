from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace
from switches import compare
from truth import Measured

from rooflens.model.records import Kernel

KERNEL = Kernel("", "", 0, "saxpy", "saxpy", "ok", grid=(1, 1, 1), block=(32, 1, 1), counters={"passes": 6.0})
NUMBERS = {
    "gpu__time_duration.sum": 1000.0,
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 64.0,
    "dram__bytes.sum": 0.0,
    "profiler__replayer_passes": 6.0,
    "device__attribute_clock_rate": 1.0,
}
COUNTS = {"sass__inst_executed_per_opcode_with_modifier_all/FFMA": 2.0}
PLAIN = Measured(KERNEL, NUMBERS, COUNTS)


def test_a_harmless_switch_changes_times_only() -> None:
    """Data about the machine and the run are ignored, and the largest difference is named."""
    faster = dataclasses.replace(
        PLAIN, kernel=replace(KERNEL, counters={"passes": 5.0}), numbers={**NUMBERS, "gpu__time_duration.sum": 990.0}
    )
    found = compare([PLAIN], [faster])
    assert (found.compared, found.equal, found.missing, found.changed_counts) == (4, 3, (), ())
    assert found.largest == ("gpu__time_duration.sum", pytest.approx(0.01))
    assert found.passes == (6.0, 5.0)


def test_a_switch_that_costs_counters_or_counts_is_told() -> None:
    """Missing numbers and differing counts are named, in opcode tables too."""
    less = {name: value for name, value in NUMBERS.items() if name != "dram__bytes.sum"}
    found = compare([PLAIN, PLAIN], [PLAIN, Measured(KERNEL, less, dict.fromkeys(COUNTS, 3.0))])
    assert found.missing == ("dram__bytes.sum",)
    assert found.changed_counts == tuple(COUNTS)
    assert found.largest == (*COUNTS, pytest.approx(1 / 3))
    assert (found.compared, found.equal) == (7, 6)


def test_equal_runs_differ_nowhere() -> None:
    """Equal runs have no largest difference."""
    assert compare([PLAIN], [PLAIN]).largest is None


def test_other_kernels_cannot_be_compared() -> None:
    """Two reports with different launches say nothing about a switch."""
    with pytest.raises(ValueError, match="same kernels"):
        compare([PLAIN], [dataclasses.replace(PLAIN, kernel=replace(KERNEL, grid=(2, 1, 1)))])
    with pytest.raises(ValueError, match="same kernels"):
        compare([PLAIN], [])
