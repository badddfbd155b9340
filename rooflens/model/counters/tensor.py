"""The tensor counters of each chip, and in which tier ncu is asked for them. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rooflens.model.counters.chips import (
    AD10X,
    GA10X,
    GA100,
    GB10X,
    GB11X,
    GB20X,
    GH100,
    GR100,
    ORIN,
    SPARK,
    TCGEN05,
    THOR,
    TU10X,
    VOLTA,
    XAVIER,
)
from rooflens.model.counters.metric import PEAK, Ask, Detail


@dataclass(frozen=True, slots=True)
class TensorCounters:
    """Tensor operation counters that chips have: one for each type, of one instruction or of all.

    Attributes:
        op: Opcode of the instruction; empty where operations of all instructions are counted.
        split: Counted for dense and for sparse operands apart, too.
    """

    chips: frozenset[str]
    op: str
    sources: tuple[str, ...]
    split: bool = False

    def names(self, suffix: str = "") -> tuple[str, ...]:
        """Return the base names, those of dense or sparse operands with `_sparsity_off` or `_sparsity_on`."""
        op = f"op_{self.op}_" if self.op else ""
        return tuple(f"sm__ops_path_tensor_{op}src_{source}{suffix}" for source in self.sources)


_FP16 = ("fp16_dst_fp16", "fp16_dst_fp32")
_HMMA = ("bf16_dst_fp32", *_FP16, "tf32_dst_fp32")
_NARROW = ("fp4_dst_fp32", "fp4_fp6_dst_fp16", "fp4_fp6_dst_fp32", "fp8_dst_fp16", "fp8_dst_fp32")
_AMPERE = GA100 | GA10X | ORIN

TENSOR_COUNTERS: tuple[TensorCounters, ...] = (
    TensorCounters(VOLTA, "", _FP16),
    TensorCounters(XAVIER, "", ("int8",)),
    TensorCounters(TU10X, "", ("fp16_bf16_tf32_dst_fp32", "fp16_dst_fp16", "int1", "int4", "int8")),
    TensorCounters(_AMPERE | AD10X, "", (*_HMMA, "int4", "int8"), split=True),
    TensorCounters(_AMPERE | AD10X | GH100, "", ("fp64", "int1")),
    TensorCounters(AD10X | GH100, "", ("fp8",), split=True),
    TensorCounters(GH100, "", ("bf16_dst_fp32", "fp16", "int8", "tf32_dst_fp32")),
    TensorCounters(GH100, "hgmma", ("bf16_dst_fp32", "fp16", "tf32_dst_fp32"), split=True),
    TensorCounters(GH100, "igmma", ("int8",), split=True),
    TensorCounters(GH100, "bgmma", ("int1",)),
    TensorCounters(GH100, "bmma", ("int1",)),
    TensorCounters(TCGEN05 | GB20X | SPARK, "", (*_HMMA, "fp64", "int8")),
    TensorCounters(GH100 | TCGEN05 | GB20X | SPARK, "hmma", _HMMA, split=True),
    TensorCounters(GH100 | TCGEN05 | GB20X | SPARK, "imma", ("int8",), split=True),
    TensorCounters(GB10X | THOR, "", ("fp4_dst_fp32", "fp4_fp6_fp8_dst_fp16", "fp4_fp6_fp8_dst_fp32")),
    TensorCounters(GB11X | GR100, "", _NARROW),
    TensorCounters(GB20X | SPARK, "", _NARROW, split=True),
    TensorCounters(TCGEN05, "utchmma", _HMMA, split=True),
    TensorCounters(TCGEN05, "utcomma", ("fp4_dst_fp32",), split=True),
    TensorCounters(GB10X | THOR, "utcimma", ("int8",), split=True),
    TensorCounters(GB10X | THOR, "utcqmma", ("fp4_fp6_fp8_dst_fp16", "fp4_fp6_fp8_dst_fp32"), split=True),
    TensorCounters(GB11X | GR100, "utcqmma", _NARROW[1:], split=True),
)
"""Chips' tensor counters. TU11X has none. Sums over instructions and sums over density are both stored as `src_*`."""


def tensor_counters(chip: str) -> tuple[TensorCounters, ...]:
    """Return the tensor counters that a chip has."""
    return tuple(row for row in TENSOR_COUNTERS if chip in row.chips)


_COUNTED_TYPES: tuple[tuple[Detail, frozenset[str], tuple[str, ...]], ...] = (
    ("quick", GB10X | THOR, ("bf16_dst_fp32", "fp4_dst_fp32", "fp4_fp6_fp8_dst_fp32")),
    ("quick", GB11X, ("bf16_dst_fp32", "fp4_dst_fp32", "fp4_fp6_dst_fp32")),
    ("quick", GR100, ("bf16_dst_fp32",)),
    ("standard", GB10X | THOR, ("fp16_dst_fp32", "tf32_dst_fp32", "fp4_fp6_fp8_dst_fp16")),
    ("standard", GB11X, ("fp16_dst_fp32", "tf32_dst_fp32", "fp8_dst_fp32")),
    ("standard", GR100, ("fp16_dst_fp32", "tf32_dst_fp32", "fp8_dst_fp32", "fp4_dst_fp32")),
)
"""Types whose tensor operations are counted before `deep`: tcgen05 opcodes name no shape, so only counters tell."""


def tensor_asks(chip: str) -> Iterator[Ask]:
    """Yield the chip's tensor counters: dense peaks always, amounts from the tier that needs them.

    Of a counter that is split by density only the parts are asked for where an instruction has one of its own: whole
    and parts hold the same operations, and the model adds up what names an instruction.
    """
    early = {name: detail for detail, chips, names in _COUNTED_TYPES if chip in chips for name in names}
    for counters in tensor_counters(chip):
        suffixes = ("_sparsity_off", "_sparsity_on") if counters.split else ()
        if not (counters.op and counters.split):
            suffixes = ("", *suffixes)
        for suffix in suffixes:
            for source, base in zip(counters.sources, counters.names(suffix), strict=True):
                detail: Detail = "deep" if counters.op or suffix else early.get(source, "deep")
                meaning = _tensor_meaning(counters.op, source, suffix)
                yield Ask(detail, meaning, base, ("sum",))
                if suffix != "_sparsity_on":
                    yield Ask("quick", meaning, base, (PEAK,))


def _tensor_meaning(op: str, source: str, suffix: str) -> str:
    operands, _, result = source.partition("_dst_")
    density = {"_sparsity_off": "dense ", "_sparsity_on": "sparse "}.get(suffix, "")
    into = f" into {result}" if result else ""
    return f"{density}{operands.replace('_', '/')}{into} tensor operations{f' of {op.upper()}' if op else ''}"
