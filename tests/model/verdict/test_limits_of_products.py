"""Limits of products of known size: a limit called proven holds for any traffic, as a product's work is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product as each_of

import pytest
from msgspec import Struct
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.records import Kernel, Outside, Rule
from rooflens.model.roofline.datasheets import Datasheet, the_datasheet

_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
_OPCODES = {
    "tf32": ("HMMA.1688.F32.TF32", 2048),
    "bf16": ("HMMA.16816.F32.BF16", 4096),
    "fp16": ("HMMA.16816.F32", 4096),
}
"""Type -> matrix instruction of a warp and its operations: 2 x 16 x 8 x 8 or 16."""
_SIZES = (
    ("h100-sxm", "fp32", 512, 512, 512),
    ("h100-sxm", "tf32", 512, 512, 512),
    ("h100-sxm", "fp16", 1024, 1024, 1024),
    ("h100-sxm", "bf16", 8192, 8192, 8192),
    ("h100-sxm", "fp32", 2048, 4096, 8192),
    ("h100-sxm", "fp32", 256, 256, 524288),
    ("h100-sxm", "fp32", 32768, 32768, 64),
    ("h100-sxm", "fp32", 8205, 5921, 2949),
    ("h100-sxm", "fp32", 2048, 1, 1048576),
    ("h800", "bf16", 4096, 7168, 2048),
    ("h200", "bf16", 64, 7168, 2048),
    ("a100-sxm4-80gb", "fp32", 4096, 4096, 4096),
    ("a100-sxm4-80gb", "tf32", 4096, 4096, 4096),
    ("a100-sxm4-80gb", "fp16", 16, 4096, 11008),
    ("rtx-3090", "fp32", 4096, 4096, 4096),
    ("rtx-3090", "fp16", 2048, 2048, 2048),
    ("rtx-3070-laptop", "bf16", 6464, 7776, 7232),
    ("rtx-a6000", "fp32", 4096, 4096, 4096),
    ("t4", "fp32", 1024, 1024, 1024),
    ("t4", "fp16", 4096, 4096, 4096),
    ("l4", "bf16", 2048, 8192, 4096),
    ("rtx-4090", "fp32", 16384, 16384, 32),
    ("v100-sxm2", "fp32", 3000, 3000, 3000),
)
"""GPU, type, m, n, k: square, deep, flat, odd, one column, few rows."""
_TRAFFIC = (1, 2, 5, 12, 30)
"""How often the operands and the result cross DRAM."""
_HELD = ("counted", "tensor pipe", "per cents", "shares", "predicted")
"""What a report may hold of the same kernel."""


class _Product(Struct, frozen=True):
    gpu: str
    dtype: str
    m: int
    n: int
    k: int

    @property
    def sheet(self) -> Datasheet:
        return the_datasheet(self.gpu)

    @property
    def ops(self) -> float:
        return 2.0 * self.m * self.n * self.k

    @property
    def needed_bytes(self) -> float:
        return _BYTES[self.dtype] * (self.m * self.k + self.k * self.n + self.m * self.n)

    @property
    def pipe(self) -> str:
        return "fp32" if self.dtype == "fp32" else f"tensor_{self.dtype}"

    @property
    def math_ns(self) -> float:
        return self.ops / self.sheet.peaks[self.pipe].value * 1e9

    @property
    def floor_ns(self) -> float:
        return max(self.math_ns, self.needed_bytes / self.sheet.dram_bandwidth.value * 1e9)


def _kernel(one: _Product, traffic: int, held: str) -> tuple[Kernel, Outside]:
    """Make a report of a product that takes four times its slower side, with this much traffic."""
    moved_bytes, bandwidth = traffic * one.needed_bytes, one.sheet.dram_bandwidth.value
    time_ns = max(4 * one.floor_ns, 1.1 * moved_bytes / bandwidth * 1e9)
    busy = one.math_ns / time_ns
    counters = {"duration_ns": time_ns, "sm_clock_hz": one.sheet.clock_of(one.pipe).value}
    dram = moved_bytes / bandwidth / time_ns * 1e9
    amounts = {"dram_bytes": moved_bytes, "dram_read_bytes": 0.9 * moved_bytes, "dram_write_bytes": 0.1 * moved_bytes}
    stored = {"dram_bus_share": dram} if held == "shares" else {**amounts, "dram_bus_share": dram}
    counters |= {**stored, "l2_share": min(1.0, 2 * dram), "sol_memory": dram}
    opcodes: dict[str, int] = {}
    rules: tuple[Rule, ...] = ()
    if held in {"counted", "predicted"}:
        if one.dtype == "fp32":
            counters |= {"fadd_threads": 0.0, "fmul_threads": 0.0, "ffma_threads": one.ops / 2}
        else:
            opcode, ops = _OPCODES[one.dtype]
            opcodes = {opcode: round(one.ops / ops)}
    elif held == "tensor pipe" and one.dtype != "fp32":
        counters |= {"tensor_active_share": min(1.0, 1.2 * busy), "tensor_busy_share": busy}
    elif held == "per cents" and one.dtype == "fp32":
        words = f"The kernel achieved {100 * busy:.0f}% of this device's fp32 peak performance and 0% of its fp64 peak"
        rules = (Rule("SOLFPRoofline", "", "", f"{words} performance."),)
    made = make_kernel(
        counters,
        gpu=one.sheet.name,
        compute_capability=one.sheet.compute_capability,
        warp_opcodes=opcodes,
        rules=rules,
    )
    return made, Outside(compulsory_bytes=one.needed_bytes if held == "predicted" else None)


def _every() -> Iterator[tuple[_Product, int, str, Kernel, Outside]]:
    for sizes, traffic, held in each_of(_SIZES, _TRAFFIC, _HELD):
        one = _Product(*sizes)
        yield one, traffic, held, *_kernel(one, traffic, held)


def test_no_proven_limit_of_a_product_is_below_the_truth() -> None:
    """In 575 reports no proven limit is below time over the longer of arithmetic and bytes."""
    offenders, proven, held_by = [], Counter[str](), Counter[str]()
    for one, traffic, held, kernel, outside in _every():
        limit = analyze(kernel, outside=outside).verdict.limit
        truth = (kernel.duration_ns or 0.0) / one.floor_ns
        held_by[held] += 1
        if limit.proven and limit.factor is not None:
            proven[held] += 1
            if limit.factor < truth * (1 - 1e-6):
                offenders.append((one, traffic, held, limit, truth))
    assert sum(held_by.values()) >= 88 * len(_HELD)
    assert offenders == []
    assert set(_HELD) - set(proven) == {"shares"}
    assert proven["counted"] > held_by["counted"] / 2


@pytest.mark.parametrize("traffic", _TRAFFIC)
def test_a_predicted_product_is_held_to_its_own_size(traffic: int) -> None:
    """If a formula gives the bytes and the operations are counted, the limit is exact, whatever was moved."""
    for sizes in _SIZES:
        one = _Product(*sizes)
        kernel, outside = _kernel(one, traffic, "predicted")
        limit = analyze(kernel, outside=outside).verdict.limit
        if limit.by != "the shortest launch":
            assert limit.proven, one
            assert limit.floor_ns == pytest.approx(one.floor_ns, rel=0.01), one
