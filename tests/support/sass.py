"""Read the output of `cuobjdump -sass`: the instructions of each kernel and its loops."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

_ARCHITECTURE = re.compile(r"^arch = (sm_\w+)$")
_FUNCTION = re.compile(r"^\s*Function : (\S+)$")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")
_TARGET = re.compile(r"0x([0-9a-f]+)\s*$")


class Kernel(Struct, frozen=True):
    """The code of one kernel: addresses, opcodes and operands, in order."""

    name: str
    code: tuple[tuple[int, str, str], ...]

    @property
    def opcodes(self) -> tuple[str, ...]:
        """All opcodes."""
        return tuple(opcode for _, opcode, _ in self.code)

    def loops(self) -> Iterator[tuple[str, ...]]:
        """Yield the opcodes of every loop: the instructions between a backward branch and its target."""
        for address, opcode, operands in self.code:
            target = _TARGET.search(operands)
            if opcode.startswith("BRA") and target and int(target[1], 16) < address:
                yield tuple(op for at, op, _ in self.code if int(target[1], 16) <= at <= address)

    def loop_of(self, opcode: str) -> tuple[str, ...]:
        """Return the shortest of the loops with the most instructions matching `opcode`."""
        return max(self.loops(), key=lambda loop: (count(loop, opcode), -len(loop)), default=())


def count(opcodes: tuple[str, ...], pattern: str) -> int:
    """Count the opcodes that match a pattern from their start."""
    return sum(re.match(pattern, opcode) is not None for opcode in opcodes)


def parse_sass(text: str) -> dict[str, dict[str, Kernel]]:
    """Sort kernels by architecture and mangled name."""
    code: dict[str, dict[str, list[tuple[int, str, str]]]] = defaultdict(dict)
    architecture, current = "", []
    for line in text.splitlines():
        if found := _INSTRUCTION.match(line):
            current.append((int(found[1], 16), found[2], found[3]))
        elif found := _FUNCTION.match(line):
            current = code[architecture].setdefault(found[1], [])
        elif found := _ARCHITECTURE.match(line):
            architecture = found[1]
    return {
        architecture: {name: Kernel(name, tuple(lines)) for name, lines in kernels.items()}
        for architecture, kernels in code.items()
    }
