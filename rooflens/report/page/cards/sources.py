"""Provenance of a card: which stored metric gave each of its numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from rooflens.model.records import Analysis
from rooflens.model.roofline.provenance import Sources, level_sources, pipe_sources
from rooflens.model.roofline.unit_names import resource_label
from rooflens.report.page.cards.bars import drawn_pipes
from rooflens.report.words.labels import evidence_name

_OTHERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("time", ("duration_ns",)),
    ("SM clock", ("sm_clock_hz",)),
    ("occupancy", ("achieved_occupancy", "theoretical_occupancy")),
    ("waves", ("waves",)),
    ("warps ready", ("eligible_warps_per_cycle",)),
    ("conflicts", ("smem_conflict_bytes",)),
    ("asked of shared memory", ("smem_useful_bytes",)),
    ("global sectors", ("global_ideal_sectors", "global_touched_sectors")),
    ("cache hits", ("l1_hit_rate", "l2_hit_rate")),
)
"""What a card says of the numbers that are neither level nor pipe -> their counters."""


SHARED_FROM = 10
"""Pages of more cards write the usual source of each number once, and on a card what differs."""

Rows: TypeAlias = tuple[tuple[str, str], ...]
"""What a number is, and the stored metrics that gave it."""


def source_rows(analysis: Analysis) -> Rows:
    """List what each number of a card was made of."""
    known, rows = analysis.kernel.counter_sources, []
    for label, counters in _OTHERS:
        found = [known[counter] for counter in counters if counter in known]
        if found:
            rows.append((label, ", ".join(found)))
    for finding in analysis.findings:
        rows += [(f"{finding.title}: {evidence_name(one)}", one.source) for one in finding.evidence]
    for name, level in analysis.levels.items():
        if level.amount_bytes is not None or level.share is not None:
            rows += _named(resource_label(name, analysis.kernel.gpu), level_sources(analysis, name), "bytes")
    for name in drawn_pipes(analysis.pipes):
        rows += _named(resource_label(name), pipe_sources(analysis, name), "work")
    return tuple(rows)


def common_rows(cards: Sequence[Rows]) -> Rows:
    """List the most frequent source of each number over all cards; nothing if the page has few."""
    if len(cards) <= SHARED_FROM:
        return ()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for label, source in (row for rows in cards for row in rows):
        counts[label][source] += 1
    return tuple((label, sources.most_common(1)[0][0]) for label, sources in counts.items())


def merged(rows: Iterable[tuple[str, str]]) -> Rows:
    """Put numbers with the same source on one line."""
    labels: defaultdict[str, list[str]] = defaultdict(list)
    for label, source in rows:
        labels[source].append(label)
    return tuple((", ".join(names), source) for source, names in labels.items())


def _named(label: str, sources: Sources, amount: str) -> Iterator[tuple[str, str]]:
    for what, source in ((amount, sources.amount), ("peak", sources.peak), ("share", sources.share)):
        if source:
            yield f"{label} {what}", source
