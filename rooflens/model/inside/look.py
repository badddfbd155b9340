"""Look into a kernel: loops, what a trip of each takes, and what its waits wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rooflens.model.inside.anatomy import anatomy
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.loops import find_rows
from rooflens.model.inside.waits import Finder, find_waits
from rooflens.model.records import Inside, Loop


def look_inside(code: MachineCode) -> Inside:
    """Find loops and waits in a kernel's machine code; a note says why where there are none."""
    rows = find_rows(code)
    if rows.note:
        return Inside(note=rows.note, code_digest=code.digest)
    finders = [Finder(graph, code) for graph in rows.graphs]
    loops = tuple(
        _with_anatomy(loop, code, rows.row_of, finders) if loop.kind == "loop" else loop for loop in rows.loops
    )
    pcs: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in code.instructions:
        if one.file is not None and one.line is not None:
            pcs[one.file, one.line].append(one.offset)
    lines = {place: tuple(found) for place, found in pcs.items()}
    texts = {one.offset: one.text for one in code.instructions if one.text}
    return Inside(loops, find_waits(code, finders), lines, rows.row_of, texts, code.digest)


def _with_anatomy(loop: Loop, code: MachineCode, row_of: Mapping[int, int], finders: Sequence[Finder]) -> Loop:
    own = [one for one in code.instructions if row_of.get(one.offset) == loop.id]
    finder = next(finder for finder in finders if loop.start in finder)
    runs = code.amounts.get("warp_inst", {}).get(loop.start, 0.0)
    return replace(loop, anatomy=anatomy(own, code, runs, finder.in_flight))
