"""Compare the occupancy curves with ncu's own tables, which have an entry for every register count and block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ncu_report
import pytest

from rooflens.ingest.load import Loaded
from rooflens.model.records import Kernel
from rooflens.model.roofline.occupancy import Curve, occupancy_curves

TABLES = {
    "registers": "launch__occupancy_per_register_count",
    "block size": "launch__occupancy_per_block_size",
    "shared memory": "launch__occupancy_per_shared_mem_size",
}
"""Property -> the instanced metric with the warps of an SM by its value."""


@pytest.fixture(scope="module")
def tables(loaded: Loaded) -> list[tuple[Kernel, Curve, dict[int, float]]]:
    """Return each curve with ncu's own table, once for all equal launches."""
    found = {}
    for kernel, action in _actions(loaded):
        for curve in occupancy_curves(kernel):
            if table := _table(action, TABLES[curve.of]):
                found[kernel.source, curve, tuple(table.values())] = (kernel, curve, table)
    return list(found.values())


def _actions(loaded: Loaded) -> Iterator[tuple[Kernel, Any]]:
    for run, kernels in loaded.reports:
        context = ncu_report.load_report(run.source)
        ranges = [context.range_by_idx(index) for index in range(context.num_ranges())]
        actions = [one.action_by_idx(index) for one in ranges for index in range(one.num_actions())]
        yield from zip(kernels, actions, strict=True)


def _table(action: Any, name: str) -> dict[int, float]:
    metric = action.metric_by_name(name)
    if metric is None or not metric.num_instances():
        return {}
    keys = metric.correlation_ids()
    return {int(keys.as_uint64(i)): metric.as_double(i) for i in range(metric.num_instances())}


def _warps(kernel: Kernel, curve: Curve, value: float) -> float:
    share = next((occupancy for up_to, occupancy in curve.steps if value <= up_to), 0.0)
    return share * kernel.counters["sm_warps"]


@pytest.mark.parametrize("of", ["registers", "block size"])
def test_curves_are_ncus_own(tables: list[tuple[Kernel, Curve, dict[int, float]]], of: str) -> None:
    """Every value in all tables of registers and block sizes agrees, on all chips of the corpus."""
    compared = 0
    for kernel, curve, table in tables:
        if curve.of == of:
            values = {value: warps for value, warps in table.items() if value <= curve.steps[-1][0]}
            assert {value: _warps(kernel, curve, value) for value in values} == pytest.approx(values), kernel.source
            compared += len(values)
    assert compared > 40 * (255 if of == "registers" else 64)


def test_shared_memory_is_never_less_than_ncus_own(tables: list[tuple[Kernel, Curve, dict[int, float]]]) -> None:
    """Ncu uses one carveout per entry, and older versions leave out the driver's part, so our values are no smaller."""
    compared = same = 0
    for kernel, curve, table in tables:
        if curve.of == "shared memory":
            driver = kernel.counters.get("smem_driver_bytes", 0.0)
            assert all(warps <= _warps(kernel, curve, value - driver) + 0.01 for value, warps in table.items())
            compared += 1
            same += all(abs(warps - _warps(kernel, curve, value)) < 0.01 for value, warps in table.items())
    assert compared > 40
    assert same >= 3


def test_every_launch_of_a_known_occupancy_has_its_curves(kernels: list[Kernel]) -> None:
    """Each has three curves, all of which go through the occupancy stated by ncu."""
    known = [kernel for kernel in kernels if kernel.counters.get("theoretical_occupancy")]
    assert len(known) > 200
    for kernel in known:
        curves = occupancy_curves(kernel)
        assert [curve.of for curve in curves] == list(TABLES), kernel.source
        assert {round(curve.occupancy - kernel.counters["theoretical_occupancy"], 3) for curve in curves} == {0.0}
