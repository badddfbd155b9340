"""The metrics of a collection: names, who counts them, what they mean, and the replay passes they cost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class MetricLike(Protocol):
    """What a row needs of a metric."""

    @property
    def name(self) -> str:
        """Whole name, as ncu takes it."""

    @property
    def kind(self) -> str:
        """Who counts: hardware, sass, sampling or launch."""

    @property
    def meaning(self) -> str:
        """What it counts, in a few words."""

    @property
    def detail(self) -> str:
        """The tier from which on it is collected."""


HEADINGS = ("metric", "counted by", "from tier", "meaning")

_COSTS = (
    ("sass", "one SASS collection"),
    ("sampling", "warp sampling"),
)
"""Kind -> what ncu runs for it beside the hardware passes."""


def metrics_table(chip: str, detail: str, metrics: Sequence[MetricLike], hardware_passes: int | None) -> Table:
    """Make a table of what one tier collects on one chip.

    Args:
        chip: The chip, as `gh100`.
        detail: The tier.
        metrics: What ncu is asked for.
        hardware_passes: What NVIDIA's scheduler says; None where it is not installed.
    """
    title = f"{chip}, {detail}: {_count(len(metrics), 'metric')}, {passes_text(metrics, hardware_passes)}"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left", title_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=heading != "meaning", overflow="fold")
    for metric in metrics:
        table.add_row(Text(metric.name), metric.kind, metric.detail, Text(metric.meaning))
    return table


def passes_text(metrics: Iterable[MetricLike], hardware_passes: int | None) -> str:
    """Write what a collection costs: `3 hardware passes, one SASS collection, warp sampling`."""
    kinds = Counter(metric.kind for metric in metrics)
    passes = "passes not counted" if hardware_passes is None else _count(hardware_passes, "hardware pass")
    return ", ".join((passes, *(cost for kind, cost in _COSTS if kinds[kind])))


def metric_names(metrics: Iterable[MetricLike]) -> str:
    """Write the bare names, one a line."""
    return "\n".join(metric.name for metric in metrics)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"
