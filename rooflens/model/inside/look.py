"""Look into a kernel: loops, what a trip of each takes, and what its waits wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from rooflens.model.inside.anatomy import anatomy
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.instruction import Instruction
from rooflens.model.inside.loops import find_rows
from rooflens.model.inside.waits import Finder, find_waits
from rooflens.model.records import Inside, Loop


def look_inside(code: MachineCode) -> Inside:
    """Find loops and waits in a kernel's machine code; a note says why where there are none."""
    rows = find_rows(code)
    if rows.note:
        return Inside(note=rows.note, code_digest=code.digest)
    finders = [Finder(graph, code) for graph in rows.graphs]
    own: dict[int | None, list[Instruction]] = defaultdict(list)
    for one in code.instructions:
        own[rows.row_of.get(one.offset)].append(one)
    loops = tuple(
        _with_anatomy(loop, code, own[loop.id], finders) if loop.kind == "loop" else loop for loop in rows.loops
    )
    executed = code.amounts.get("warp_inst", {})
    indexes = any(one.is_indexed_constant and one.offset in executed for one in code.instructions)
    return Inside(loops, find_waits(code, finders), code.pcs, rows.row_of, indexes, code.digest)


def _with_anatomy(loop: Loop, code: MachineCode, own: Sequence[Instruction], finders: Sequence[Finder]) -> Loop:
    finder = next(finder for finder in finders if loop.start in finder)
    runs = code.amounts.get("warp_inst", {}).get(loop.start, 0.0)
    return replace(loop, anatomy=anatomy(own, code, runs, finder.in_flight))
