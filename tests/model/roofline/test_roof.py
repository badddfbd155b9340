"""The roof of a unit: the report's peak, a rate over its per cent, or what is published, in that order."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from support.kernels import make_kernel
from support.loops import for_all

import rooflens
from rooflens.format import GUESSED
from rooflens.model.records import LEVELS
from rooflens.model.roofline.levels import place_levels
from rooflens.model.roofline.roof import at_top_clock, dram_clock_part, roof

A100 = {"gpu": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0"}
MODEL = Path(rooflens.__file__).parent / "model"


def found(unit: str, counters: dict[str, float] | None = None, **fields: Any) -> tuple[float, str, str] | None:
    """Return value, source and clock of a roof, of a kernel of 1 ms; None without one."""
    one = roof(unit, make_kernel(counters, **fields))
    return None if one is None else (pytest.approx(one.value), one.source, one.clock)


ORDER: list[dict[str, float]] = [
    {"dram_bus_peak_bytes_per_s": 1.5e12},
    {"dram_pins_peak_bytes_per_s": 1.4e12},
    {"dram_bytes": 6.5e8, "dram_bus_share": 0.5},
    {"device_dram_peak_bytes_per_s": 1.2e12},
]
"""Counters of a kernel of 1 ms that give DRAM's roof, the most trusted first."""
SAID = [
    (1.5e12, "report", "profiled"),
    (1.4e12, "report", "profiled"),
    (1.3e12, "rate", "profiled"),
    (1.2e12, "report", "rated"),
    (1.555e12, "datasheet", "rated"),
]


@for_all("first", range(len(SAID)))
def test_the_most_trusted_peak_is_taken(first: int) -> None:
    """The report's peak goes before the pins at its clock, the rate over its per cent, the top clock, the datasheet."""
    counters = {name: value for each in ORDER[first:] for name, value in each.items()}
    assert found("dram", counters, **A100) == SAID[first]


def test_a_clock_below_the_published_one_is_seen_without_the_driver() -> None:
    """A print has a rate and its per cent: 1.3 of 1.555 TB/s; within a tenth the datasheet is taken as rounded."""
    low = make_kernel({"dram_bytes": 6.5e8, "dram_bus_share": 0.5}, **A100)
    top = at_top_clock(low)
    assert top is not None
    assert (top.value, top.source, dram_clock_part(low)) == (1.555e12, "datasheet", pytest.approx(1.3 / 1.555))
    assert dram_clock_part(make_kernel({"dram_bytes": 7.5e8, "dram_bus_share": 0.5}, **A100)) == 1
    assert dram_clock_part(make_kernel({"dram_bytes": 6.5e8, "dram_bus_share": 0.5})) == 1


def test_of_several_chips_the_slowest_that_can_move_so_much_has_the_top_clock() -> None:
    """At 84 SMs of CC 8.6 DRAM moves 530 GB/s at this clock: an A40's 696 at its own, and no chip is below that."""
    one_of = {"gpu": None, "compute_capability": "8.6"}
    low = make_kernel({"dram_bytes": 2.65e8, "dram_bus_share": 0.5, "sm_count": 84.0}, **one_of)
    assert dram_clock_part(low) == pytest.approx(530 / 696)
    assert dram_clock_part(make_kernel({"dram_bytes": 3.45e8, "dram_bus_share": 0.5, "sm_count": 84.0}, **one_of)) == 1
    assert dram_clock_part(make_kernel({"dram_bytes": 2.65e8, "dram_bus_share": 0.5}, **one_of)) == 1


def test_a_peak_that_the_resolver_made_of_a_rate_says_so() -> None:
    """A resolved peak names its formula; one with a per cent in it is a rate over its per cent."""
    of = "lts__t_sectors.sum.per_second / lts__t_sectors.avg.pct_of_peak_sustained_elapsed"
    peak = {"l2_tag_peak_bytes_per_s": 4e12}
    assert found("l2", peak, counter_sources=dict.fromkeys(peak, of)) == (4e12, "rate", "profiled")


@for_all(
    "counters, fields",
    [
        ({"dram_bytes": 6.5e8, "dram_bus_share": 0.004}, {}),
        ({"dram_bytes": 0.0, "dram_bus_share": 0.0}, {}),
        ({"duration_ns": None, "dram_bytes": 6.5e8, "dram_bus_share": 0.5}, {}),
        (
            {"dram_bytes": 6.5e8, "dram_bus_share": 0.5},
            {
                "compute_capability": "10.0",
                "gpu": "NVIDIA Unheard",
                "counter_sources": {"dram_bus_share": "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
            },
        ),
    ],
)
def test_a_per_cent_that_tells_no_peak_gives_none(counters: dict[str, float], fields: dict[str, Any]) -> None:
    """Too small a per cent, no bytes, no time, and the per cent of B200's controllers: none is that of the bus."""
    assert found("dram", counters, **fields) is None


def test_the_per_cent_of_the_bus_itself_tells_on_b200_too() -> None:
    """DRAM's own bytes in per cent of their peak are those of the bus on every chip."""
    sources = {"dram_bus_share": "dram__bytes.sum.pct_of_peak_sustained_elapsed"}
    counters = {"dram_bytes": 4e9, "dram_bus_share": 0.5}
    assert found("dram", counters, compute_capability="10.0", counter_sources=sources) == (8e12, "rate", "profiled")


def test_a_guessed_gpu_is_named_as_one() -> None:
    """A roof by the datasheet of a GPU that was guessed says whose it is, and that it is a guess."""
    kernel = make_kernel(gpu=A100["gpu"] + GUESSED)
    one = roof("dram", kernel)
    assert one is not None
    assert (one.source, one.is_measured) == ("datasheet", False)
    assert one.of == f"datasheet of {A100['gpu']}{GUESSED}"


def test_chips_without_dram_have_no_roof_of_it() -> None:
    """What an Orin's memory moves is shared with its CPU: its datasheet gives no slope."""
    assert found("dram", gpu="Orin", compute_capability="8.7") is None


@pytest.mark.parametrize(("clock_hz", "clock"), [(1e9, "profiled"), (None, "rated")])
def test_published_roofs_of_sms_hold_at_the_known_clock(clock_hz: float | None, clock: str) -> None:
    """108 SMs of an A100 at 1 GHz, or at their 1.41 GHz: 128 bytes, 4 instructions and 128 fp32 operations a cycle."""
    counters = {} if clock_hz is None else {"sm_clock_hz": clock_hz}
    cycles = 108 * (clock_hz or 1.41e9)
    per_cycle = {"l1": 128, "smem": 128, "issue": 4, "fp32": 128, "tensor_bf16": 2048}
    for unit, each in per_cycle.items():
        value, source, at = found(unit, counters, **A100) or (0.0, "", "")
        assert cycles * each == pytest.approx(value.expected, rel=1e-2), unit
        assert (source, at) == ("datasheet", clock), unit


def test_warp_wide_instructions_have_a_lower_roof_on_hopper() -> None:
    """Two thirds of the 4,096 bf16 operations a cycle and SM: of the report's peak, and of the published one."""
    hopper = {"gpu": "NVIDIA H200", "compute_capability": "9.0"}
    for fields in ({"tensor_peaks_per_s": {"src_bf16_dst_fp32_sparsity_off": 9e14}}, {}):
        whole, mma = (roof(unit, make_kernel(**hopper, **fields)) for unit in ("tensor_bf16", "tensor_bf16_mma"))
        assert whole is not None
        assert mma is not None
        assert mma.value == pytest.approx(whole.value * 2 / 3)
        assert mma.source == whole.source == ("report" if fields else "datasheet")


def test_sparse_work_has_twice_the_dense_roof() -> None:
    """Structured sparsity doubles the rate of a type; integers are operations."""
    dense, sparse, whole = (
        roof(unit, make_kernel(**A100)) for unit in ("tensor_bf16", "tensor_bf16_sparse", "tensor_int8")
    )
    assert dense is not None
    assert sparse is not None
    assert whole is not None
    assert (sparse.value, sparse.unit, whole.unit) == (2 * dense.value, "FLOP", "op")


def test_dram_at_its_top_clock_is_the_driver_s() -> None:
    """The peak at the device's own clock comes from the driver, else it is that of the run."""
    counters = {"dram_bus_peak_bytes_per_s": 1.3e12}
    own, top = (
        at_top_clock(make_kernel(counters)),
        at_top_clock(make_kernel({**counters, "device_dram_peak_bytes_per_s": 1.5e12})),
    )
    assert own is not None
    assert top is not None
    assert (own.value, own.clock, top.value, top.clock) == (1.3e12, "profiled", 1.5e12, "rated")


@pytest.mark.parametrize("unit", ["texture", "fma", "tensor_pipe", "tensor_fp3x", "l1_bank_reads", ""])
def test_what_has_no_peak_has_no_roof(unit: str) -> None:
    """Units of which only a share is counted, and names that are no unit, give nothing."""
    assert found(unit, {"sm_clock_hz": 1e9}, **A100) is None


def test_levels_take_their_roof_from_here() -> None:
    """The roof of a placed level is that of the function, for each level, with and without counters."""
    for counters in ({}, *ORDER):
        kernel = make_kernel(counters, **A100)
        assert {name: level.roof for name, level in place_levels(kernel).items()} == {
            name: roof(name, kernel) for name in LEVELS
        }


_PUBLISHED = frozenset({"dram_bandwidth", "l2_bandwidth", "peak_at", "peaks"})
"""Fields of a datasheet that hold peaks."""
_MAY = {
    ("roofline/roof.py", "dram_bandwidth"),
    ("roofline/roof.py", "l2_bandwidth"),
    ("roofline/roof.py", "peak_at"),
    ("roofline/flops.py", "peaks"),  # whether a chip has tensor cores
}


def test_nothing_else_looks_for_a_peak() -> None:
    """No rule of the model reads a peak counter or a published peak by itself: all ask `roof`."""
    looks = set()
    for room in ("roofline", "verdict", "findings"):
        for path in sorted((MODEL / room).glob("*.py")):
            where = f"{room}/{path.name}"
            if where in {"roofline/datasheets.py", "roofline/units.py"}:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr in _PUBLISHED:
                    looks.add((where, node.attr))
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                if "_peak_" in text and text.isidentifier() and where != "roofline/roof.py":
                    looks.add((where, text))
    assert looks == _MAY


def test_a_nameless_gpu_has_the_dram_of_its_chip() -> None:
    """B300 and GB300 move 7.67 and 8.00 TB/s: 16.9 MB in 68.5 us, 247 GB/s, are at least 3.1 % of either."""
    kernel = make_kernel({"dram_bytes": 16.9e6, "duration_ns": 68.5e3}, compute_capability="10.3")
    found = roof("dram", kernel)
    assert found is not None
    assert (found.value, found.source, found.clock) == (8e12, "datasheet", "rated")
    assert "7.67" in found.of
    assert "CC 10.3" in found.of
    assert place_levels(kernel)["dram"].share == pytest.approx(16.9e6 / 68.5e-6 / 8e12)


@pytest.mark.parametrize(
    "kernel",
    [
        {"compute_capability": "9.0"},  # 2.0 TB/s on an H100 PCIe, 4.9 on a GH200
        {"compute_capability": "10.3", "gpu": "NVIDIA Unheard"},
        {"compute_capability": None},
    ],
)
def test_boards_that_differ_or_are_not_known_give_no_roof(kernel: dict[str, str | None]) -> None:
    """Nothing is taken from a datasheet of another board."""
    assert roof("dram", make_kernel({"dram_bytes": 1e6}, **kernel)) is None
