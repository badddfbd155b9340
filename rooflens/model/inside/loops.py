"""The loops of a kernel with what each takes, and the straight parts around them, so that all adds up.

Every instruction belongs to one row: the innermost loop that it is in, or a straight part. Amounts of a row are its
own; with those of the loops inside it they are whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.graph import MOST_LOOPS, Graph, Ring, flow
from rooflens.model.inside.instruction import Instruction
from rooflens.model.records import Loop, LoopKind
from rooflens.model.roofline.opcodes import opcode_group, tensor_op, thread_flop

_SAME_RUNS = 1e-9


class Rows(Struct, frozen=True):
    """What loops were found in.

    Attributes:
        loops: Loops and straight parts, each loop before those inside it.
        row_of: Id of the row that each instruction belongs to, by offset.
        graphs: The flow of control of each function.
        note: Why loops are missing; empty if they are there, or the code has none.
    """

    loops: tuple[Loop, ...] = ()
    row_of: Mapping[int, int] = {}
    graphs: tuple[Graph, ...] = ()
    note: str = ""


def find_rows(code: MachineCode) -> Rows:
    """Divide a kernel into loops and straight parts."""
    executed = code.amounts.get("warp_inst", {})
    drafts: list[_Draft] = []
    graphs: list[Graph] = []
    functions = list(_functions(code))
    calls = {one.target for one in code.instructions if one.target is not None}
    for instructions in functions:
        if not any(one.offset in executed for one in instructions):
            continue
        graph = _graph(instructions, calls, executed)
        if graph is None:
            return Rows(note="its machine code has a cycle with two entries: its loops are not told apart")
        if graph.has_too_many_loops:
            return Rows(note=f"its machine code has more than {MOST_LOOPS} loops")
        graphs.append(graph)
        drafts += _drafts(graph, executed, len(drafts), is_kernel=len(graphs) == 1)
    row_of = {offset: draft.id for draft in drafts for offset in draft.offsets}
    if any(one.opcode == "" for one in code.instructions if one.offset in executed):
        return Rows(note="some of its instructions are of an unknown kind: its loops are not told")
    loops = _with_amounts(drafts, code, _settled(code, row_of))
    return Rows(loops, row_of, tuple(graphs))


def _functions(code: MachineCode) -> Iterator[Sequence[Instruction]]:
    """Yield the instructions of each function."""
    starts = sorted(code.starts)
    parts: dict[int, list[Instruction]] = defaultdict(list)
    for one in code.instructions:
        parts[max(0, bisect_right(starts, one.offset) - 1)].append(one)
    for part in sorted(parts):
        yield parts[part]


def _graph(instructions: Sequence[Instruction], calls: Iterable[int], executed: Mapping[int, float]) -> Graph | None:
    """Find the flow of a function; None if its cycles are no loops, not even among what ran."""
    offsets = {one.offset for one in instructions}
    # Targets inside of a function are its own business.
    entries = (offsets & set(calls)) - {one.target for one in instructions}
    graph = flow(instructions, entries, executed.keys())
    if not graph.is_irreducible:
        return graph
    # Edges that no warp took do not count: a loop with such an entry into its middle is still a loop.
    whole = flow(instructions, entries, executed.keys(), only_ran=True)
    runs = _runs(whole, executed)
    flows = _flows(whole, runs)
    idle = {edge for edge, taken in flows.items() if not taken}
    for left_out in (set[tuple[int, int]](), idle):
        graph = flow(instructions, entries, executed.keys(), only_ran=True, left_out=left_out)
        if not graph.is_irreducible:
            return graph
    return None


def _runs(graph: Graph, executed: Mapping[int, float]) -> list[float]:
    """Return how many warps ran each block."""
    return [executed.get(graph.instructions[block.first].offset, 0.0) for block in graph.blocks]


class _Draft(Struct):
    """A row before its amounts are summed."""

    id: int
    kind: LoopKind
    name: str
    parent: int | None
    offsets: list[int]
    start: int
    end: int
    file: str | None
    line: int | None
    last_line: int | None
    trips: float | None


def _drafts(graph: Graph, executed: Mapping[int, float], first_id: int, *, is_kernel: bool) -> list[_Draft]:
    """Make the rows of one function: each loop that ran, and the straight parts between them."""
    runs = _runs(graph, executed)
    ran = [index for index, ring in enumerate(graph.rings) if any(runs[block] for block in ring.blocks)]
    kept = {index: first_id + place for place, index in enumerate(ran)}
    inner_of: dict[int, int] = {}
    for index in sorted(ran, key=lambda index: -len(graph.rings[index].blocks)):
        inner_of |= dict.fromkeys(graph.rings[index].blocks, index)
    flows = _flows(graph, runs)
    own: dict[int, list[int]] = defaultdict(list)
    straight: dict[int, list[int]] = defaultdict(list)
    outermost = sorted(
        graph.blocks[graph.rings[index].header].first for index in ran if _parent(graph, index, kept) is None
    )
    for index, block in enumerate(graph.blocks):
        offsets = [one.offset for one in graph.instructions[block.first : block.end]]
        if index in inner_of:
            own[inner_of[index]] += offsets
        else:
            straight[bisect_right(outermost, block.first)] += offsets
    by_offset = {one.offset: one for one in graph.instructions}
    drafts = []
    for index in ran:
        ring = graph.rings[index]
        parent = _parent(graph, index, kept)
        places = [block for block in ring.blocks if runs[block]] or [ring.header]
        header = graph.instructions[graph.blocks[ring.header].first]
        file, line, last_line = _lines(graph, ring, own[index])
        drafts.append(
            _Draft(
                kept[index],
                "loop",
                "",
                None if parent is None else kept[parent],
                own[index],
                header.offset,
                max(graph.instructions[graph.blocks[block].end - 1].offset for block in places),
                file,
                line,
                last_line,
                _trips(graph, ring, runs, flows),
            )
        )
    names = {0: "prologue", len(outermost): "epilogue"} if outermost else {0: "body"}
    for place in sorted(straight):
        offsets = straight[place]
        if not any(offset in executed for offset in offsets):
            # Cold code holds no amounts but stray samples, which follow what ran (`_settled`).
            continue
        at = [offset for offset in offsets if offset in executed]
        file, line, last_line = _span([by_offset[offset] for offset in at])
        name = names.get(place, "between") if is_kernel else "called"
        drafts.append(
            _Draft(
                first_id + len(drafts), "straight", name, None, offsets, min(at), max(at), file, line, last_line, None
            )
        )
    return drafts


def _parent(graph: Graph, index: int, kept: Mapping[int, int]) -> int | None:
    """Return the loop around a loop, of those that ran."""
    parent = graph.rings[index].parent
    while parent is not None and parent not in kept:
        parent = graph.rings[parent].parent
    return parent


def _lines(graph: Graph, ring: Ring, own: Sequence[int]) -> tuple[str | None, int | None, int | None]:
    """Return file and lines of a loop: that of its statement, as header and jumps back have it, and its last."""
    by_offset = {one.offset: one for one in graph.instructions}
    file, first, last = _span([by_offset[offset] for offset in own])
    entry = next((one.line for one in graph.instructions if one.file == file and one.line is not None), 0)
    header = graph.instructions[graph.blocks[ring.header].first]
    ends = [graph.instructions[graph.blocks[latch].end - 1] for latch in ring.latches]
    stated = [one.line for one in (header, *ends) if one.line is not None and one.file == file]
    # What stands above the kernel's own first line was inlined.
    within = [line for line in stated if line >= entry] or stated
    if file is None or first is None or not within:
        return file, first, last
    return file, min(within), max(last or first, *within)


def _span(instructions: Sequence[Instruction]) -> tuple[str | None, int | None, int | None]:
    """Return the file that most instructions are of, and their first and last line in it."""
    files = Counter(one.file for one in instructions if one.file is not None)
    if not files:
        return None, None, None
    file = files.most_common(1)[0][0]
    lines = [one.line for one in instructions if one.file == file and one.line is not None]
    return file, min(lines), max(lines)


def _flows(graph: Graph, runs: Sequence[float]) -> dict[tuple[int, int], float]:
    """Return how often each edge was taken, as far as block counts imply: flow in equals flow out.

    Where threads of a warp part, more goes out than comes in; what is left over is then never below zero.
    """
    known: dict[tuple[int, int], float] = {}
    roots = set(graph.roots)
    pending = set(range(len(graph.blocks)))
    while pending:
        more: set[int] = set()
        for block in pending:
            for edges, is_whole in (
                ([(block, one) for one in graph.after[block]], True),
                ([(one, block) for one in graph.before[block]], block not in roots),
            ):
                unknown = [edge for edge in edges if edge not in known]
                if len(unknown) == 1 and is_whole:
                    rest = runs[block] - sum(known[edge] for edge in edges if edge in known)
                    known[unknown[0]] = max(0.0, rest)
                    more.update(unknown[0])
        pending = more
    return known


def _trips(graph: Graph, ring: Ring, runs: Sequence[float], flows: Mapping[tuple[int, int], float]) -> float | None:
    """Return how often the body runs for each warp that enters; None if entries are unknown."""
    outside = [one for one in graph.before[ring.header] if one not in ring.blocks]
    entering = [flows.get((one, ring.header)) for one in outside]
    if any(one is None for one in entering):
        back = [flows.get((one, ring.header)) for one in ring.latches]
        if any(one is None for one in back):
            return None
        entries = runs[ring.header] - sum(one for one in back if one is not None)
    else:
        entries = sum(one for one in entering if one is not None)
    if entries <= 0:
        return None
    trips = runs[ring.header] / entries
    leaves = {block for block in ring.blocks if any(one not in ring.blocks for one in graph.after[block])}
    has_body = any(
        opcode_group(one.opcode) != "control"
        for block in ring.blocks - {ring.header}
        for one in graph.instructions[graph.blocks[block].first : graph.blocks[block].end]
    )
    return trips - 1 if leaves == {ring.header} and has_body else trips


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
        for offset, amount in by_offset.items():
            row = own[rows[offset]]
            row[measure] = row.get(measure, 0.0) + amount
    flop: dict[int, dict[str, float]] = {draft.id: {} for draft in drafts}
    for one in code.instructions:
        found = flop_of(one, code)
        if found is not None and one.offset in rows:
            of_row = flop[rows[one.offset]]
            of_row[found[0]] = of_row.get(found[0], 0.0) + found[1]
    whole = {draft.id: dict(own[draft.id]) for draft in drafts}
    whole_flop = {draft.id: dict(flop[draft.id]) for draft in drafts}
    parents = {draft.id: draft.parent for draft in drafts}
    for draft in drafts:
        parent = draft.parent
        while parent is not None:
            _add(whole[parent], own[draft.id])
            _add(whole_flop[parent], flop[draft.id])
            parent = parents[parent]
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
            amounts=whole[draft.id],
            own=own[draft.id],
            flop=whole_flop[draft.id],
            own_flop=flop[draft.id],
        )
        for draft in drafts
    )


def _add(to: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0.0) + amount


def flop_of(one: Instruction, code: MachineCode) -> tuple[str, float] | None:
    """Return type and number of the floating-point operations of an instruction; None if it does none.

    Thread instructions by their opcode, matrix instructions by the warps that ran them; integer ones are named so.
    """
    if (scalar := thread_flop(one.opcode)) is not None:
        if one.loads_constant:
            return None
        return scalar[0], scalar[1] * code.amounts.get("thread_inst", {}).get(one.offset, 0.0)
    if (matrix := tensor_op(one.opcode)) is not None:
        return f"tensor_{matrix.dtype}", matrix.ops * code.amounts.get("warp_inst", {}).get(one.offset, 0.0)
    return None
