"""What changed in a kernel from a version to the next, in counters that its source decides: the largest first.

A speed-up has a reason that a programmer recognises: fewer operations, fewer bytes, coalesced loads, another block,
more work a thread, shared memory. Each is one number on both sides. What is only a consequence, as a unit's share, is
no reason; waiting is named only where nothing else changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, prod

from msgspec import Struct

from rooflens.format import count, percent, quantity, si, significant
from rooflens.model.compare.same_code import LEFT, is_same_launch
from rooflens.model.counters.accesses import ACCESSES
from rooflens.model.counters.balance import STALLS, WAITS
from rooflens.model.counters.execution import WARPS
from rooflens.model.counters.table import MEASURED
from rooflens.model.records import Analysis, Kernel, ratio
from rooflens.model.roofline.unit_names import LEVEL_LABELS, resource_label
from rooflens.model.same_work import same_work
from rooflens.model.verdict.thresholds import default_thresholds

MOST_NAMED = 3
"""Causes that a sentence names."""
_FACTOR_FROM = 2.0
"""From here on a ratio is written as a factor, below as a per cent."""
_WEIGHTS = {"switch": 4.0, "flop": 1.5, "sectors": 1.5, "block": 1.2, "bytes": 1.0, "lanes": 1.5, "threads": 0.9}
"""What a reason's size counts: those that a programmer sets first; the others 0.7."""

_OF_A_KERNEL = MEASURED - {"duration_ns"} | {
    row.name for row in (*WARPS, *ACCESSES, *WAITS) if not row.name.startswith("blocks_limit")
}

_BESIDE = frozenset({"registers", "shared"})
"""What a block takes of an SM: it comes with a change, and alone explains no time."""

_TILE = ("smem_static_per_block_bytes", "smem_dynamic_per_block_bytes")

_ARITHMETIC = frozenset({"conversions", "fp64_divisions", "integer_divisions"})
"""Findings that say which operations there are fewer of."""


class Cause(Struct, frozen=True):
    """One reason for another time.

    Attributes:
        size: How much changed; the largest reason is named first.
        helps: True where it makes a kernel faster, False where slower; None if it may do either.
    """

    topic: str
    size: float
    words: str
    helps: bool | None = None


def causes(before: Analysis, after: Analysis) -> tuple[Cause, ...]:
    """Say what changed from a version of a kernel to the next: what explains its time first, then by size."""
    if is_same_launch(before, after):
        return (Cause("code", 1.0, f"the same machine code, so {LEFT}"),)
    is_faster = _is_faster(before, after)
    found = list(_finding_causes(before, after))
    if all(cause.topic in _BESIDE for cause in found):
        found += _wait_causes(before.kernel, after.kernel, is_faster=is_faster)
    found.sort(
        key=lambda one: (
            one.helps is (not is_faster),
            one.topic in _BESIDE,
            -one.size * _WEIGHTS.get(one.topic, 0.7),
        )
    )
    return tuple(found)


def causes_words(before: Analysis, after: Analysis) -> str:
    """Name the first few causes in one clause; empty if the counters at hand show none."""
    return reasons(causes(before, after), is_faster=_is_faster(before, after))


def reasons(causes: Sequence[Cause], *, is_faster: bool) -> str:
    """Name at most three causes, without those that work against the change, and not what a block takes alone."""
    telling = [cause for cause in causes if cause.helps is not (not is_faster)]
    words = ", ".join(cause.words for cause in telling[:MOST_NAMED])
    if any(cause.topic not in _BESIDE for cause in telling) or not causes:
        return words
    return f"no counter says why ({words or causes[0].words})"


def _is_faster(before: Analysis, after: Analysis) -> bool:
    return (after.kernel.duration_ns or 0.0) < (before.kernel.duration_ns or 0.0)


def shared_counters(before: Analysis, after: Analysis) -> dict[str, tuple[float, float]]:
    """Return the counters that both versions hold, most changed first: not what belongs to the GPU or the profiler."""
    old, new = before.kernel.counters, after.kernel.counters
    both = {name: (old[name], new[name]) for name in old if name in new and name in _OF_A_KERNEL}
    return dict(sorted(both.items(), key=lambda item: -abs(log((item[1][1] + 1) / (item[1][0] + 1)))))


def shared_words(before: Analysis, after: Analysis) -> str:
    """Say which of the counters that both versions hold differ: all that can be compared where no time is known."""
    shared = shared_counters(before, after)
    if not shared:
        return "no counter is in both"
    moved = [
        f"{name} {_quantity_words(name, old)} -> {_quantity_words(name, new)}"
        for name, (old, new) in shared.items()
        if differs(old, new)
    ]
    more = f" and {len(moved) - MOST_NAMED} more" if len(moved) > MOST_NAMED else ""
    differing = f"{len(moved)} changed: {', '.join(moved[:MOST_NAMED])}{more}" if moved else "none changed"
    return f"{count(len(shared), 'counter')} in both, {differing}"


def _quantity_words(name: str, value: float) -> str:
    if name.endswith(("_share", "_occupancy")):
        return percent(value)
    return quantity(value, "B" if name.endswith("_bytes") else "")


def _finding_causes(before: Analysis, after: Analysis) -> Iterator[Cause]:
    old, new = before.kernel, after.kernel
    costly = [{one.id: one.title for one in each.findings if one.severity != "note"} for each in (before, after)]
    gone = [title for rule, title in costly[0].items() if rule in _ARITHMETIC and rule not in costly[1]]
    why = f" (fewer {' and '.join(gone)})" if gone else ""
    yield from _amount_causes("flop", before.flop_total, after.flop_total, "FLOPs", why)
    level = _level_of(before, after)
    for name in dict.fromkeys((level, "dram")):
        label = resource_label(name, old.gpu, new.gpu)
        if not _matters(before, after, name):
            continue
        bytes_moved = before.levels[name].amount_bytes, after.levels[name].amount_bytes
        # What a level does that bounds neither side is more often a consequence.
        topic = "bytes" if name in {"dram", before.verdict.resource, after.verdict.resource} else "traffic"
        yield from _amount_causes(topic, *bytes_moved, f"{label} bytes")
        if None in bytes_moved and name == level and old.gpu_model == new.gpu_model:
            yield from _amount_causes(topic, _busy_ns(before, name), _busy_ns(after, name), f"{label} cycles")
    yield from _amount_causes("instructions", *_counter_pair(old, new, "executed_inst"), "instructions")
    yield from _sectors(old, new)
    yield from _shape_causes(before, after)
    yield from _switches(old, new)
    yield from _shares(old, new)
    yield from _block_takes(old, new)


def _counter_pair(old: Kernel, new: Kernel, name: str) -> tuple[float | None, float | None]:
    return old.counters.get(name), new.counters.get(name)


def _amount_causes(topic: str, old: float | None, new: float | None, noun: str, why: str = "") -> Iterator[Cause]:
    """Say `59 % fewer FLOPs`, or `3.2x the FLOPs`; nothing if the amounts hardly differ, or one is 0."""
    if not old or not new or not differs(old, new):
        return
    size = abs(log(new / old))
    if new < old:
        words = f"{percent(1 - new / old)} fewer {noun}{why}"
    elif new < _FACTOR_FROM * old:
        words = f"{percent(new / old - 1)} more {noun}"
    else:
        words = f"{significant(new / old)}x the {noun}"
    yield Cause(topic, size, words, new < old)


def _matters(before: Analysis, after: Analysis, level: str) -> bool:
    """Return whether a level was busy enough on either side to cost time: a unit at 0.2 % explains nothing.

    One whose share no side states is not left out: nothing tells that it did not.
    """
    known = [share for one in (before, after) if (share := one.levels[level].share) is not None]
    return not known or max(known) >= default_thresholds().contributing_share


def _busy_ns(analysis: Analysis, level: str) -> float | None:
    """Return for how long a level was busy, which is the work it did where bytes were not counted."""
    share, time_ns = analysis.levels[level].share, analysis.kernel.duration_ns
    return share * time_ns if share and time_ns else None


def _level_of(before: Analysis, after: Analysis) -> str:
    """Choose the memory level that bounds the kernel on either side, else the busiest one."""
    for one in (before, after):
        if one.verdict.bound in {"memory", "balanced"} and one.verdict.resource in LEVEL_LABELS:
            return str(one.verdict.resource)
    known = [(level.share, name) for one in (before, after) for name, level in one.levels.items() if level.share]
    return max(known, default=(0.0, "dram"))[1]


def _sectors(old: Kernel, new: Kernel) -> Iterator[Cause]:
    """Compare how many sectors a request takes, where the part of them that is needed changed."""
    limits = default_thresholds()
    found: dict[bool, list[tuple[str, float, float, str]]] = {True: [], False: []}
    for access in ("load", "store"):
        was, now = (
            ratio(kernel.counters.get(f"global_{access}_sectors"), kernel.counters.get(f"global_{access}_requests"))
            for kernel in (old, new)
        )
        used, uses = _used(old, access), _used(new, access)
        if not was or not now or used is None or uses is None:
            continue
        if abs(uses - used) >= limits.little_share and differs(was, now):
            # Wider accesses take more sectors a request, and may need all of them.
            is_plain = (now < was) is (uses > used)
            sectors = f"{significant(was)} to {significant(now)} sectors a request"
            shares = f"{percent(used)} to {percent(uses)} of their sectors used"
            found[uses > used].append((f"{access}s", was, now, sectors if is_plain else shares))
        elif access == "load" and now > limits.far_more * was and uses > 1 - limits.little_share:
            yield Cause("wide", log(now / was), f"loads {significant(now / was)}x as wide", helps=True)
    for helps, accesses in found.items():
        if accesses:
            _, was, now, numbers = max(accesses, key=lambda one: abs(log(one[2] / one[1])))
            names = " and ".join(name for name, *_ in accesses)
            words = f"{names} {'better' if helps else 'worse'} coalesced ({numbers})"
            yield Cause("sectors", abs(log(now / was)), words, helps)


def _used(kernel: Kernel, access: str) -> float | None:
    """Return the part of the sectors of an access that its instructions needed."""
    sectors = kernel.code_totals.get(f"{access}_sectors")
    excess = ratio(kernel.code_totals.get(f"{access}_excess_sectors"), sectors)
    if excess is not None:
        return 1 - excess
    return ratio(kernel.counters.get("global_ideal_sectors"), kernel.counters.get("global_touched_sectors"))


def _shape_causes(before: Analysis, after: Analysis) -> Iterator[Cause]:
    """Compare blocks, and the work a thread does where the whole work is the same."""
    old, new = before.kernel, after.kernel
    if not old.block or not new.block or not old.grid or not new.grid:
        return
    sizes = prod(old.block), prod(new.block)
    # As many threads in another shape make no other block: what it changes shows in sectors and conflicts.
    if sizes[0] != sizes[1]:
        warps = filled_lanes(sizes[0]), filled_lanes(sizes[1])
        size = max(abs(log(sizes[1] / sizes[0])), 2 * abs(log(warps[1] / warps[0])), 0.3)
        yield Cause("block", size, f"blocks of {sizes[1]} instead of {sizes[0]} threads")
    threads = prod(old.grid) * sizes[0], prod(new.grid) * sizes[1]
    if same_work(before, after).same and differs(*threads):
        times = threads[0] / threads[1]
        more = significant(max(times, 1 / times), 2)
        words = f"{more}x work per thread" if times > 1 else f"{more}x the threads"
        yield Cause("threads", abs(log(times)), words)


def filled_lanes(threads: int) -> float:
    """Return the part of its warps' lanes that a block fills."""
    return threads / (-(-threads // 32) * 32)


def _switches(old: Kernel, new: Kernel) -> Iterator[Cause]:
    """Name features that only one version uses, such as shared memory or tensor cores."""
    local = "local_load_inst", "local_store_inst"
    for names, words in ((_TILE, "shared memory"), (("tensor_busy_share",), "tensor cores"), (local, "local memory")):
        was, now = _sum(old, names), _sum(new, names)
        if was is not None and now is not None and bool(was) is not bool(now):
            helps = bool(now) is (words != "local memory")
            yield Cause("switch", 1.0, f"{'now uses' if now else 'no more'} {words}", helps)


def _sum(kernel: Kernel, names: Sequence[str]) -> float | None:
    amounts = [kernel.counters.get(name) for name in names]
    return None if None in amounts else sum(filter(None, amounts))


def _shares(old: Kernel, new: Kernel) -> Iterator[Cause]:
    """Compare shares that say how well the hardware was used: conflicts, lanes, occupancy."""
    conflicts = [_conflict_share(kernel) for kernel in (old, new)]
    if (
        conflicts[0] is not None
        and conflicts[1] is not None
        and abs(conflicts[1] - conflicts[0]) >= default_thresholds().little_share
    ):
        words = f"bank conflicts {percent(conflicts[0])} to {percent(conflicts[1])} of shared memory accesses"
        yield Cause("conflicts", 2 * abs(conflicts[1] - conflicts[0]), words, conflicts[1] < conflicts[0])
    was, now = _counter_pair(old, new, "threads_per_inst")
    if was and now and differs(was, now):
        words = f"{significant(was)} to {significant(now)} of 32 lanes at work"
        yield Cause("lanes", abs(log(now / was)), words, now > was)
    was, now = _counter_pair(old, new, "achieved_occupancy")
    if was and now and abs(now - was) >= default_thresholds().little_share:
        yield Cause("occupancy", abs(log(now / was)), f"occupancy {percent(was)} to {percent(now)}", now > was)


def _conflict_share(kernel: Kernel) -> float | None:
    lost = _sum(kernel, ("smem_load_conflict_wavefronts", "smem_store_conflict_wavefronts"))
    return ratio(lost, kernel.counters.get("smem_access_wavefronts"))


def _block_takes(old: Kernel, new: Kernel) -> Iterator[Cause]:
    """Compare what a block takes of its SM; memory that only one version uses is a switch."""
    was, now = _counter_pair(old, new, "registers_per_thread")
    if was and now and differs(was, now):
        yield Cause("registers", abs(log(now / was)) / 2, f"{now:.0f} registers per thread instead of {was:.0f}")
    was, now = (_sum(kernel, _TILE) for kernel in (old, new))
    if was and now and differs(was, now):
        words = f"{si(now, 'B')} of shared memory per block instead of {si(was, 'B')}"
        yield Cause("shared", abs(log(now / was)) / 2, words)


def _wait_causes(old: Kernel, new: Kernel, *, is_faster: bool) -> Iterator[Cause]:
    """Name the wait that explains most of the time, where nothing that a programmer sets changed."""
    moved = []
    for reason in STALLS:
        was, now = _counter_pair(old, new, f"stall_{reason}_cycles")
        if was is not None and now is not None and (now < was) is is_faster:
            moved.append((abs(now - was), reason, was, now))
    whole = max(old.counters.get("warp_latency_cycles") or 0.0, new.counters.get("warp_latency_cycles") or 0.0)
    by, reason, was, now = max(moved, default=(0.0, "", 0.0, 0.0))
    if whole and by >= default_thresholds().little_share * whole:
        words = f"{STALLS[reason]}: {significant(was)} to {significant(now)} cycles an instruction"
        yield Cause("waits", by, words, is_faster)


def differs(old: float | None, new: float | None) -> bool:
    """Return whether two amounts differ by more than counters of one kernel do from run to run."""
    if old is None or new is None:
        return False
    low, high = sorted((old, new))
    return high > (1 + default_thresholds().negligible_share) * low


def share_differs(old: float | None, new: float | None) -> bool:
    """Return whether a reader sees two shares as different."""
    return old is not None and new is not None and abs(new - old) >= default_thresholds().noise_share
