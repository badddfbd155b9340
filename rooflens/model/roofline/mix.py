"""Which arithmetic a kernel executes in one precision: additions, multiplications, and both at once."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rooflens.model.records import Kernel
from rooflens.model.roofline.flops import SCALAR_COUNTERS

_LETTERS: Mapping[str, str] = {"fp32": "f", "fp64": "d"}
_OPCODES: Mapping[str, str] = {
    "FADD": "add",
    "FADD32I": "add",
    "FADD2": "add",
    "FMUL": "mul",
    "FMUL32I": "mul",
    "FMUL2": "mul",
    "FFMA": "fma",
    "FFMA32I": "fma",
    "FFMA2": "fma",
    "DADD": "add",
    "DMUL": "mul",
    "DFMA": "fma",
}


class Mix(Struct, frozen=True):
    """Thread instructions of one precision: additions, multiplications, and fused multiply-adds."""

    dtype: str
    add: float
    mul: float
    fma: float
    source: str

    @property
    def apart(self) -> float:
        """Return the additions and multiplications that are not fused."""
        return self.add + self.mul

    @property
    def total(self) -> float:
        return self.apart + self.fma

    @property
    def sparable(self) -> float:
        """Return the largest share of instructions that fusing could save, 0 to 1: one of each pair."""
        return min(self.add, self.mul) / self.total if self.total else 0.0


def mix_of(kernel: Kernel, dtype: str) -> Mix | None:
    """Count one precision by opcode, else by counters; None if absent or not counted."""
    letter = _LETTERS[dtype]
    if kernel.thread_opcodes:
        counts = dict.fromkeys(("add", "mul", "fma"), 0.0)
        for opcode, threads in kernel.thread_opcodes.items():
            base = opcode.partition(".")[0]
            if base in _OPCODES and base.startswith(letter.upper()):
                counts[_OPCODES[base]] += threads
        source = "thread instructions by opcode"
    else:
        add, mul, fma = map(kernel.counters.get, SCALAR_COUNTERS[dtype])
        if add is None or mul is None or fma is None:
            return None
        counts = {"add": add, "mul": mul, "fma": fma}
        source = f"smsp__sass_thread_inst_executed_op_{letter}{{add,mul,fma}}_pred_on.sum"
    mix = Mix(dtype, counts["add"], counts["mul"], counts["fma"], source)
    return mix if mix.total else None
