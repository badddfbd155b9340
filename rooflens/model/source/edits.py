"""The statement that a move changes, and a sketch of what it becomes, with the kernel's own names and sizes.

A rule makes a sketch only where it holds for every program whose text it matches, and where what it relies on was found
in the source. Nothing here is compiled: the sketch says where to begin, and the next profile whether it was right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import significant
from rooflens.model.hotspots import caller_of
from rooflens.model.records import Edit, Finding, Hotspot, Kernel, Move
from rooflens.model.source.banks import Remedy, Replay, find_remedy, shared_arrays, type_bytes
from rooflens.model.source.expressions import UnknownError
from rooflens.model.source.names import Definitions, Site, closing, divided, loop_parts, parameters_of, rounds
from rooflens.model.source.same import bare_function
from rooflens.model.source.text import Scope, SourceText, Statement, is_c_like

_MOST_LINES = 3
_SAME_WAYS = 0.02
"""Ways replayed and counted are the same up to this share: samples of addresses are exact."""
_FULL_WARP = "0xffffffff"


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
    """Sketch a change of a kernel's own head, where a file of its hot lines defines it."""
    for file, held in kernel.sources.items():
        if held.text is None or not is_c_like(file):
            continue
        source = _parsed(held.text)
        if (function := source.kernel(bare_function(kernel))) is not None:
            place = _Place(kernel, file, source, Hotspot("line", file), function.head, function)
            sketch = rule(place, finding)
            return None if sketch is None else replace(place.edit(), after=sketch.after, note=sketch.note)
    return None


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
    after, note = _laid_out(place, remedy)
    statement = remedy.array.statement if remedy.layout.pad else None
    return _Sketch(after, note, statement, (before.ways, remedy.after.ways))


def counted_ways(spot: Hotspot) -> float | None:
    """Return the passes of a line's shared-memory accesses for each that their bytes need; None if not counted."""
    taken = spot.measures.get("shared_wavefronts")
    ideal = (taken or 0.0) - spot.measures.get("shared_excess_wavefronts", 0.0)
    return taken / ideal if taken and ideal > 0 else None


def _laid_out(place: _Place, remedy: Remedy) -> tuple[tuple[str, ...], str]:
    array, layout = remedy.array, remedy.layout
    if layout.pad:
        declared = place.source.clean[array.at : array.statement.end]
        subscripts = _bracketed(declared)
        last = subscripts[-1].strip()
        grown = f"{last} + {layout.pad}" if re.fullmatch(r"[\w\s*+()]+", last) else f"({last}) + {layout.pad}"
        kept = "".join(f"[{one.strip()}]" for one in subscripts[:-1])
        lead = place.source.text[array.statement.start : array.at]
        begin = lead if "," not in lead else f"{lead.partition(',')[0].rsplit(None, 1)[0]} {array.name}"
        more = layout.pad * array.element_bytes * _rows(array.sizes)
        return (f"{' '.join(begin.split())}{kept}[{grown}];",), f"{more:,} more bytes of shared memory a block"
    whole = "".join("[...]" for _ in array.sizes[:-1])
    if layout.skip:
        size = f"a {layout.skip}th more elements" if array.sizes[0] is not None else "a 32nd more bytes at the launch"
        lines = (f"#define SPREAD(i) ((i) + (i) / {layout.skip})", f"{array.name}[SPREAD(index)]  // at every access")
        return lines, f"{size} for `{array.name}`"
    number = f"(i) / 32 % {layout.groups}" + (f" * {layout.vector}" if layout.vector > 1 else "")
    access = f"{array.name}{whole}[SWIZZLED(index)]  // at every access"
    unit = f"; {layout.vector} elements that are moved at once stay side by side" if layout.vector > 1 else ""
    return (f"#define SWIZZLED(i) ((i) ^ ({number}))", access), f"takes no more shared memory{unit}"


def _rows(sizes: Sequence[int | None]) -> int:
    rows = 1
    for size in sizes[:-1]:
        rows *= size or 1
    return rows


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
        declared = re.search(rf"([\w:]+)\s*(?:const\s*)?\*\s*(?:(?:const|__restrict__|__restrict)\s*)*{name}\b", head)
        if declared is not None:
            found[name] = type_bytes(declared[1]) or 4
    return found


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
        target = f"{found[1]}{' '.join(found[2].split())}"
        lines = (
            f"__pipeline_memcpy_async(&{target}, &{found[3]}{' '.join(found[4].split())}, sizeof({target}));",
            "__pipeline_commit();  // into a second buffer, while this one is used",
            "__pipeline_wait_prior(0);  // before the barrier behind which it is read",
        )
        return _Sketch(lines, "needs `<cuda_pipeline.h>`, and a second tile to load ahead into", one)
    return None


def _around_line(place: _Place) -> Iterator[Statement]:
    """Yield the statement of a place, and those of the loop around it."""
    yield place.statement
    head = _loop_around(place)
    if head is not None:
        scope = next((one for one in place.source.scopes if one.head == head), None)
        yield from (one for one in place.source.statements if scope is not None and scope.start < one.start < scope.end)


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
    if not re.fullmatch(r"&?\s*[A-Za-z_][\w.>-]*(?:\s*\[.*\])?", target) or _may_skip(place):
        return None
    lines = (
        f"auto sum = {value};",
        f"for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync({_FULL_WARP}, sum, lanes);",
        f"if (threadIdx.x % 32 == 0) atomicAdd({target}, sum);",
    )
    return _Sketch(lines, "an atomic a warp instead of 32; sums of floats are then added in another order")


def _may_skip(place: _Place) -> bool:
    """Return whether lanes of a warp may not reach a statement: under a condition, in a loop or behind a return."""
    source = place.source
    for scope in source.around(place.statement):
        if scope.start <= place.function.start:
            break
        return True
    before = source.clean[place.function.start : place.statement.start]
    return re.search(r"\breturn\b", before) is not None


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
        body = re.sub(rf"\b{name}\b", "index", " ".join((rest or "").split()))
        if not body or "__sync" in body:
            return None
        wide = stride if stride.startswith("(") or re.fullmatch(r"\w+", stride) else f"({stride})"
        lines = (f"int index = {wide} * {name};", f"if (index < blockDim.x) {body};")
        return _Sketch(
            lines, f"the work is then done by the first threads, in whole warps; `{name}` is the index elsewhere", head
        )
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
    ends = {";": ";", "{": " {"}.get(place.statement.closes, "")
    return _Sketch((f"{changed}{ends}",), "a constant without `f` is a double, and so is what is computed with it")


def _bounded(place: _Place, finding: Finding | None) -> _Sketch | None:
    """Tell the compiler how many blocks are to fit on an SM."""
    block, capped = place.kernel.block, {one.name: one.value for one in finding.evidence} if finding is not None else {}
    registers = capped.get("registers that would allow more")
    if registers is None or block is None or "__launch_bounds__" in place.code:
        return None
    name = bare_function(place.kernel)
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
    "stall_long_scoreboard": _unrolled,
    "local_memory": _all_unrolled,
    "unoverlapped_loads": _copied_asynchronously,
    "contended_atomics": _added_by_warps,
    "thread_divergence": _without_divergence,
    **dict.fromkeys(_OF_LITERALS, _single_precision),
}
"""Finding -> what makes its sketch."""
