"""Operators of timelines that could be fused: bytes, time, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflens.format import count, cut_middle, duration, percent, si
from rooflens.model.program.fusion import LEAST_SHARE, Fusion
from rooflens.model.program.program import Program
from rooflens.report.document import (
    Block,
    Column,
    Folded,
    Heading,
    OnPage,
    Paragraph,
    Table,
    Words,
    bullets,
    code,
    paragraph,
)

_SHOWN = 3
_FUSIONS_ON_PAGE = 100
_CELL_WIDTH = 300
_ASSUMED = (
    "fusing: by sizes and types alone, as a trace holds no addresses; that no other call reads the tensor between them "
    "is assumed, unless it says kept. `rooflens about fusion`"
)


def fusion_blocks(programs: Sequence[Program]) -> Iterator[Block]:
    """Say which operators could be one kernel, most to save first: a few in texts, all on pages."""
    found = sorted((one for program in programs for one in program.fusions), key=lambda one: -one.saved_ns)
    if found:
        yield Heading("Could be fused", 3)
        table = OnPage((Folded("Operators that could be fused", (_fusions_table(found),)),))
        yield bullets([_fusion_words(one) for one in found[:_SHOWN]])
        yield table
    minor = sum(program.minor_fusions.count for program in programs)
    if minor:
        saved = duration(sum(program.minor_fusions.saved_ns for program in programs))
        yield paragraph(
            f"Left out: {count(minor, 'pair')} of operators whose fusion saves less than {percent(LEAST_SHARE)} of the "
            f"wall time each, {saved} in all."
        )
    if found:
        yield Paragraph((_ASSUMED,), "note")


def _fusion_words(fusion: Fusion) -> Words:
    where = f" in {cut_middle(fusion.module, _CELL_WIDTH)}" if fusion.module else ""
    kept = ", the tensor is kept" if fusion.is_kept else ""
    memory = "L2" if fusion.fits_l2 else "DRAM"
    saved = f"{duration(fusion.saved_ns)} of {duration(fusion.time_ns)}, {percent(fusion.share)} of the wall time"
    return (
        code(cut_middle(fusion.first, _CELL_WIDTH)),
        " and ",
        code(cut_middle(fusion.second, _CELL_WIDTH)),
        f"{where}: {_saved_words(fusion)} of {memory} traffic, {saved}{kept}",
    )


def _saved_words(fusion: Fusion) -> str:
    """Write what is saved as a product: `2 x 537 MB`, or `84 x 2 x 2.10 MB`."""
    each = f"{'' if fusion.is_kept else '2 x '}{si(fusion.tensor_bytes, 'B')}"
    return each if fusion.count == 1 else f"{fusion.count:,} x {each}"


def _fusions_table(fusions: Sequence[Fusion]) -> Table:
    columns = (
        Column("operators", fit="end", least=20),
        Column("tensor", fit="end", least=12),
        Column("pairs", right=True),
        Column("saved", right=True),
        Column("from", worth=6),
        Column("time saved", right=True),
        Column("of", right=True),
        Column("of wall", right=True),
        Column("tensor after", worth=5),
        Column("module", fit="end", least=10, worth=5),
    )
    rows: tuple[tuple[Words, ...], ...] = tuple(
        (
            (code(cut_middle(one.first, _CELL_WIDTH)), " and ", code(cut_middle(one.second, _CELL_WIDTH))),
            code(f"{one.shape} {one.dtype}"),
            f"{one.count:,}",
            si(one.saved_bytes, "B"),
            "L2" if one.fits_l2 else "DRAM",
            duration(one.saved_ns),
            duration(one.time_ns),
            percent(one.share),
            "kept" if one.is_kept else "gone",
            code(cut_middle(one.module, _CELL_WIDTH)) if one.module else "",
        )
        for one in fusions[:_FUSIONS_ON_PAGE]
    )
    return Table(columns, rows, label=f"{count(len(fusions), 'pair')} of operators", amount=len(fusions))
