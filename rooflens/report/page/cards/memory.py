"""Useful bytes of a card: what the instructions asked of global and shared memory, beside what was moved."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import Analysis
from rooflens.model.roofline.traffic import Traffic, find_traffic
from rooflens.report.page.cards.bars import Bar

_USED_SHARE = 0.01
"""Shared memory below this part of its peak is hardly used: its conflicts say nothing."""

_EVEN = 1.05
"""Up to this factor the addresses of shared-memory accesses fit the banks."""


class Memory(Struct, frozen=True):
    """Bars of the useful part of what was moved, and facts beside them."""

    bars: tuple[Bar, ...]
    facts: tuple[str, ...]


def memory(analysis: Analysis, *, has_chart: bool = False) -> Memory:
    """Compare asked and moved bytes as far as the report holds them; a memory chart says how often caches hit."""
    traffic = find_traffic(analysis.kernel)
    return Memory(tuple(_bars(analysis, traffic)), tuple(_facts(traffic, has_chart=has_chart)))


def _bars(analysis: Analysis, traffic: Traffic) -> Iterator[Bar]:
    if (useful := traffic.global_memory) is not None:
        yield Bar(
            "Global memory",
            useful.share,
            rate=f"{fmt.si(useful.asked_bytes, 'B')} of sectors needed",
            amount=f"{fmt.si(useful.moved_bytes, 'B')} touched",
        )
    level = analysis.levels.get("smem")
    if level is not None and (level.share or 0.0) >= _USED_SHARE:
        yield from _shared(analysis, traffic)


def _shared(analysis: Analysis, traffic: Traffic) -> Iterator[Bar]:
    """Draw the bytes asked for; where those are not known, the wavefronts that are not replays."""
    moved_bytes, conflicts, asked = analysis.levels["smem"].amount_bytes, traffic.conflict_share, traffic.shared
    moved = "" if moved_bytes is None else f"{fmt.si(moved_bytes, 'B')} moved"
    if asked is not None:
        both = ", ".join(part for part in (f"{fmt.si(asked.asked_bytes, 'B')} asked for", moved) if part)
        yield Bar("Shared memory", asked.share, rate=both, amount=_replays(conflicts))
    elif conflicts is not None:
        yield Bar("Shared memory", 1 - conflicts, rate=moved, amount=_replays(conflicts))


def _replays(conflicts: float | None) -> str:
    if conflicts is None:
        return ""
    return f"{fmt.percent(conflicts)} of it replays of bank conflicts" if conflicts else "no bank conflicts"


def _facts(traffic: Traffic, *, has_chart: bool) -> Iterator[str]:
    loads, stores = traffic.load_sectors_per_request, traffic.store_sectors_per_request
    touched = [f"{what} {fmt.significant(value)}" for what, value in (("loads", loads), ("stores", stores)) if value]
    if touched:
        yield f"sectors per request: {', '.join(touched)} (coalesced, 4 bytes per thread take 4, 16 bytes take 16)"
    if traffic.shared_excess is not None and traffic.shared_excess > _EVEN:
        yield f"shared-memory accesses need {fmt.factor(traffic.shared_excess)} the wavefronts that their bytes need"
    rates = () if has_chart else (("L1", traffic.l1_hit_rate), ("L2", traffic.l2_hit_rate))
    hits = [f"{name} {fmt.percent(rate)}" for name, rate in rates if rate is not None]
    if hits:
        yield f"sector hit rates: {', '.join(hits)}"
    if traffic.l2_bytes and traffic.dram_bytes is not None:
        ratio = fmt.significant(traffic.dram_bytes / traffic.l2_bytes)
        yield f"DRAM moves {ratio} B per byte between the SMs and L2"
