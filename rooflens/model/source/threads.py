"""Sketches of what threads do: which of them work, in which precision, with how many registers."""

from __future__ import annotations

import re

from rooflens.model.keys import function_of
from rooflens.model.records import Finding
from rooflens.model.source.names import WARP_THREADS, Definitions, Site
from rooflens.model.source.place import END_OF, MoveLine, Sketch, if_none_returned, unused
from rooflens.model.source.text import SourceText, Statement

_MODULO = re.compile(r"if\s*\(\s*\(?\s*([A-Za-z_]\w*)\s*%\s*(\([^()]*\)|[\w.]+)\s*\)?\s*==\s*0\s*\)")


def without_divergence(place: MoveLine) -> Sketch | None:
    """Sketch a branch on `threadIdx % n` that the first threads of the block take instead, without divergence."""
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
        index = unused(place, "index")
        body = re.sub(rf"\b{name}\b", index, " ".join((rest or "").split()))
        if not body or "__sync" in body:
            return None
        wide = stride if stride.startswith("(") or re.fullmatch(r"\w+", stride) else f"({stride})"
        lines = (f"int {index} = {wide} * {name};", f"if ({index} < blockDim.x) {body};")
        note = f"the work is then done by the first threads, in whole warps; `{name}` is the index elsewhere"
        return Sketch(lines, note + if_none_returned(place, head), head)
    return None


def _one_statement(source: SourceText, head: Statement) -> str | None:
    scope = next((one for one in source.scopes if one.head == head), None)
    inside = [one for one in source.statements if scope is not None and scope.start < one.start < scope.end]
    return source.code(inside[0]) if len(inside) == 1 and inside[0].closes == ";" else None


DOUBLE = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])|(?<![\w.])\d+[eE][-+]?\d+(?![\w.])")


def single_precision(place: MoveLine) -> Sketch | None:
    """Write the double constants of a kernel that computes in float as floats."""
    whole = place.source.code(place.function.head) + place.source.clean[place.function.start : place.function.end]
    if re.search(r"\bdouble\b", whole) or "float" not in whole:
        return None
    text = " ".join(place.source.text[place.statement.start : place.statement.end].split())
    changed = DOUBLE.sub(lambda found: f"{found[0]}f", text)
    if changed == text or '"' in text:
        return None
    line = changed + END_OF.get(place.statement.closes, "")
    return Sketch((line,), "a constant without `f` is a double, and so is what is computed with it")


_REGISTERS_OF_AN_SM = 1 << 16


def bounded(place: MoveLine, finding: Finding | None) -> Sketch | None:
    """Tell the compiler how many blocks are to fit on an SM."""
    block, capped = place.kernel.block, {one.name: one.value for one in finding.evidence} if finding is not None else {}
    registers = capped.get("registers that would allow more")
    if registers is None or block is None or "__launch_bounds__" in place.code:
        return None
    name = function_of(place.kernel.function_name)
    found = re.search(rf"\b{re.escape(name)}\s*\(", place.code)
    threads = block[0] * block[1] * block[2]
    # Registers are given to warps in units of 8 a thread, so both are rounded up before the division.
    blocks = int(_REGISTERS_OF_AN_SM // (-(-registers // 8) * 8 * -(-threads // WARP_THREADS) * WARP_THREADS))
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
    return Sketch((f"{start}...)",), note)
