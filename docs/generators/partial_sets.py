"""Make the table of docs/reference/partial-sets.md: the verdicts and findings that a subset of the counters gives.

Every fully collected kernel of the published reports is analyzed again with only the values that a set of metrics
has for it.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from generators.texts import table
from rooflens.collect.tiers import metrics_for
from rooflens.format import MISSING
from rooflens.ingest.load import load_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.resolve import plan_for
from rooflens.ingest.reports.results import stalls_of
from rooflens.model.analyze import analyze
from rooflens.model.counters.chips import PM_SAMPLED, chip_of
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import held_of, holdings_of
from rooflens.model.findings.stalls import stall_shares
from rooflens.model.hotspots import MEASURES, STALL, STORED_AS
from rooflens.model.verdict.decide import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflens.model.records import Analysis, Kernel

_PUBLISHED = Path(__file__).parents[2] / "fixtures" / "published"
_SETS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("partial_sets.toml").read_text(encoding="utf-8")
)
_UNASKED = ("launch__", "device__", "profiler__", "c2clink__")
"""What a report holds whatever ncu was asked for."""
_THREADS, _WARPS = (
    f"sass__{kind}_per_opcode_with_modifier_all" for kind in ("thread_inst_executed_true", "inst_executed")
)
_SAMPLES = STORED_AS["samples"][0]


def metrics_of(key: str) -> tuple[str, ...]:
    """Return the metrics of a set, without those that only a tier has."""
    return tuple(name for word in str(_SETS[key].get("metrics", "")).split() for name in _expanded(word))


def _expanded(word: str) -> Iterator[str]:
    """Yield the names meant by a word with braces: `{a,b}.sum` for `a.sum` and `b.sum`."""
    found = re.search(r"\{([^}]*)\}", word)
    if found is None:
        yield word
        return
    for part in found[1].split(","):
        yield from _expanded(word[: found.start()] + part + word[found.end() :])


def tables() -> dict[str, Sequence[str]]:
    """Return the table."""
    head = ("collected", *_TOLD, f"findings of {len(RULES)}")
    return {"sets": table(head, (_row(key) for key in _SETS))}


def kernel_count() -> int:
    """Return how many kernels the table is based on."""
    return len(_full_kernels())


@cache
def _full_kernels() -> tuple[tuple[Kernel, Analysis], ...]:
    """Return the fully collected kernels, with their analyses."""
    loaded = load_reports(find_inputs([str(_PUBLISHED)]).jobs)
    kernels = (kernel for _, kernels in loaded.reports for kernel in kernels if not kernel.failed)
    full = (one for one in kernels if one.warp_opcodes and one.stalls and "dram_bytes" in one.counters)
    return tuple((kernel, analyze(kernel)) for kernel in full)


def _row(key: str) -> tuple[str, ...]:
    pairs = [(whole, analyze(_cut(kernel, key))) for kernel, whole in _full_kernels()]
    able = [sum(rule.can_tell(held_of(holdings_of(cut.kernel, traced=False))) for rule in RULES) for _, cut in pairs]
    findings = f"{min(able)} to {max(able)}" if min(able) < max(able) else str(min(able))
    return (
        str(_SETS[key]["title"]),
        *(_cell([told(cut) == told(whole) for whole, cut in pairs if told(whole)]) for told in _TOLD.values()),
        findings,
    )


_TOLD: Mapping[str, Callable[[Analysis], bool | str | None]] = {
    "time": lambda one: one.kernel.duration_ns is not None,
    "class, at low confidence": lambda one: one.verdict.bound != "unknown",
    "class, surer": lambda one: one.verdict.bound != "unknown" and one.verdict.confidence != "low",
    "limiter": lambda one: one.verdict.resource,
    "cause": lambda one: one.verdict.bound == "latency" and one.verdict.cause != NOT_MEASURED,
    "intensity": lambda one: one.levels["dram"].intensity_flop_per_byte is not None,
    "occupancy": lambda one: not {"theoretical_occupancy", "achieved_occupancy"}.isdisjoint(one.kernel.counters),
    "limit": lambda one: one.verdict.limit.factor is not None,
}
"""Column -> whether an analysis tells it, or what it tells; kernels count where the full report tells it."""


def _cell(told: Sequence[bool]) -> str:
    part = sum(told) / len(told)
    return MISSING if not part else "all" if part == 1 else f"{part:.0%}"


def _cut(kernel: Kernel, key: str) -> Kernel:
    """Return a kernel with only the values of a set of metrics."""
    chosen, chip = _SETS[key], chip_of(kernel.compute_capability or "").chip
    if "metrics" not in chosen and "tier" not in chosen:
        return kernel
    names = set(metrics_of(key))
    if "tier" in chosen:
        names.update(metric.name for metric in metrics_for(chip, chosen["tier"]))
    sources = kernel.counter_sources.items()
    unasked = {q for q, source in sources if source.startswith(_UNASKED)} if chosen.get("report") else set()
    held = {step.name for step in plan_for(tuple(sorted(names)))[0]} | unasked
    shares = {f"{STALL}{why}_share": part for why, part in stall_shares(kernel).items()}
    counters = {name: value for name, value in {**shares, **kernel.counters}.items() if name in held}
    is_sampled = _SAMPLES in names
    measures = {m for m in MEASURES if m != "samples" and names.issuperset(STORED_AS.get(m, ()))}
    return replace(
        kernel,
        counters=counters,
        counter_sources={name: kernel.counter_sources.get(name, name) for name in counters},
        thread_opcodes=kernel.thread_opcodes if _THREADS in names else {},
        warp_opcodes=kernel.warp_opcodes if _WARPS in names else {},
        tensor_ops=kernel.tensor_ops if any(name.startswith("sm__ops_path_tensor_") for name in names) else {},
        tensor_peaks_per_s=kernel.tensor_peaks_per_s if "tier" in chosen else {},
        stalls=kernel.stalls if is_sampled else stalls_of({}, counters),
        code_totals={
            measure: total
            for measure, total in kernel.code_totals.items()
            if measure in measures or (is_sampled and (measure == "samples" or measure.startswith(STALL)))
        },
        hotspots=(),
        rules=(),
        series=kernel.series if chosen.get("tier") == "deep" and chip in PM_SAMPLED else None,
    )
