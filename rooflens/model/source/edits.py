"""The statement that a move changes, and a sketch of what it becomes, with the kernel's own names and sizes.

A rule makes a sketch only where it holds for every program whose text it matches, and where what it relies on was found
in the source. Nothing here is compiled: the sketch says where to begin, and the next profile whether it was right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import significant
from rooflens.model.hotspots import caller_of
from rooflens.model.keys import function_of
from rooflens.model.records import Edit, Finding, Hotspot, Kernel, Move
from rooflens.model.source.banks import Remedy, Replay, SharedArray, find_remedy, shared_arrays, type_bytes
from rooflens.model.source.expressions import UnknownError
from rooflens.model.source.names import Definitions, Site, closing, divided, loop_parts, parameters_of, rounds
from rooflens.model.source.text import Scope, SourceText, Statement, is_c_like, name_of_function

_MOST_LINES = 3
_SAME_WAYS = 0.02
"""Ways replayed and counted are the same up to this share: samples of addresses are exact."""
_FULL_WARP = "0xffffffff"
_END_OF = {";": ";", "{": " {"}
"""What ends a statement -> how a line with it goes on."""


class _Place(Struct, frozen=True):
    """The line that a move is about.

    Attributes:
        spot: The hot spot there.
        function: The body of the function around it.
    """

    kernel: Kernel
    file: str
    source: SourceText
    spot: Hotspot
    statement: Statement
    function: Scope

    @property
    def code(self) -> str:
        """The statement, comments blanked."""
        return self.source.code(self.statement)

    def edit(self, statement: Statement | None = None) -> Edit:
        """Return a statement, by default that of the line, without a sketch."""
        return _edit_of(self.source, self.file, statement or self.statement)


class _Sketch(Struct, frozen=True):
    """What a rule makes of a place.

    Attributes:
        statement: The one that changes, where that is not the one of the place.
        after: What it becomes; empty for none.
    """

    after: tuple[str, ...] = ()
    note: str = ""
    statement: Statement | None = None
    ways: tuple[float, float | None] | None = None


def with_edits(kernel: Kernel, moves: Sequence[Move], findings: Iterable[Finding], key: str) -> tuple[Move, ...]:
    """Add to moves the statements that they change, as far as the source is known.

    Args:
        kernel: The kernel.
        moves: Its moves.
        findings: Its findings, whose numbers some sketches need.
        key: Key of the launch, for the command that checks a change.
    """
    if not any(source.text for source in kernel.sources.values()):
        return tuple(moves)
    by_id = {finding.id: finding for finding in findings}
    check = f"rooflens compare BEFORE AFTER --kernel {key}"
    made = []
    for move in moves:
        edit = _edit(kernel, move, by_id.get(move.finding or ""))
        made.append(move if edit is None else replace(move, edit=replace(edit, check=check)))
    return tuple(made)


@lru_cache(maxsize=64)
def _parsed(text: str) -> SourceText:
    return SourceText(text)


def _edit(kernel: Kernel, move: Move, finding: Finding | None) -> Edit | None:
    if move.finding in _OF_A_KERNEL:
        return _of_kernel(kernel, _OF_A_KERNEL[move.finding], finding)
    if not move.where and move.kind in _WITHOUT_A_PLACE:
        return _WITHOUT_A_PLACE[move.kind](kernel)
    for spot in _spots(kernel, move):
        text = _text_of(kernel, spot.file)
        if text is None or spot.file is None or spot.line is None:
            continue
        if not is_c_like(spot.file):
            return _line_of(spot.file, text, spot.line)
        source = _parsed(text)
        statement = source.statement_at(spot.line)
        function = None if statement is None else source.function_at(statement.start)
        if statement is None:
            continue
        if function is None:
            return _edit_of(source, spot.file, statement)
        place = _Place(kernel, spot.file, source, spot, statement, function)
        return _sketched(place, move)
    return None


def _spots(kernel: Kernel, move: Move) -> Iterator[Hotspot]:
    """Yield the places of a move, as lines of the program itself; of double literals, the hottest line with one."""
    if not move.where and move.finding in _OF_LITERALS:
        yield from (spot for spot in kernel.hotspots if spot.by == "line" and _DOUBLE.search(spot.text or ""))
        return
    for place in move.where:
        called = caller_of(kernel.inside, place.hotspot)
        if called is not None and _text_of(kernel, called[0]) is not None:
            yield Hotspot("line", *called, measures=place.hotspot.measures)
        yield place.hotspot


def _text_of(kernel: Kernel, file: str | None) -> str | None:
    source = kernel.sources.get(file or "")
    return None if source is None else source.text


def _line_of(file: str, text: str, line: int) -> Edit | None:
    lines = text.splitlines()
    if not 0 < line <= len(lines) or not lines[line - 1].strip():
        return None
    return Edit(file, line, line, (lines[line - 1].strip(),))


def _edit_of(source: SourceText, file: str, statement: Statement) -> Edit:
    first, last = source.line_of(statement.start), source.line_of(max(statement.start, statement.end - 1))
    end = statement.end + (statement.closes in {";", "{"})
    shown = source.text[statement.start : end].splitlines()[:_MOST_LINES]
    return Edit(file, first, last, tuple(line.strip() for line in shown))


def _sketched(place: _Place, move: Move) -> Edit:
    rule = _RULES.get(move.finding or "")
    try:
        sketch = rule(place) if rule is not None else None
    except (UnknownError, RecursionError):
        sketch = None
    if sketch is None:
        return place.edit()
    before, after = sketch.ways or (None, None)
    return replace(
        place.edit(sketch.statement),
        after=sketch.after[:_MOST_LINES],
        note=sketch.note,
        ways_before=before,
        ways_after=after,
    )


def _of_kernel(
    kernel: Kernel, rule: Callable[[_Place, Finding | None], _Sketch | None], finding: Finding | None
) -> Edit | None:
    """Sketch a change of a kernel's own head."""
    place = _head(kernel)
    sketch = rule(place, finding) if place is not None else None
    if place is None or sketch is None:
        return None
    return replace(place.edit(), after=sketch.after, note=sketch.note)


# --- moves about no line: what the launch and the thread's index say

_MOST_HOPS = 4


def _grid(kernel: Kernel) -> Edit | None:
    """Return the statement that sets the grid of a kernel's launches; None if they are not in sight, or differ."""
    name = re.escape(function_of(kernel.function_name))
    launch = re.compile(rf"\b{name}\s*(?:<[^;{{}}]*?>\s*)?<<<(?P<what>[^;]*?)>>>")
    found = {
        _edit_of(source, file, _set_by(source, one, grid[0]))
        for file, source in _sources(kernel)
        for one in source.statements
        for match in launch.finditer(source.code(one))
        if one.closes != "#" and (grid := divided(match["what"]))
    }
    return found.pop() if len(found) == 1 else None


def _set_by(source: SourceText, statement: Statement, value: str) -> Statement:
    """Return the statement that gives a value its size: where it is a variable, that which sets it, and so on."""
    for _ in range(_MOST_HOPS):
        if re.fullmatch(r"[A-Za-z_]\w*", name := value.strip()) is None:
            break
        setting = re.compile(rf"\bdim3\s+(?:[^;=(]*,\s*)?{name}\s*\(|(?<![\w.>])\b{name}\s*=(?!=)")
        around = {-1, statement.scope, *(source.scopes.index(one) for one in source.around(statement))}
        before = [one for one in source.statements if one.start < statement.start and one.scope in around]
        setters = [(one, match) for one in before if (match := setting.search(source.code(one))) is not None]
        if not setters:
            break
        statement, match = setters[-1]
        rest = source.code(statement)[match.end() :]
        value = rest.rpartition(")")[0] if match[0].endswith("(") else rest
    return statement


def _index(kernel: Kernel) -> Edit | None:
    """Return the statement that gives a thread its place in the grid."""
    if (place := _head(kernel)) is None:
        return None
    source, function = place.source, place.function
    inside = (one for one in source.statements if function.start < one.start < function.end)
    return next((place.edit(one) for one in inside if _is_place_in_grid(source.code(one))), None)


def _is_place_in_grid(code: str) -> bool:
    return _sets_an_index(code) and "blockIdx" in code and "threadIdx" in code


def _indexed_constant(kernel: Kernel) -> Edit | None:
    """Return the hottest statement of a kernel that reads an array of constants by an index."""
    if (place := _head(kernel)) is None:
        return None
    source, function = place.source, place.function
    declared = (source.code(one) for one in source.statements if one.scope < 0)
    names = [found[1] for code in declared if (found := _CONSTANT_ARRAY.search(code)) is not None]
    read = re.compile(rf"(?<![\w.>])(?:{'|'.join(names)})\s*\[[^\]]*[A-Za-z_]")
    for spot in kernel.hotspots if names else ():
        statement = source.statement_at(spot.line) if spot.file == place.file and spot.line is not None else None
        is_inside = statement is not None and function.start < statement.start < function.end
        if statement is not None and is_inside and read.search(source.code(statement)):
            return place.edit(statement)
    return None


_CONSTANT_ARRAY = re.compile(r"\b__constant__\b[^=;]*?\b([A-Za-z_]\w*)\s*\[")


def _of_a_reduction(kernel: Kernel, rule: Callable[[_Place], _Sketch | None]) -> Edit | None:
    """Return what a rule makes of the loop in which a block adds up its values."""
    place = _head(kernel)
    sketch = rule(place) if place is not None else None
    if place is None or sketch is None:
        return None
    return replace(place.edit(sketch.statement), after=sketch.after, note=sketch.note)


def _head(kernel: Kernel) -> _Place | None:
    """Return the head of a kernel, where a file of its hot lines defines it."""
    for file, source in _sources(kernel):
        if (function := source.kernel(function_of(kernel.function_name))) is not None:
            return _Place(kernel, file, source, Hotspot("line", file), function.head, function)
    return None


def _sources(kernel: Kernel) -> Iterator[tuple[str, SourceText]]:
    """Yield the C++ files of a kernel whose text is at hand."""
    for file, held in kernel.sources.items():
        if held.text is not None and is_c_like(file):
            yield file, _parsed(held.text)


_WITHOUT_A_PLACE: Mapping[str, Callable[[Kernel], Edit | None]] = {
    "blocks": _grid,
    "elements": _index,
    "index": _indexed_constant,
    "barrier": lambda kernel: _of_a_reduction(kernel, _last_warp_alone),
    "shuffle": lambda kernel: _of_a_reduction(kernel, _with_shuffles),
}
"""Kind of a move that names no line -> what finds its statement."""


# --- shared memory


def _without_conflicts(place: _Place) -> _Sketch | None:
    """Lay an array out without bank conflicts, where the replay of today's addresses equals what was counted."""
    counted = counted_ways(place.spot)
    replay = Replay(place.source, place.kernel, place.function)
    before = replay.at(place.statement)
    if counted is None or abs(before.ways - counted) > _SAME_WAYS * counted:
        return None
    remedy = find_remedy(replay, place.statement, before)
    if remedy is None:
        return _Sketch(ways=(before.ways, None))
    return _laid_out(place, remedy, replay)


def counted_ways(spot: Hotspot) -> float | None:
    """Return the passes of a line's shared-memory accesses for each that their bytes need; None if not counted."""
    taken = spot.measures.get("shared_wavefronts")
    ideal = (taken or 0.0) - spot.measures.get("shared_excess_wavefronts", 0.0)
    return taken / ideal if taken and ideal > 0 else None


def _laid_out(place: _Place, remedy: Remedy, replay: Replay) -> _Sketch:
    array, layout = remedy.array, remedy.layout
    ways = remedy.before.ways, remedy.after.ways
    if layout.is_transposed:
        return _Sketch(_transposed(place, remedy, replay), "columns become rows, in as much shared memory", ways=ways)
    if layout.pad:
        more = layout.pad * array.element_bytes * prod(size or 1 for size in array.sizes[:-1])
        note = f"{more:,} more bytes of shared memory a block"
        return _Sketch((_padded(place, remedy),), note, array.statement, ways)
    if layout.skip:
        size = f"a {layout.skip}th more elements" if array.sizes[0] is not None else "a 32nd more bytes at the launch"
        macro, note = f"SPREAD(i) ((i) + (i) / {layout.skip})", f"{size} for `{array.name}`"
    else:
        number = f"(i) / 32 % {layout.groups}" + (f" * {layout.vector}" if layout.vector > 1 else "")
        unit = f"; {layout.vector} elements that are moved at once stay side by side" if layout.vector > 1 else ""
        macro, note = f"SWIZZLED(i) ((i) ^ ({number}))", f"takes no more shared memory{unit}"
    name = macro.partition("(")[0]
    changed = _with_indices(place, place.statement, array, lambda of: [*of[:-1], f"{name}({of[-1].strip()})"])
    return _Sketch((f"#define {macro}", f"{changed}  // so at every access to `{array.name}`"), note, ways=ways)


def _padded(place: _Place, remedy: Remedy) -> str:
    """Return the declaration of an array with a longer last dimension."""
    lead, sizes = _declared(place, remedy.array)
    last = sizes[-1]
    grown = f"{last} + {remedy.layout.pad}" if re.fullmatch(r"[\w\s*+()]+", last) else f"({last}) + {remedy.layout.pad}"
    return f"{lead}{_subscripts_of([*sizes[:-1], grown])};"


def _transposed(place: _Place, remedy: Remedy, replay: Replay) -> tuple[str, ...]:
    """Return the statements of an array with the last two indices swapped, and its declaration where that changes."""
    array, source = remedy.array, place.source
    lines = [_with_indices(place, place.statement, array, _swapped_last)]
    if array.sizes[-2] != array.sizes[-1]:
        lead, sizes = _declared(place, array)
        lines.insert(0, f"{lead}{_subscripts_of(_swapped_last(sizes))};")
    others = [one for one in replay.users(array) if one != place.statement]
    if len(lines) + len(others) > _MOST_LINES:
        return (*lines, f"// and so at every other access to `{array.name}`")
    changed = (f"{source.line_of(one.start)}: {_with_indices(place, one, array, _swapped_last)}" for one in others)
    return (*lines, *(f"// and at line {one}" for one in changed))


def _swapped_last(parts: Sequence[str]) -> list[str]:
    return [*parts[:-2], parts[-1], parts[-2]]


def _with_indices(
    place: _Place, statement: Statement, array: SharedArray, change: Callable[[Sequence[str]], Sequence[str]]
) -> str:
    """Return a statement on one line, with other indices at its accesses to an array.

    Raises:
        UnknownError: It has an access within another, or none that is written out.
    """
    code, pieces, at = place.source.code(statement), list[str](), 0
    for found in re.finditer(rf"(?<![\w.>]){re.escape(array.name)}\s*(?=\[)", code):
        indices = _bracketed(code[found.end() :])
        if len(indices) != len(array.sizes) or found.start() < at:
            raise UnknownError
        pieces += [code[at : found.end()], _subscripts_of(change(indices))]
        at = found.end()
        for _ in indices:
            at = closing(code, code.index("[", at)) + 1
    if not pieces:
        raise UnknownError
    return " ".join("".join([*pieces, code[at:]]).split()) + _END_OF.get(statement.closes, "")


def _subscripts_of(parts: Iterable[str]) -> str:
    return "".join(f"[{' '.join(one.split())}]" for one in parts)


def _declared(place: _Place, array: SharedArray) -> tuple[str, list[str]]:
    """Return what stands before the dimensions of an array where it is declared alone, and these."""
    lead = place.source.text[array.statement.start : array.at]
    begin = lead if "," not in lead else f"{lead.partition(',')[0].rsplit(None, 1)[0]} {array.name}"
    sizes = _bracketed(place.source.clean[array.at : array.statement.end])
    return " ".join(begin.split()), [one.strip() for one in sizes]


def _bracketed(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text) and text[at] == "[":
        end = closing(text, at)
        found.append(text[at + 1 : end])
        at = end + 1
        while at < len(text) and text[at].isspace():
            at += 1
    return found


# --- global memory

_ACCESS = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\[")
_ASSUMED = 1 << 12
"""What an unknown size is taken for: a row of it is longer than a warp's access."""
_SECTOR_BYTES, _LANES = 32, 32


def _coalesced(place: _Place) -> _Sketch | None:
    """Swap the roles of `threadIdx.x` and `threadIdx.y`, where that makes fewer sectors of all accesses."""
    kernel, source, function = place.kernel, place.source, place.function
    if kernel.block is None or kernel.block[0] != kernel.block[1] or kernel.block[2] != 1:
        return None
    setters = [
        one
        for one in source.statements
        if function.start < one.start < function.end and re.search(r"\bthreadIdx\s*\.\s*[xy]\b", source.code(one))
    ]
    if not 0 < len(setters) <= _MOST_LINES or not all(_sets_an_index(source.code(one)) for one in setters):
        return None
    if _BY_LANES.search(source.clean[function.start : function.end]) or _asks_elsewhere(source, function):
        return None
    site = Site(Definitions(source), kernel, function, _ASSUMED)
    turned = Site(Definitions(source), kernel, function, _ASSUMED, is_turned=True)
    before, after = (_sectors(one, place) for one in (site, turned))
    if not before or after is None or after >= before:
        return None
    lines = tuple(f"{_swapped(source.text[one.start : one.end])};" for one in setters)
    first = min(setters, key=lambda one: one.start)
    last = max(setters, key=lambda one: one.end)
    whole = Statement(first.start, last.end, ";", first.scope)
    note = (
        f"`threadIdx.x` then walks along the rows: a warp's accesses touch {significant(after)} sectors instead of "
        f"{significant(before)}, by their indices"
    )
    return _Sketch(lines, note, whole)


_BY_LANES = re.compile(
    r"__(?:shfl|ballot|any|all|match|reduce|syncwarp|activemask)\w*|\bwmma\b|\basm\b|tiled_partition|coalesced_threads"
)
"""What depends on which threads make up a warp."""


def _asks_elsewhere(source: SourceText, function: Scope) -> bool:
    """Return whether a macro or another function that a function calls asks which thread it runs in."""
    body = source.clean[function.start : function.end]
    macros = (name for name, macro in Definitions(source).macros.items() if "threadIdx" in macro.body)
    functions = (
        name_of_function(source.code(one.head))
        for one in source.scopes
        if one is not function and "threadIdx" in source.clean[one.start : one.end]
    )
    return any(re.search(rf"\b{name}\b", body) for name in (*macros, *functions) if name is not None)


def _sets_an_index(code: str) -> bool:
    return (
        re.match(r"(?:const\s+)?(?:(?:unsigned|int|auto|size_t|uint32_t|int64_t|long)\s+)+\w+\s*=(?!=)", code)
        is not None
    )


def _swapped(text: str) -> str:
    other = {"x": "y", "y": "x"}
    text = " ".join(text.split())
    return re.sub(r"\bthreadIdx\s*\.\s*([xy])\b", lambda found: f"threadIdx.{other[found[1]]}", text)


def _sectors(site: Site, place: _Place) -> float | None:
    """Return the sectors that a warp's accesses of a function touch; None if those of the place are not known."""
    total, known = 0.0, False
    for one in site.source.statements:
        if not site.function.start < one.start < site.function.end or one.closes == "#":
            continue
        for element_bytes, index in _global_accesses(site, one):
            try:
                lanes = site.value(index, one.start + 1).lanes
            except UnknownError:
                if one == place.statement:
                    return None
                continue
            total += len({lane * element_bytes // _SECTOR_BYTES for lane in lanes[:_LANES]})
            known = known or one == place.statement
    return total if known else None


def _global_accesses(site: Site, statement: Statement) -> Iterator[tuple[int, str]]:
    """Yield size and index of each access of a statement to an array that a parameter points to."""
    code = site.source.code(statement)
    pointed = pointers_of(site.source.code(site.function.head))
    for found in _ACCESS.finditer(code):
        if found[1] in pointed:
            try:
                yield pointed[found[1]], code[found.end() : closing(code, found.end() - 1)]
            except UnknownError:
                continue


def pointers_of(head: str) -> dict[str, int]:
    """Return the pointers among the parameters of a function, with the size of what each points to."""
    found: dict[str, int] = {}
    for name in parameters_of(head):
        if (kind := _pointed_type(head, name)) is not None:
            found[name] = type_bytes(kind) or 4
    return found


def _pointed_type(head: str, name: str) -> str | None:
    """Return the type that a parameter of a function points to; None for one that is no pointer."""
    declared = re.search(rf"([\w:]+)\s*(?:const\s*)?\*\s*(?:(?:const|__restrict__|__restrict)\s*)*{name}\b", head)
    return None if declared is None else declared[1]


# --- loops

_PRAGMA = re.compile(r"#\s*pragma\s+unroll|_Pragma|#\s*pragma\s+GCC\s+unroll")
_BARRIER = re.compile(r"__sync(?:threads|warp)|cooperative_groups|\.sync\s*\(|cuda::barrier|\basm\b")
_UNROLLED_BY_COMPILERS = 32
_UNROLL = 4


def _unrolled(place: _Place) -> _Sketch | None:
    """Unroll the innermost loop around a line that the compiler cannot, or did not, unroll itself."""
    source, head = place.source, _loop_around(place)
    if head is None or _is_told(source, head):
        return None
    body = _body_of(source, head)
    if _BARRIER.search(body) or re.search(r"\b(?:break|return|goto)\b", body):
        return None
    if place.kernel.inside is not None:
        line = source.line_of(head.start)
        loops = [one for one in place.kernel.inside.loops if one.file == place.file and one.line is not None]
        near = [
            one for one in loops if line <= (one.line or 0) <= source.line_of(max(head.end, head.start + len(body)))
        ]
        if any(one.anatomy is not None and (one.anatomy.unroll or 1) > 1 for one in near):
            return None
    site = Site(Definitions(source), place.kernel, place.function)
    trips = sum(1 for _ in rounds(site, [head]))
    is_known = next(iter(rounds(site, [head])), {}) != {}
    if is_known and trips <= _UNROLLED_BY_COMPILERS:
        return None
    first = _first_line(source, head)
    return _Sketch((f"#pragma unroll {_UNROLL}", first), "the loads of its trips can then be in flight together", head)


def _loop_around(place: _Place) -> Statement | None:
    source = place.source
    if loop_parts(place.code) is not None:
        return place.statement
    for scope in source.around(place.statement):
        if scope.start <= place.function.start:
            return None
        if loop_parts(source.code(scope.head)) is not None:
            return scope.head
    return None


def _is_told(source: SourceText, head: Statement) -> bool:
    """Return whether a pragma before a loop says how to unroll it."""
    before = [one for one in source.statements if one.end <= head.start]
    return bool(before) and before[-1].closes == "#" and _PRAGMA.search(source.code(before[-1])) is not None


def _body_of(source: SourceText, head: Statement) -> str:
    scope = next((one for one in source.scopes if one.head == head), None)
    return source.clean[scope.start : scope.end] if scope is not None else source.code(head)


def _first_line(source: SourceText, head: Statement) -> str:
    code = source.code(head)
    end = closing(code, code.index("("))
    return " ".join(source.text[head.start : head.start + end + 1].split())


def _all_unrolled(place: _Place) -> _Sketch | None:
    """Unroll a loop whose index picks an element of an array of a thread: only then can that be in registers."""
    source, head = place.source, _loop_around(place)
    if head is None or _is_told(source, head):
        return None
    parts = loop_parts(source.code(head))
    name = re.search(r"\b([A-Za-z_]\w*)\s*=(?!=)", parts[0]) if parts is not None else None
    if name is None:
        return None
    body = _body_of(source, head)
    local = _local_arrays(place)
    indexed = [one for one in local if re.search(rf"\b{one}\s*(?:\[[^\]]*\])*\[[^\]]*\b{name[1]}\b", body)]
    site = Site(Definitions(source), place.kernel, place.function)
    if not indexed or next(iter(rounds(site, [head])), {}) == {}:
        return None
    note = f"`{indexed[0]}` can be in registers only where each index is known when it is compiled"
    return _Sketch(("#pragma unroll", _first_line(source, head)), note, head)


def _local_arrays(place: _Place) -> list[str]:
    """Return the arrays of a thread in a function."""
    source, found = place.source, []
    for one in source.statements:
        code = source.code(one)
        if place.function.start < one.start < place.function.end and "__shared__" not in code:
            declared = re.match(r"(?:const\s+|unsigned\s+)*[A-Za-z_][\w:]*\s+([A-Za-z_]\w*)\s*\[[^\]]+\]", code)
            if declared is not None and not code.startswith("return"):
                found.append(declared[1])
    return found


def _copied_asynchronously(place: _Place) -> _Sketch | None:
    """Copy an element from global to shared memory past registers."""
    if place.kernel.capability < (8, 0):
        return None
    site = Site(Definitions(place.source), place.kernel, place.function)
    arrays = {one.name: one for one in shared_arrays(site)}
    pattern = r"([A-Za-z_]\w*)\s*(\[.*\])\s*=\s*([A-Za-z_]\w*)\s*(\[.*\])\s*\Z"
    for one in _around_line(place):
        found = re.match(pattern, place.source.code(one), re.DOTALL)
        pointed = pointers_of(place.source.code(place.function.head))
        if found is None or found[1] not in arrays or found[3] not in pointed:
            continue
        if arrays[found[1]].element_bytes not in {4, 8, 16} or len(_bracketed(found[4])) != 1:
            continue
        if _element_type(place, arrays[found[1]]) != _pointed_type(place.source.code(place.function.head), found[3]):
            continue  # what is converted on the way goes through registers
        target = f"{found[1]}{' '.join(found[2].split())}"
        lines = (
            f"__pipeline_memcpy_async(&{target}, &{found[3]}{' '.join(found[4].split())}, sizeof({target}));",
            "__pipeline_commit();  // into a second buffer, while this one is used",
            "__pipeline_wait_prior(0);  // before the barrier behind which it is read",
        )
        return _Sketch(lines, "needs `<cuda_pipeline.h>`, and a second tile to load ahead into", one)
    return None


def _element_type(place: _Place, array: SharedArray) -> str:
    """Return the name of the type of an array's elements."""
    words = re.findall(r"[A-Za-z_][\w:]*", place.source.clean[array.statement.start : array.at])
    return next(iter(words[words.index("__shared__") + 1 :]), "")


def _around_line(place: _Place) -> Iterator[Statement]:
    """Yield the statement of a place, and those of the loop around it."""
    yield place.statement
    head = _loop_around(place)
    if head is not None:
        scope = next((one for one in place.source.scopes if one.head == head), None)
        yield from (one for one in place.source.statements if scope is not None and scope.start < one.start < scope.end)


# --- reductions of a block

_HALVED = r"{0}\s*(?:>>=\s*1|/=\s*2|=\s*{0}\s*(?:/\s*2|>>\s*1))"
_ENDS = r"{0}(?:\s*>\s*0|\s*>=\s*1|\s*!=\s*0)?"
_STEP = re.compile(
    r"if \( ?(?P<thread>[A-Za-z_][\w.]*) < (?P<steps>\w+) ?\) ?"
    r"(?P<open>\{ )?(?P<work>[^;{}]+;)(?(open) \}) __syncthreads\(\);"
)


class _Halving(Struct, frozen=True):
    """A loop in which half as many threads work in each step as in the one before, with a barrier behind each.

    Attributes:
        steps: Its variable.
        thread: What the number of a thread is called.
        work: The statement of a step.
    """

    head: Statement
    steps: str
    thread: str
    work: str


def _halving_loops(place: _Place) -> Iterator[_Halving]:
    """Yield the loops of a function that halve the threads of a block down to one, behind which one thread goes on."""
    source, function, block = place.source, place.function, place.kernel.block
    if block is None or block[1] * block[2] != 1 or block[0] < 2 * _LANES or block[0] & (block[0] - 1):
        return
    site = Site(Definitions(source), place.kernel, function)
    for scope in source.scopes:
        parts = loop_parts(source.code(scope.head)) if function.start < scope.start < function.end else None
        began = re.fullmatch(r"\s*[\w\s]*?\b([A-Za-z_]\w*)\s*=(.*)", parts[0], re.DOTALL) if parts else None
        step = _STEP.fullmatch(" ".join(source.clean[scope.start + 1 : scope.end - 1].split()))
        if parts is None or began is None or step is None or step["steps"] != began[1]:
            continue
        halves = re.fullmatch(_HALVED.format(began[1]), parts[2].strip())
        ends = re.fullmatch(_ENDS.format(began[1]), parts[1].strip())
        after = " ".join(source.clean[scope.end : function.end - 1].split())
        is_last = re.fullmatch(rf"(?:if \( ?{re.escape(step['thread'])} == 0 ?\) ?\{{?[^{{}};]*; ?\}}?)?", after)
        if halves is None or ends is None or is_last is None:
            continue
        try:
            is_whole = site.number(began[2], scope.head.start) == block[0] // 2
            is_thread = site.value(step["thread"], scope.start).lanes == tuple(range(block[0]))
        except UnknownError:
            continue
        if is_whole and is_thread:
            yield _Halving(scope.head, began[1], step["thread"], step["work"])


def _last_warp_alone(place: _Place) -> _Sketch | None:
    """Do the steps of a reduction that one warp does without barriers of the block."""
    loop = next(_halving_loops(place), None)
    if loop is None:
        return None
    last = (
        f"if ({loop.thread} < {_LANES}) for (int {loop.steps} = {_LANES // 2}; {loop.steps} > 0; {loop.steps} >>= 1) "
        f"{{ if ({loop.thread} < {loop.steps}) {loop.work} __syncwarp(); }}"
    )
    return _Sketch((_down_to_a_warp(place, loop), last), "the last five steps are one warp's", loop.head)


def _with_shuffles(place: _Place) -> _Sketch | None:
    """Add up the last values of a reduction in registers."""
    loop = next(_halving_loops(place), None)
    if loop is None:
        return None
    thread, steps = re.escape(loop.thread), re.escape(loop.steps)
    added = re.fullmatch(rf"(\w+)\s*\[\s*{thread}\s*\]\s*\+=\s*\1\s*\[\s*{thread}\s*\+\s*{steps}\s*\]\s*;", loop.work)
    if added is None:
        return None
    total = _unused(place, "sum")
    lines = (
        _down_to_a_warp(place, loop),
        f"auto {total} = {added[1]}[{loop.thread}]; {_shuffled(total)}",
        f"if ({loop.thread} == 0) {added[1]}[0] = {total};",
    )
    return _Sketch(lines, f"the last five steps are one warp's{_if_none_returned(place, loop.head)}", loop.head)


def _down_to_a_warp(place: _Place, loop: _Halving) -> str:
    """Return the head of a loop that ends where as many values are left as a warp has lanes."""
    first, _, step = loop_parts(place.source.code(loop.head)) or ("", "", "")
    parts = (" ".join(one.split()) for one in (first, f"{loop.steps} >= {_LANES}", step))
    return f"for ({'; '.join(parts)}) {{ ... }}  // its body as it is"


def _shuffled(name: str) -> str:
    """Return the loop that adds up a variable of all lanes of a warp in its first."""
    added = f"{name} += __shfl_down_sync({_FULL_WARP}, {name}, lanes)"
    return f"for (int lanes = {_LANES // 2}; lanes > 0; lanes /= 2) {added};"


def _unused(place: _Place, name: str) -> str:
    """Return a name for a new variable that the function does not use."""
    body = place.source.clean[place.function.start : place.function.end]
    while re.search(rf"\b{name}\b", body):
        name += "_"
    return name


def _if_none_returned(place: _Place, statement: Statement) -> str:
    """Say what a sketch relies on, where threads of a block may have returned before a statement."""
    before = place.source.clean[place.function.start : statement.start]
    return "; holds where no thread of the block has returned before" if re.search(r"\breturn\b", before) else ""


# --- atomics, branches, types, registers

_ATOMIC = re.compile(r"atomicAdd\s*\(")


def _added_by_warps(place: _Place) -> _Sketch | None:
    """Add up a warp's values before one of its lanes adds them to memory."""
    code, block = place.code, place.kernel.block
    found = _ATOMIC.match(code)
    if found is None or block is None or block[1] * block[2] != 1 or block[0] % _LANES:
        return None
    arguments = divided(code[found.end() : closing(code, found.end() - 1)])
    if len(arguments) != 2 or code[closing(code, found.end() - 1) + 1 :].strip():
        return None
    target, value = (" ".join(one.split()) for one in arguments)
    site = Site(Definitions(place.source), place.kernel, place.function)
    for index in _bracketed(target[target.find("[") :]) if "[" in target else ():
        if not site.value(index, place.statement.start).is_uniform:
            return None
    base = re.fullmatch(r"&?\s*([A-Za-z_]\w*)(?:\s*\[.*\])?", target)
    if base is None or site.setting(base[1], place.statement.start) is not None or site.steps(base[1]):
        return None  # a pointer that the function sets may be another in each thread
    if _may_skip(place):
        return None
    total = _unused(place, "sum")
    lines = (f"auto {total} = {value};", _shuffled(total), f"if (threadIdx.x % 32 == 0) atomicAdd({target}, {total});")
    return _Sketch(lines, "an atomic a warp instead of 32; sums of floats are then added in another order")


def _may_skip(place: _Place) -> bool:
    """Return whether lanes of a warp may not reach a statement: under a condition, in a loop or behind a return."""
    source = place.source
    for scope in source.around(place.statement):
        if scope.start <= place.function.start:
            break
        return True
    return bool(_if_none_returned(place, place.statement))


_MODULO = re.compile(r"if\s*\(\s*\(?\s*([A-Za-z_]\w*)\s*%\s*(\([^()]*\)|[\w.]+)\s*\)?\s*==\s*0\s*\)")


def _without_divergence(place: _Place) -> _Sketch | None:
    """Give the work of every so manieth thread to the first threads of the block."""
    source, block = place.source, place.kernel.block
    heads = [place.statement, *(scope.head for scope in source.around(place.statement))]
    for head in heads:
        found = _MODULO.match(source.code(head))
        if found is None or block is None or block[1] * block[2] != 1:
            continue
        name, stride = found[1], found[2]
        site = Site(Definitions(source), place.kernel, place.function)
        if site.value(name, head.start).lanes != tuple(range(block[0])) or site.steps(name):
            return None
        rest = source.code(head)[found.end() :].strip() if head.closes == ";" else _one_statement(source, head)
        index = _unused(place, "index")
        body = re.sub(rf"\b{name}\b", index, " ".join((rest or "").split()))
        if not body or "__sync" in body:
            return None
        wide = stride if stride.startswith("(") or re.fullmatch(r"\w+", stride) else f"({stride})"
        lines = (f"int {index} = {wide} * {name};", f"if ({index} < blockDim.x) {body};")
        note = f"the work is then done by the first threads, in whole warps; `{name}` is the index elsewhere"
        return _Sketch(lines, note + _if_none_returned(place, head), head)
    return None


def _one_statement(source: SourceText, head: Statement) -> str | None:
    """Return the statement of a scope that holds only one."""
    scope = next((one for one in source.scopes if one.head == head), None)
    inside = [one for one in source.statements if scope is not None and scope.start < one.start < scope.end]
    return source.code(inside[0]) if len(inside) == 1 and inside[0].closes == ";" else None


_DOUBLE = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])|(?<![\w.])\d+[eE][-+]?\d+(?![\w.])")


def _single_precision(place: _Place) -> _Sketch | None:
    """Write the double constants of a kernel that computes in float as floats."""
    whole = place.source.code(place.function.head) + place.source.clean[place.function.start : place.function.end]
    if re.search(r"\bdouble\b", whole) or "float" not in whole:
        return None
    text = " ".join(place.source.text[place.statement.start : place.statement.end].split())
    changed = _DOUBLE.sub(lambda found: f"{found[0]}f", text)
    if changed == text or '"' in text:
        return None
    line = changed + _END_OF.get(place.statement.closes, "")
    return _Sketch((line,), "a constant without `f` is a double, and so is what is computed with it")


def _bounded(place: _Place, finding: Finding | None) -> _Sketch | None:
    """Tell the compiler how many blocks are to fit on an SM."""
    block, capped = place.kernel.block, {one.name: one.value for one in finding.evidence} if finding is not None else {}
    registers = capped.get("registers that would allow more")
    if registers is None or block is None or "__launch_bounds__" in place.code:
        return None
    name = function_of(place.kernel.function_name)
    found = re.search(rf"\b{re.escape(name)}\s*\(", place.code)
    threads = block[0] * block[1] * block[2]
    blocks = int(_REGISTERS_OF_AN_SM // (-(-registers // 8) * 8 * -(-threads // _LANES) * _LANES))
    if found is None or blocks < 1:
        return None
    lead = " ".join(place.source.text[place.statement.start : place.statement.start + found.start()].split())
    before, keyword, after = lead.partition("__global__")
    if not keyword:
        return None
    start = f"{before}{keyword}{after} __launch_bounds__({threads}, {blocks}) {name}("
    note = (
        f"at most {registers:.0f} registers a thread: if it then spills to local memory, take it back; launches of "
        f"more than {threads} threads a block fail"
    )
    return _Sketch((f"{start}...)",), note)


_REGISTERS_OF_AN_SM = 1 << 16

_OF_LITERALS = frozenset({"slow_fp64", "conversions", "fp64_divisions"})
_OF_A_KERNEL: Mapping[str | None, Callable[[_Place, Finding | None], _Sketch | None]] = {"low_occupancy": _bounded}
_RULES: Mapping[str, Callable[[_Place], _Sketch | None]] = {
    "bank_conflicts": _without_conflicts,
    "uncoalesced_global_load": _coalesced,
    "uncoalesced_global_store": _coalesced,
    "stall_barrier": _last_warp_alone,
    "stall_long_scoreboard": _unrolled,
    "local_memory": _all_unrolled,
    "unoverlapped_loads": _copied_asynchronously,
    "contended_atomics": _added_by_warps,
    "thread_divergence": _without_divergence,
    **dict.fromkeys(_OF_LITERALS, _single_precision),
}
"""Finding -> what makes its sketch."""
