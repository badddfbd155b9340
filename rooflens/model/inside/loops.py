"""The loops of a kernel with what each takes, and the straight parts around them, so that all adds up.

Every instruction belongs to one row: the innermost loop that it is in, or a straight part. Amounts of a row are its
own; with those of the loops inside it they are whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import pairwise, takewhile

from msgspec import Struct

from rooflens.model.inside.budget import StepBudget, TooManyStepsError
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.graph import MOST_LOOPS, Graph, Ring, flow
from rooflens.model.inside.instruction import Instruction
from rooflens.model.records import Loop, LoopKind
from rooflens.model.roofline.opcodes import opcode_group, tensor_op, thread_flop


class LoopRows(Struct, frozen=True):
    """What loops were found in.

    Attributes:
        loops: Loops and straight parts, each loop before those inside it.
        row_of: Id of the row that each instruction belongs to, by offset.
        own: The instructions of each row, without those of loops inside it, by its id.
        graphs: The flow of control of each function.
        body_runs: How often warps ran the body of each loop, by its id: a test at its top runs once more an entry.
        note: Why loops are missing; empty if they are there, or the code has none.
    """

    loops: tuple[Loop, ...] = ()
    row_of: Mapping[int, int] = {}
    own: Mapping[int, Sequence[Instruction]] = {}
    graphs: tuple[Graph, ...] = ()
    body_runs: Mapping[int, float] = {}
    note: str = ""


def find_rows(code: MachineCode, budget: StepBudget | None = None) -> LoopRows:
    """Divide a kernel into loops and straight parts; a note says how far one came where that takes too many steps."""
    budget = budget or StepBudget.of(len(code.instructions))
    executed = code.amounts.get("warp_inst", {})
    drafts: list[_Draft] = []
    graphs: list[Graph] = []
    targets = {one.target for one in code.instructions if one.target is not None}
    gone_through = 0
    for instructions in _functions(code):
        if any(one.offset in executed for one in instructions):
            try:
                graph = _graph(instructions, targets, executed, budget)
            except TooManyStepsError:
                return LoopRows(note=budget.came_to(gone_through, len(code.instructions)))
            if (why := _unclear(graph)) is not None:
                return LoopRows(note=why)
            graphs.append(graph)
            drafts += _drafts(graph, executed, len(drafts), is_kernel=len(graphs) == 1)
        gone_through += len(instructions)
    row_of = {one.offset: draft.id for draft in drafts for one in draft.own}
    if any(not one.opcode and one.offset in executed for one in code.instructions):
        return LoopRows(note="some of its instructions are of an unknown kind: its loops are not told")
    loops = _with_amounts(drafts, code, _settled(code, row_of))
    own, body_runs = {draft.id: draft.own for draft in drafts}, {draft.id: draft.body_runs for draft in drafts}
    return LoopRows(loops, row_of, own, tuple(graphs), body_runs)


def _unclear(graph: Graph) -> str | None:
    """Say why the loops of a function are not told; None if they are."""
    if graph.has_too_many_ways:
        return "its machine code has jumps by tables that may lead to too many places: its loops are not told apart"
    if graph.is_irreducible:
        return "its machine code has a cycle with two entries: its loops are not told apart"
    return f"its machine code has more than {MOST_LOOPS} loops" if graph.has_too_many_loops else None


def _functions(code: MachineCode) -> Iterator[Sequence[Instruction]]:
    offsets = [one.offset for one in code.instructions]
    firsts = [0, *(bisect_left(offsets, start) for start in sorted(code.starts)[1:]), len(offsets)]
    for first, end in pairwise(firsts):
        if first < end:
            yield code.instructions[first:end]


def _graph(
    instructions: Sequence[Instruction], targets: AbstractSet[int], executed: Mapping[int, float], budget: StepBudget
) -> Graph:
    """Find the flow of a function: of what ran alone where its cycles are no loops otherwise."""
    offsets = {one.offset for one in instructions}
    # Targets inside of a function are its own business.
    entries = (offsets & targets) - {one.target for one in instructions}
    graph = flow(instructions, entries, executed.keys(), budget=budget)
    if not graph.is_irreducible:
        return graph
    # Edges that no warp took do not count: a loop with such an entry into its middle is still a loop.
    whole = flow(instructions, entries, executed.keys(), left_out=(), budget=budget)
    flows = _flows(whole, _runs(whole, executed))
    idle = {edge for edge, taken in flows.items() if not taken}
    return flow(instructions, entries, executed.keys(), left_out=idle, budget=budget) if whole.is_irreducible else whole


def _runs(graph: Graph, executed: Mapping[int, float]) -> list[float]:
    """Return how many warps ran each block."""
    return [executed.get(graph.instructions[block.first].offset, 0.0) for block in graph.blocks]


class _Draft(Struct):
    """A row before its amounts are summed.

    Attributes:
        depth: How many loops it is in, itself too.
        own: Its instructions, without those of loops inside it.
        body_runs: How often warps ran its body, the last test at its top left out.
    """

    id: int
    kind: LoopKind
    name: str
    parent: int | None
    depth: int
    own: list[Instruction]
    start: int
    end: int
    file: str | None
    line: int | None
    last_line: int | None
    trips: float | None
    library: tuple[str, int] | None = None
    body_runs: float = 0.0


def _drafts(graph: Graph, executed: Mapping[int, float], first_id: int, *, is_kernel: bool) -> list[_Draft]:
    """Make the rows of one function: each loop that ran, and the straight parts between them."""
    runs = _runs(graph, executed)
    wholes = _wholes(graph, runs)
    ran = [index for index, whole in enumerate(wholes) if whole.last >= 0]
    kept = {index: first_id + place for place, index in enumerate(ran)}
    flows = _flows(graph, runs)
    own: dict[int, list[Instruction]] = defaultdict(list)
    straight: dict[int, list[Instruction]] = defaultdict(list)
    # Where a loop ran, so did those around it.
    outermost = [graph.blocks[graph.rings[index].header].first for index in ran if graph.rings[index].parent is None]
    for number, block in enumerate(graph.blocks):
        instructions = graph.instructions[block.first : block.end]
        index: int | None = graph.ring_of.get(number)
        while index is not None and index not in kept:
            index = graph.rings[index].parent
        if index is not None:
            own[index] += instructions
        else:
            straight[bisect_right(outermost, block.first)] += instructions
    drafts = []
    for index in ran:
        ring = graph.rings[index]
        file, line, last_line, library = _lines_of_loop(graph, ring, own[index])
        trips, body_runs = _trips(graph, ring, wholes[index], runs, flows)
        drafts.append(
            _Draft(
                kept[index],
                "loop",
                "",
                None if ring.parent is None else kept[ring.parent],
                ring.depth,
                own[index],
                graph.instructions[graph.blocks[ring.header].first].offset,
                graph.instructions[wholes[index].last].offset,
                file,
                line,
                last_line,
                trips,
                library,
                body_runs,
            )
        )
    names = {0: "prologue", len(outermost): "epilogue"} if outermost else {0: "body"}
    for place in sorted(straight):
        part = straight[place]
        counted = [one for one in part if one.offset in executed]
        if not counted:
            # Cold code holds no amounts but stray samples, which follow what ran (`_settled`).
            continue
        file, line, last_line = _span_of_lines(counted)
        name = names.get(place, "between") if is_kernel else "called"
        start, end = counted[0].offset, counted[-1].offset
        drafts.append(
            _Draft(first_id + len(drafts), "straight", name, None, 0, part, start, end, file, line, last_line, None)
        )
    return drafts


class _NestedLoop(Struct):
    """A loop with those inside it.

    Attributes:
        header_leaves_to: Depth of the outermost loop that a way from its header stays in, none being 0; its own where
            no way leads out.
        others_leave_to: The same of all its other blocks.
        has_body: Behind its header it does more than to jump.
        last: Position of the last instruction of the blocks that ran; below zero if none did.
    """

    header_leaves_to: int
    others_leave_to: int
    has_body: bool = False
    last: int = -1


def _wholes(graph: Graph, runs: Sequence[float]) -> list[_NestedLoop]:
    """Sum up each loop with those inside it, inner ones first, so that each block is gone through once."""
    rings = graph.rings
    back = {(latch, ring.header) for ring in rings for latch in ring.latches}

    def leaves_to(block: int, most: int) -> int:
        for after in graph.after[block]:
            index = graph.ring_of.get(after)
            # Loops are entered at their headers alone.
            if index is not None and rings[index].header == after and (block, after) not in back:
                index = rings[index].parent
            most = min(most, 0 if index is None else rings[index].depth)
        return most

    def computes(block: int) -> bool:
        part = graph.instructions[graph.blocks[block].first : graph.blocks[block].end]
        return any(opcode_group(one.opcode) != "control" for one in part)

    wholes = [_NestedLoop(ring.depth, ring.depth) for ring in rings]
    for index in sorted(range(len(rings)), key=lambda index: -rings[index].depth):
        ring, whole = rings[index], wholes[index]
        header, *others = ring.blocks
        whole.header_leaves_to = leaves_to(header, ring.depth)
        for block in others:
            whole.others_leave_to = leaves_to(block, whole.others_leave_to)
        whole.has_body = whole.has_body or any(map(computes, others))
        for block in ring.blocks:
            if runs[block]:
                whole.last = max(whole.last, graph.blocks[block].end - 1)
        if ring.parent is not None:
            around = wholes[ring.parent]
            around.others_leave_to = min(around.others_leave_to, whole.header_leaves_to, whole.others_leave_to)
            around.has_body = around.has_body or whole.has_body or computes(header)
            around.last = max(around.last, whole.last)
    return wholes


_LIBRARY = re.compile(
    r"^(?:/usr|/opt)/|/cuda(?:-[\d.]+)?/|/targets/[\w-]+/include/|NVIDIA GPU Computing Toolkit"
    r"|/(?:site|dist)-packages/|/include/(?:cutlass|cute|cub|thrust|cooperative_groups)/"
    r"|/cutlass/(?:include|tools)/|/cub/cub/|/thrust/thrust/|/\.julia/packages/|^\w+\.jl$"
)
"""Folders of toolkits and libraries in the names of source files; Julia's own have no folder.

A program may stand beside a library's headers in a copy of its repository, as CUTLASS's examples do.
"""


@cache
def is_library(file: str) -> bool:
    """Return whether a source file is a toolkit's or a library's, by the folders in its name."""
    return _LIBRARY.search(file.replace("\\", "/")) is not None


def callers_of_libraries(code: MachineCode) -> dict[tuple[str, int], tuple[str, int]]:
    """Return for each line of a library that was inlined the program's own line that most of its samples come from."""
    samples = code.amounts.get("samples", {})
    found: dict[tuple[str, int], Counter[tuple[str, int]]] = defaultdict(Counter)
    for one in code.instructions:
        if len(one.path) > 1 and one.file is not None and one.line is not None and is_library(one.file):
            callers = [place for place in one.path[:-1] if not is_library(place[0])]
            if callers:
                found[one.file, one.line][callers[-1]] += samples.get(one.offset, 0.0)  # type: ignore[assignment]
    return {place: callers.most_common(1)[0][0] for place, callers in found.items()}


def _lines_of_loop(
    graph: Graph, ring: Ring, instructions: Sequence[Instruction]
) -> tuple[str | None, int | None, int | None, tuple[str, int] | None]:
    """Return file and lines of a loop: that of its statement, as header and jumps back have it, and its last.

    A loop belongs to the function that all its instructions were inlined through. Where that is a library's it is named
    by the program's own line that calls it.

    Args:
        graph: The function.
        ring: The loop.
        instructions: Its instructions, without those of loops inside it.

    Returns:
        File, first line and last line, and the library's place behind them; each None if unknown or there is none.
    """
    paths = [one.path for one in instructions if one.path]
    if not paths:
        return (*_span_of_lines(instructions), None)
    calls = paths[0][:-1]
    for path in paths:
        calls = tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(calls, path[:-1], strict=False)))
    depth = len(calls)
    places = [path[depth] for path in paths]
    header = graph.instructions[graph.blocks[ring.header].first]
    ends = [graph.instructions[graph.blocks[latch].end - 1] for latch in ring.latches]
    # What was inlined stands in no statement of the loop's own function.
    stated = [one.path[depth] for one in (header, *ends) if len(one.path) == depth + 1]
    # Compilers that write no calls put lines of libraries beside the program's own.
    stated = [place for place in stated if not is_library(place[0])] or stated or places
    file = Counter(file for file, _ in stated).most_common(1)[0][0]
    first = min(line for name, line in stated if name == file)
    last = max((line for name, line in places if name == file), default=first)
    callers = [place for place in calls if not is_library(place[0])]
    if callers and is_library(file):
        return callers[-1][0], callers[-1][1], callers[-1][1], (file, first)
    return file, first, max(first, last), None


def _span_of_lines(instructions: Sequence[Instruction]) -> tuple[str | None, int | None, int | None]:
    """Return the file that most instructions are of, and their first and last line, by calls where inlined.

    What a library's kernel calls of the program, such as a functor of CUTLASS's, stands in the program's own file.
    """
    named = [one.path[0] if one.path else (one.file, one.line) for one in instructions]
    in_program = [next((place for place in one.path if not is_library(place[0])), None) for one in instructions]
    places = [place for place in in_program if place is not None] or named
    files = Counter(file for file, _ in places if file is not None)
    if not files:
        return None, None, None
    file = files.most_common(1)[0][0]
    lines = [line for name, line in places if name == file and line is not None]
    return file, min(lines), max(lines)


def _flows(graph: Graph, runs: Sequence[float]) -> dict[tuple[int, int], float]:
    """Return how often each edge was taken, as far as block counts imply: flow in equals flow out.

    Where threads of a warp part, more goes out than comes in; what is left over is then never below zero.
    """
    known: dict[tuple[int, int], float] = {}
    roots = set(graph.roots)
    # Of each block the edges that are not known yet, out of it and into it, and how often these were taken in all.
    unknown = [set(found) for found in graph.after], [set(found) for found in graph.before]
    rest = list(runs), list(runs)
    pending = set(range(len(graph.blocks)))
    while pending:
        more: set[int] = set()
        for block in pending:
            for side in (0, 1):
                if len(unknown[side][block]) != 1 or (side == 1 and block in roots):
                    continue
                (other,) = unknown[side][block]
                edge = (other, block) if side else (block, other)
                known[edge] = taken = max(0.0, rest[side][block])
                for end, (one, far) in enumerate((edge, edge[::-1])):
                    if far in unknown[end][one]:  # what cannot be reached is before nothing
                        unknown[end][one].remove(far)
                        rest[end][one] -= taken
                more.update(edge)
        pending = more
    return known


def _trips(
    graph: Graph, ring: Ring, whole: _NestedLoop, runs: Sequence[float], flows: Mapping[tuple[int, int], float]
) -> tuple[float | None, float]:
    """Return how often the body runs for each warp that enters, None if entries are unknown, and how often in all."""
    latches, header_runs = set(ring.latches), runs[ring.header]
    entering = [flows.get((one, ring.header)) for one in graph.before[ring.header] if one not in latches]
    if any(one is None for one in entering):
        back = [flows.get((one, ring.header)) for one in ring.latches]
        if any(one is None for one in back):
            return None, header_runs
        entries = header_runs - sum(one for one in back if one is not None)
    else:
        entries = sum(one for one in entering if one is not None)
    if entries <= 0:
        return None, header_runs
    tests_at_top = whole.header_leaves_to < ring.depth <= whole.others_leave_to and whole.has_body
    body_runs = header_runs - entries if tests_at_top else header_runs
    return body_runs / entries, body_runs


def _settled(code: MachineCode, row_of: Mapping[int, int]) -> Mapping[int, int]:
    """Say which row the samples of an instruction count for that never ran: that of what ran last before it.

    A warp whose next instruction is not known yet, as behind a jump, is sampled at what stands next; where stores
    drain, at the branch behind `EXIT`.
    """
    executed = code.amounts.get("warp_inst", {})
    found: dict[int, int] = {}
    last: int | None = None
    first_row = next((row_of[one.offset] for one in code.instructions if one.offset in executed), None)
    for one in code.instructions:
        if one.offset in executed and one.offset in row_of:
            last = row_of[one.offset]
        row = last if last is not None else first_row
        if row is not None:
            found[one.offset] = row
    return found


def _with_amounts(drafts: Sequence[_Draft], code: MachineCode, rows: Mapping[int, int]) -> tuple[Loop, ...]:
    """Sum what each row takes, of its own and with the loops inside it."""
    own: dict[int, dict[str, float]] = {draft.id: {} for draft in drafts}
    for measure, by_offset in code.amounts.items():
        sums: dict[int, float] = defaultdict(float)
        for row, amount in zip(map(rows.__getitem__, by_offset), by_offset.values(), strict=True):
            sums[row] += amount
        for row, amount in sums.items():
            own[row][measure] = amount
    flop: dict[int, dict[str, float]] = {draft.id: {} for draft in drafts}
    does_flop = {
        opcode for opcode in {one.opcode for one in code.instructions} if thread_flop(opcode) or tensor_op(opcode)
    }
    for one in code.instructions:
        if one.opcode in does_flop and one.offset in rows and (found := flop_of(one, code)) is not None:
            of_row = flop[rows[one.offset]]
            of_row[found[0]] = of_row.get(found[0], 0.0) + found[1]
    whole = {draft.id: dict(own[draft.id]) for draft in drafts}
    whole_flop = {draft.id: dict(flop[draft.id]) for draft in drafts}
    # From the inside out, each row once.
    for draft in sorted(drafts, key=lambda draft: -draft.depth):
        if draft.parent is not None:
            _add_amounts(whole[draft.parent], whole[draft.id])
            _add_amounts(whole_flop[draft.parent], whole_flop[draft.id])
    return tuple(
        Loop(
            id=draft.id,
            kind=draft.kind,
            name=draft.name,
            parent=draft.parent,
            start=draft.start,
            end=draft.end,
            file=draft.file,
            line=draft.line,
            last_line=draft.last_line,
            trips=draft.trips,
            library_file=draft.library[0] if draft.library else None,
            library_line=draft.library[1] if draft.library else None,
            amounts=whole[draft.id],
            own=own[draft.id],
            flop=whole_flop[draft.id],
            self_flop=flop[draft.id],
        )
        for draft in drafts
    )


def _add_amounts(to: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0.0) + amount


def flop_of(instruction: Instruction, code: MachineCode) -> tuple[str, float] | None:
    """Return type and number of the floating-point operations of an instruction; None if it does none.

    Thread instructions by their opcode, matrix instructions by the warps that ran them; integer ones are named so.
    """
    if (scalar := thread_flop(instruction.opcode)) is not None:
        if instruction.loads_constant:
            return None
        return scalar[0], scalar[1] * code.amounts.get("thread_inst", {}).get(instruction.offset, 0.0)
    if (matrix := tensor_op(instruction.opcode)) is not None:
        return f"tensor_{matrix.dtype}", matrix.ops * code.amounts.get("warp_inst", {}).get(instruction.offset, 0.0)
    return None
