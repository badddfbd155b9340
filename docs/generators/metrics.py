"""Write docs/reference/metrics.md: the metrics that each tier requests from ncu, on each chip."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from generators.texts import MADE, joined, table
from rooflens.collect.tiers import metrics_for
from rooflens.model.counters.chips import FAMILIES
from rooflens.model.counters.metric import DETAILS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflens.model.counters.metric import Metric

_HEAD = f"""\
# Metrics

Which of ncu's metrics are asked for on a chip, in which tier, and why.

{MADE}

A tier holds the one before it: `quick`, `standard`, `deep`. What each costs in replay passes on each chip stands in
[Replay passes](../explanation/passes.md); `rooflens metrics --chip CHIP --names` prints the names for ncu. Chips of one
row count alike; beside them, how many metrics each tier asks for. What one count of a metric is, and what it leaves
out, is told by [Counters](counters/index.md):
"""

_AFTER = """
"Counted by" says how ncu gets a metric: `hardware` counters cost passes; `launch` values cost nothing; `sass` ones
instrument the code; `sampling` looks at the warps now and then. Where chips differ, the tier of most stands first. A
chip that is not in "on" does not have the metric.
"""


def page() -> str:
    """Write the page."""
    families = {min(chips): chips for _, chips in FAMILIES}
    capabilities = {
        first: ", ".join(capability for capability, chips in FAMILIES if min(chips) == first) for first in families
    }
    asked = {first: {metric.name: metric for metric in metrics_for(first, "deep")} for first in families}
    counts = {first: Counter(metric.detail for metric in found.values()) for first, found in asked.items()}
    overview = (
        (f"`{first}`", ", ".join(sorted(chips)), capabilities[first], *_sizes(counts[first]))
        for first, chips in families.items()
    )
    return joined(
        _HEAD,
        *table(("called here", "chips", "compute capability", *DETAILS), overview),
        _AFTER,
        *table(("metric", "counted by", "tier", "on", "meaning"), _rows(asked)),
    )


def _sizes(counts: Counter[str]) -> Iterator[str]:
    total = 0
    for detail in DETAILS:
        total += counts[detail]
        yield f"{total}"


def _rows(asked: Mapping[str, Mapping[str, Metric]]) -> Iterator[tuple[str, str, str, str, str]]:
    for name in dict.fromkeys(name for found in asked.values() for name in found):
        tiers = {first: found[name].detail for first, found in asked.items() if name in found}
        metric = next(found[name] for found in asked.values() if name in found)
        (most, _), *others = Counter(tiers.values()).most_common()
        differing = (f"{tier} on {', '.join(at for at, own in tiers.items() if own == tier)}" for tier, _ in others)
        missing = [first for first in asked if first not in tiers]
        on = (
            "all" if not missing else ", ".join(tiers) if len(tiers) < len(missing) else f"all but {', '.join(missing)}"
        )
        yield f"`{name}`", metric.kind, "; ".join([most, *differing]), on, metric.meaning
