"""Why a program's GPU idles, in words: causes, what the host did in the longest gaps, and where these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rooflens.format import cut_name, duration, percent, plain_name
from rooflens.model.program.idle import LAUNCH_GAP_NS, Gap, IdleCause, IdleKind
from rooflens.model.program.program import Program
from rooflens.model.program.ranks import Joined
from rooflens.report.document import Block, Column, Folded, OnPage, Paragraph, Span, Table, Words, code
from rooflens.report.program.words import LEAST_PART, OF_WALL, cut, file_name, heads_note, without_step

_IDLE_NAME_WIDTH = 60

_ROWS_ON_PAGE = 200
"""Causes that a page lists."""

_GAPS, _GAPS_ON_PAGE = 5, 10
"""Of the longest gaps, those that texts and pages show."""

_HOST_DID: Mapping[IdleKind, str] = {
    "launching": "launched one by one",
    "synchronizing": "waited for the GPU",
    "host": "launched late",
    "queued": "had launched already",
    "unknown": "not recorded",
}
"""What the host did in a gap."""

IDLE_BECAUSE: Mapping[IdleKind, str] = {
    "launching": "launches came one by one, each too late",
    "synchronizing": "the host waited for the GPU before it launched more",
    "host": "the host launched late",
    "queued": "the next kernel was launched but had not started",
    "unknown": "the trace does not say what the host did",
}

_IDLE_COLUMNS = (
    Column("the host", fit="wrap", least=18, most=24, worth=9),
    Column("in", fit="end", least=14, worth=8),
    Column("call", fit="end", least=12, worth=6),
    Column("before", fit="end", least=12, worth=5),
    Column("gaps", right=True, worth=6),
    Column("time", right=True, worth=9),
    Column(OF_WALL, right=True, worth=9),
    Column("longest", right=True, worth=4),
)

_GAP_COLUMNS = (
    Column("gap", right=True),
    Column("begins", right=True, worth=9),
    Column("in step", fit="name", least=10, worth=4, most=24),
    Column("trace", fit="name", least=10, worth=6, most=24),
    Column("before", fit="end", least=12, worth=8),
    Column("the host", fit="wrap", least=18, most=24, worth=9),
    Column("meanwhile in", fit="end", least=14, worth=7),
)

_NOTHING_RECORDED = "nothing recorded"


def idle_blocks(whole: Joined, top: int) -> Iterator[Block]:
    """Show the longest gaps, and what the host did in all of them, most time first."""
    if not whole.idle or whole.parts.idle_ns < LEAST_PART * whole.parts.wall_ns:
        return
    gaps = gaps_of(whole)
    if gaps:
        has_several = len(whole.programs) > 1
        rows = tuple(_gap_row(program, one, is_named=has_several) for program, one in gaps[:_GAPS_ON_PAGE])
        shown, rest = min(top, _GAPS), " no longer than these"
        yield Table(_GAP_COLUMNS, rows, "Longest gaps", shown=shown, amount=len(rows), rest=rest).without_empty()
        yield Paragraph((heads_note("meanwhile in"),), "note")
    causes = _causes(whole, top)
    # The table of all rows has idle time by cause, too.
    yield OnPage((Folded("Idle, by what the host did", (causes._replace(title=""),)),), on_text=(causes,))


def gaps_of(whole: Joined) -> list[tuple[Program, Gap]]:
    """List the longest gaps of all programs, the longest first, without those that any launch may leave."""
    several = [
        (program, one) for program in whole.programs for one in program.longest_gaps if one.gap_ns > LAUNCH_GAP_NS
    ]
    return sorted(several, key=lambda each: -each[1].gap_ns)


def step_name(program: Program, index: int) -> str:
    """Return what a step is called, `step 3` where its ranges have no number of their own."""
    name = program.steps[index].name
    return cut(name) if name and any(letter.isdecimal() for letter in name) else f"step {index}"


def host_did(kind: IdleKind) -> str:
    """Say what the host did in a gap: `the host launched late`."""
    return f"the host: {_HOST_DID[kind]}" if kind == "unknown" else f"the host {_HOST_DID[kind]}"


def gap_place(program: Program, gap: Gap) -> tuple[str | Span, ...]:
    """Say where a gap is: when it begins in its step, and what it is before."""
    if gap.step is None or gap.into_step_ns is None:
        begins: tuple[str | Span, ...] = (f"{duration(gap.start_ns)} after the first launch",)
    else:
        begins = (f"{duration(gap.into_step_ns)} into ", code(step_name(program, gap.step)))
    return (*begins, *((", before ", code(_short_name(gap.cause.before))) if gap.cause.before else ()))


def idle_place(cause: IdleCause) -> Words:
    """Say where gaps of a cause are: in what the host was, else before what."""
    if where := where_of(cause):
        return code(where)
    return ("before ", code(_short_name(cause.before))) if cause.before else "not recorded"


def where_of(cause: IdleCause) -> str:
    """Say in what the host was: an operator, a range or a line; empty where nothing of it was recorded."""
    found = cause.operator or without_step(cause.nvtx_range) or (cause.code or "").rpartition("/")[2]
    return _short_name(found) if found else ""


def places_of(cause: IdleCause) -> tuple[str, ...]:
    """Name what the host was in, and the call that it was in; empty where nothing of it was recorded."""
    return tuple(dict.fromkeys(filter(None, (where_of(cause), cut(cause.call or "")))))


def _causes(whole: Joined, top: int) -> Table:
    rows: tuple[tuple[Words, ...], ...] = tuple(
        (
            _HOST_DID[one.cause.kind],
            code(where_of(one.cause)) if where_of(one.cause) else "",
            code(cut(one.cause.call)) if one.cause.call else "",
            code(_short_name(one.cause.before)) if one.cause.before else "",
            f"{one.count:,}",
            duration(one.gap_ns),
            percent(one.share),
            duration(one.longest_ns),
        )
        for one in whole.idle[:_ROWS_ON_PAGE]
    )
    title, rest = "Idle, by what the host did", " with less time"
    return Table(_IDLE_COLUMNS, rows, title, shown=top, amount=len(whole.idle), rest=rest, label=title).without_empty()


def _gap_row(program: Program, one: Gap, *, is_named: bool) -> tuple[Words, ...]:
    is_in_step, cause = one.step is not None, one.cause
    did = [code(part) for part in places_of(cause)]
    meanwhile: Words = (did[0], *((", ", did[1]) if len(did) > 1 else ())) if did else _NOTHING_RECORDED
    return (
        duration(one.gap_ns),
        duration(one.into_step_ns if is_in_step else one.start_ns),
        code(step_name(program, one.step)) if one.step is not None else "",
        code(cut(file_name(program))) if is_named else "",
        code(_short_name(cause.before)) if cause.before else "",
        _HOST_DID[cause.kind],
        meanwhile if cause.kind != "unknown" else "",
    )


def _short_name(name: str) -> str:
    return cut_name(plain_name(name), _IDLE_NAME_WIDTH)
