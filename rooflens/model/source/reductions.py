"""Sketches of sums over a block or the grid, of which a warp does its part alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from rooflens.model.source.banks import subscripts
from rooflens.model.source.expressions import UnknownError
from rooflens.model.source.names import WARP_THREADS, Definitions, Site, closing, divided, loop_parts
from rooflens.model.source.place import FULL_WARP, MoveLine, Sketch, if_none_returned, unused
from rooflens.model.source.text import Scope, Statement

_HALVED = r"{0}\s*(?:>>=\s*1|/=\s*2|=\s*{0}\s*(?:/\s*2|>>\s*1))"
_ENDS = r"{0}(?:\s*>\s*0|\s*>=\s*1|\s*!=\s*0)?"
_LONGEST_STEP = 1_000
"""Characters of a step: a longer one is no sum."""
_REDUCTION_STEP = re.compile(
    r"if ?\( ?(?P<thread>[A-Za-z_][\w.]*) ?< ?(?P<steps>\w+) ?\) ?"
    r"(?P<open>\{ ?)?(?P<work>[^;{}]+;) ?(?(open)\} ?)__syncthreads ?\( ?\) ?;"
)


_DOUBLED = r"{0}\s*(?:<<=\s*1|\*=\s*2|=\s*{0}\s*(?:\*\s*2|<<\s*1)|\+=\s*{0})"
_INDEXED_STEP = re.compile(
    r"(?:(?:const|unsigned|int|uint|auto|size_t) )+(?P<index>\w+) ?= ?(?P<product>[^;]+); ?"
    r"if ?\( ?(?P=index) ?< ?(?P<threads>[^;{}()]+?) ?\) ?"
    r"(?P<open>\{ ?)?(?P<array>\w+) ?\[ ?(?P=index) ?\] ?\+= ?(?P=array) ?\[ ?(?P=index) ?\+ ?(?P<steps>\w+) ?\] ?; ?"
    r"(?(open)\} ?)__syncthreads ?\( ?\) ?;"
)


class _Loop(Struct, frozen=True):
    """A `for` in a kernel whose blocks have a power of two of threads, in one direction.

    Attributes:
        steps: Its variable.
        first: What that is set to.
        parts: What stands between its brackets.
        body: What it does, on one line.
        after: What the kernel does behind it, on one line.
    """

    scope: Scope
    steps: str
    first: str
    parts: tuple[str, str, str]
    body: str
    after: str

    def leaves_to_one(self, thread: str) -> bool:
        """Return whether at most one statement follows, of the first thread."""
        pattern = rf"(?:if ?\( ?{re.escape(thread)} ?== ?0 ?\) ?\{{?[^{{}};]*; ?\}}?)?"
        return re.fullmatch(pattern, self.after) is not None


def _loops(place: MoveLine) -> Iterator[_Loop]:
    source, function, block = place.source, place.function, place.kernel.block
    if block is None or block[1] * block[2] != 1 or block[0] < 2 * WARP_THREADS or block[0] & (block[0] - 1):
        return
    for scope in source.scopes:
        is_near = function.start < scope.start < function.end and scope.end - scope.start < _LONGEST_STEP
        parts = loop_parts(source.code(scope.head)) if is_near else None
        began = re.fullmatch(r"\s*[\w\s]*?\b([A-Za-z_]\w*)\s*=(.*)", parts[0], re.DOTALL) if parts else None
        if parts is not None and began is not None:
            body = " ".join(source.clean[scope.start + 1 : scope.end - 1].split())
            after = " ".join(source.clean[scope.end : function.end - 1].split())
            yield _Loop(scope, began[1], began[2], parts, body, after)


def _is_thread(place: MoveLine, site: Site, name: str, at: int) -> bool:
    """Return whether a name stands for the number of a thread in its block."""
    threads = place.kernel.block[0] if place.kernel.block is not None else 0
    try:
        return site.value(name, at).lanes == tuple(range(threads)) and not site.steps(name)
    except UnknownError:
        return False


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


def _halving_loops(place: MoveLine) -> Iterator[_Halving]:
    """Yield the loops of a function that halve the threads of a block down to one, behind which one thread goes on."""
    site = Site(Definitions(place.source), place.kernel, place.function)
    for loop in _loops(place):
        step = _REDUCTION_STEP.fullmatch(loop.body)
        halves = re.fullmatch(_HALVED.format(loop.steps), loop.parts[2].strip())
        ends = re.fullmatch(_ENDS.format(loop.steps), loop.parts[1].strip())
        if step is None or step["steps"] != loop.steps or halves is None or ends is None:
            continue
        head, thread = loop.scope.head, step["thread"]
        if loop.leaves_to_one(thread) and _is_thread(place, site, thread, loop.scope.start):
            with suppress(UnknownError):
                if place.kernel.block is not None and site.number(loop.first, head.start) == place.kernel.block[0] // 2:
                    yield _Halving(head, loop.steps, thread, step["work"])


def from_large_to_small(place: MoveLine) -> Sketch | None:
    """Add up neighbours last: steps that double over indices far apart become steps that halve over adjacent ones."""
    site = Site(Definitions(place.source), place.kernel, place.function)
    for loop in _loops(place):
        step = _INDEXED_STEP.fullmatch(loop.body)
        doubles = re.fullmatch(_DOUBLED.format(loop.steps), loop.parts[2].strip())
        all_threads = re.fullmatch(rf"{loop.steps}\s*<\s*(.+)", loop.parts[1].strip(), re.DOTALL)
        if step is None or step["steps"] != loop.steps or doubles is None or all_threads is None:
            continue
        factors = sorted(re.sub(r"[\s()]", "", step["product"]).split("*"))
        thread = next((one for one in factors if one not in {"2", loop.steps}), "")
        head, threads = loop.scope.head, place.kernel.block[0] if place.kernel.block is not None else 0
        if factors != sorted(("2", loop.steps, thread)) or not loop.leaves_to_one(thread):
            continue
        limits = (loop.first, all_threads[1], step["threads"])
        if [site.number(one, head.start) for one in limits] != [1, threads, threads]:
            continue
        if _is_thread(place, site, thread, loop.scope.start):
            first = loop.parts[0][: loop.parts[0].index("=")].strip()
            work = f"{step['array']}[{thread}] += {step['array']}[{thread} + {loop.steps}];"
            lines = (
                f"for ({first} = blockDim.x / 2; {loop.steps} > 0; {loop.steps} >>= 1) {{",
                f"    if ({thread} < {loop.steps}) {work}  // in place of `{step['index']}` and its condition",
            )
            note = (
                "neighbouring threads then use neighbouring elements, and the last five steps are one warp's; sums of "
                f"floats come in another order{if_none_returned(place, head)}"
            )
            return Sketch(lines, note, head)
    return None


def last_warp_alone(place: MoveLine) -> Sketch | None:
    """Sketch a block reduction whose last steps, within one warp, need no `__syncthreads()`."""
    loop = next(_halving_loops(place), None)
    if loop is None:
        return None
    last = (
        f"if ({loop.thread} < {WARP_THREADS}) "
        f"for (int {loop.steps} = {WARP_THREADS // 2}; {loop.steps} > 0; {loop.steps} >>= 1) "
        f"{{ if ({loop.thread} < {loop.steps}) {loop.work} __syncwarp(); }}"
    )
    return Sketch((_down_to_a_warp(place, loop), last), "the last five steps are one warp's", loop.head)


def with_shuffles(place: MoveLine) -> Sketch | None:
    """Add up the last values of a reduction in registers."""
    loop = next(_halving_loops(place), None)
    if loop is None:
        return None
    thread, steps = re.escape(loop.thread), re.escape(loop.steps)
    added = re.fullmatch(rf"(\w+)\s*\[\s*{thread}\s*\]\s*\+=\s*\1\s*\[\s*{thread}\s*\+\s*{steps}\s*\]\s*;", loop.work)
    if added is None:
        return None
    total = unused(place, "sum")
    lines = (
        _down_to_a_warp(place, loop),
        f"auto {total} = {added[1]}[{loop.thread}]; {_shuffled(total)}",
        f"if ({loop.thread} == 0) {added[1]}[0] = {total};",
    )
    return Sketch(lines, f"the last five steps are one warp's{if_none_returned(place, loop.head)}", loop.head)


def _down_to_a_warp(place: MoveLine, loop: _Halving) -> str:
    """Return the head of a loop that ends where as many values are left as a warp has lanes."""
    first, _, step = loop_parts(place.source.code(loop.head)) or ("", "", "")
    parts = (" ".join(one.split()) for one in (first, f"{loop.steps} >= {WARP_THREADS}", step))
    return f"for ({'; '.join(parts)}) {{ ... }}  // its body as it is"


def _shuffled(name: str) -> str:
    """Return the loop that adds up a variable of all lanes of a warp in its first."""
    added = f"{name} += __shfl_down_sync({FULL_WARP}, {name}, lanes)"
    return f"for (int lanes = {WARP_THREADS // 2}; lanes > 0; lanes /= 2) {added};"


_ATOMIC = re.compile(r"atomicAdd\s*\(")


def added_by_warps(place: MoveLine) -> Sketch | None:
    """Add up a warp's values before one of its lanes adds them to memory."""
    code, block = place.code, place.kernel.block
    found = _ATOMIC.match(code)
    if found is None or block is None or block[1] * block[2] != 1 or block[0] % WARP_THREADS:
        return None
    arguments = divided(code[found.end() : closing(code, found.end() - 1)])
    if len(arguments) != 2 or code[closing(code, found.end() - 1) + 1 :].strip():
        return None
    target, value = (" ".join(one.split()) for one in arguments)
    site = Site(Definitions(place.source), place.kernel, place.function)
    for index in subscripts(target[target.find("[") :]) if "[" in target else ():
        if not site.value(index, place.statement.start).is_uniform:
            return None
    base = re.fullmatch(r"&?\s*([A-Za-z_]\w*)(?:\s*\[.*\])?", target)
    if base is None or site.setting(base[1], place.statement.start) is not None or site.steps(base[1]):
        return None  # a pointer that the function sets may be another in each thread
    if _may_skip(place):
        return None
    total = unused(place, "sum")
    lines = (f"auto {total} = {value};", _shuffled(total), f"if (threadIdx.x % 32 == 0) atomicAdd({target}, {total});")
    return Sketch(lines, "an atomic a warp instead of 32; sums of floats are then added in another order")


def _may_skip(place: MoveLine) -> bool:
    """Return whether lanes of a warp may not reach a statement: under a condition, in a loop or behind a return."""
    source = place.source
    for scope in source.around(place.statement):
        if scope.start <= place.function.start:
            break
        return True
    return bool(if_none_returned(place, place.statement))
