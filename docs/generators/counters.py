"""Make the tables of docs/reference/counters/: the source of each quantity, its tier, and its uses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from generators.about import page_of
from generators.texts import table, unit_of
from rooflens.format import MISSING
from rooflens.model.about import FAMILIES
from rooflens.model.counters.chips import EVERY_CHIP
from rooflens.model.counters.formulas import formulas_of
from rooflens.model.counters.table import COUNTERS
from rooflens.model.findings.find import RULES
from rooflens.model.hotspots import MEASURES, STORED_AS
from rooflens.model.needs import CODE
from rooflens.model.records import LEVELS
from rooflens.model.roofline.levels import AMOUNTS
from rooflens.model.roofline.roof import counters_of
from rooflens.model.roofline.units import PIPE_ROWS, STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflens.model.counters.metric import Ask
    from rooflens.model.counters.recipes import Counter


def tables() -> dict[str, Callable[[], Mapping[str, Sequence[str]]]]:
    """Return the generator of the table of each page, by its file below docs/reference."""
    assert sorted(row.name for rows in FAMILIES.values() for row in rows) == sorted(row.name for row in COUNTERS)
    pages = dict.fromkeys(name.partition("#")[0] for name in FAMILIES)
    return {f"counters/{page}": partial(_tables, page) for page in pages}


def _tables(page: str) -> dict[str, list[str]]:
    """Make the tables of a page: one of `quantities`, or one for each section."""
    head = ("quantity", "unit", "read from, the first that is there", "asked for", "used for")
    made = {
        section or "quantities": table(head, map(_row, rows))
        for (name, _, section), rows in ((name.partition("#"), rows) for name, rows in FAMILIES.items())
        if name == page
    }
    return made | ({"measures": _measures()} if page == "execution.md" else {})


def _measures() -> list[str]:
    rows = (
        (
            f"`{measure}`",
            meaning,
            ", ".join(f"`{name}`" for name in STORED_AS.get(measure, ())) or "the same, less the ideal",
            "; ".join(_findings(f"{CODE}{measure}")) or MISSING,
        )
        for measure, meaning in MEASURES.items()
    )
    return table(("measure", "meaning", "read from", "used for"), rows)


def _row(row: Counter) -> tuple[str, ...]:
    read = dict.fromkeys(way for recipe in row.recipes for way in formulas_of(recipe))
    asked = dict.fromkeys(map(_asked, row.asks()))
    return (
        f"`{row.name}`",
        unit_of(row.name),
        "; ".join(read),
        "; ".join(asked) or MISSING,
        "; ".join(dict.fromkeys(_uses(row.name))) or MISSING,
    )


def _asked(ask: Ask) -> str:
    """Return the tier, and on how many chips."""
    tier = ask.detail if not ask.later else f"{ask.detail}, later on some"
    return tier if ask.chips == EVERY_CHIP else f"{tier}, not on all"


def _uses(name: str) -> Iterator[str]:
    yield from (f"bytes of `{level}`" for level, names in AMOUNTS.items() if name in names)
    yield from (f"roof of `{level}`" for level in LEVELS if name in counters_of(level))
    for stage in STAGES:
        if name in {stage.share, stage.amount, stage.peak}:
            yield f"stage `{stage.name}` of `{stage.level}`"
    for pipe in PIPE_ROWS:
        if name in {*pipe.shares, pipe.amount, pipe.peak}:
            yield f"pipe `{pipe.key}`"
    yield from _findings(name)


def _findings(need: str) -> Iterator[str]:
    for rule in RULES:
        if any(need in group for group in rule.needs):
            yield f"[`{rule.id}`](../{page_of(f'findings/{rule.id}')}.md)"
