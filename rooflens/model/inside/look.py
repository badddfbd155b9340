"""Look into a kernel: loops, what a trip of each takes, and what its waits wait for."""

from __future__ import annotations

from msgspec.structs import replace

from rooflens.model.inside.anatomy import anatomy, longest_wait
from rooflens.model.inside.budget import StepBudget
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.instruction import Instruction
from rooflens.model.inside.loops import LoopRows, callers_of_libraries, find_rows
from rooflens.model.inside.waits import find_waits
from rooflens.model.records import Inside


def look_inside(code: MachineCode, budget: StepBudget | None = None) -> Inside:
    """Find loops and waits in a kernel's machine code; a note says why, or where, there are none.

    Args:
        code: The machine code.
        budget: How many steps it may take; by default more than real code needs.
    """
    budget = budget or StepBudget.of(len(code.instructions))
    rows = find_rows(code, budget)
    if rows.note:
        return Inside(note=rows.note, code_digest=code.digest)
    longest = {
        loop.id: offset
        for loop in rows.loops
        if loop.kind == "loop" and (offset := longest_wait(rows.own[loop.id], code)) is not None
    }
    waits = find_waits(code, rows.graphs, set(longest.values()), budget)
    executed = code.amounts.get("warp_inst", {})
    tries = _tries(rows)
    loops = []
    for loop in rows.loops:
        if loop.kind == "loop":
            in_flight = waits.in_flight.get(longest[loop.id]) if loop.id in longest else None
            body = anatomy(rows.own[loop.id], code, rows.body_runs[loop.id], in_flight, waits, tries=tries[loop.id])
            loops.append(replace(loop, anatomy=body))
        else:
            loops.append(loop)
    indexes = any(one.is_indexed_constant and one.offset in executed for one in code.instructions)
    callers = callers_of_libraries(code)
    return Inside(tuple(loops), waits.at, code.pcs, rows.row_of, indexes, code.digest, waits.note, callers)


def _tries(rows: LoopRows) -> dict[int, list[Instruction]]:
    """Return where each loop waits at mbarriers: its instructions, and those of inner loops that only try again.

    Such a loop itself has none.
    """
    found = {loop.id: [*rows.own[loop.id]] for loop in rows.loops}
    for loop in reversed(rows.loops):
        own = rows.own[loop.id]
        if loop.parent is not None and all(one.base in _TRYING for one in own):
            found[loop.parent] += found[loop.id]
            found[loop.id] = []
    return found


_TRYING = frozenset({"SYNCS", "BRA", "YIELD", "NANOSLEEP", "NOP", "WARPSYNC", "BSSY", "BSYNC"})
"""What a loop that waits for the end of a phase consists of."""
