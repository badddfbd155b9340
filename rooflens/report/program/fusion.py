"""Operators of timelines that could be fused: bytes, time, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflens.format import count, duration, percent, si
from rooflens.model.program.fusion import LEAST_SHARE, Fusion
from rooflens.model.program.program import Program
from rooflens.report.document import Block, Column, Folded, OnPage, Paragraph, Table, Words, code, paragraph
from rooflens.report.program.words import OF_WALL, cut

_SHOWN, _FUSIONS_ON_PAGE = 3, 100
"""Pairs that texts and pages show."""

_ASSUMED = (
    "fusing: by sizes and types alone, as a trace holds no addresses; that no other call reads the tensor between them "
    "is assumed, unless it says kept. `rooflens about fusion`"
)

_COLUMNS = (
    Column("operators", fit="end", least=30),
    Column("tensor", fit="end", least=12, worth=7),
    Column("pairs", right=True, worth=6),
    Column("saved", right=True, worth=7),
    Column("from", worth=4),
    Column("time saved", right=True),
    Column("of", right=True, worth=8),
    Column(OF_WALL, right=True),
    Column("tensor after", worth=3),
    Column("module", fit="end", least=10, worth=5),
)


def fusion_blocks(programs: Sequence[Program]) -> Iterator[Block]:
    """Say which operators could be one kernel, most to save first: a few in texts, all on pages."""
    found = sorted((one for program in programs for one in program.fusions), key=lambda one: -one.saved_ns)
    if found:
        title, rows = "Operators that could be fused", tuple(map(_fusion_row, found[:_FUSIONS_ON_PAGE]))
        table = Table(_COLUMNS, rows, title, shown=_SHOWN, amount=len(found), rest=" with less to save", label=title)
        yield OnPage((Folded(title, (table._replace(title=""),)),), on_text=(table,))
        yield Paragraph((_ASSUMED,), "note")
    if minor := [program.minor_fusions for program in programs if program.minor_fusions.count]:
        pairs, saved_ns = (sum(getattr(one, name) for one in minor) for name in ("count", "saved_ns"))
        each = f"fusion saves less than {percent(LEAST_SHARE)} of the wall time each"
        yield paragraph(f"Left out: {count(pairs, 'pair')} of operators whose {each}, {duration(saved_ns)} in all.")


def _fusion_row(fusion: Fusion) -> tuple[Words, ...]:
    return (
        (code(cut(fusion.first)), " and ", code(cut(fusion.second))),
        code(f"{fusion.shape} {fusion.dtype}"),
        f"{fusion.count:,}",
        si(fusion.saved_bytes, "B"),
        "L2" if fusion.fits_l2 else "DRAM",
        duration(fusion.saved_ns),
        duration(fusion.time_ns),
        percent(fusion.share),
        "kept" if fusion.is_kept else "gone",
        code(cut(fusion.module)) if fusion.module else "",
    )
