"""The bar of selectors: what of the page's launches the charts and the table show."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflens import format as fmt
from rooflens.model.records import BOUNDS
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.html.templates import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from markupsafe import Markup

    from rooflens.model.launches import Launch
    from rooflens.report.content import Content


LABEL_WIDTH = 40

MANY = 3
"""From so many launches on, the shorter ones can be left out by a slider."""

NAME_WIDTH = 400

FAILED = "failed"
"""Stands in place of a verdict for launches that have none because they failed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a list: the value that the page's state takes, and the words for it."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Picker:
    """One list to choose from; `key` is its place in the page's state."""

    key: str
    label: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """One verdict that can be shown alone, and how many launches have it."""

    bound: str
    launches: int


def selectors(content: Content) -> Markup:
    """Offer the selectors that part the launches of this page; a page of one launch has none."""
    rows = items(content)
    counts = Counter[str]()
    for row in rows:
        counts[row["bound"]] += row["n"]
    chips = tuple(Chip(bound, counts[bound]) for bound in (*BOUNDS, FAILED) if counts[bound])
    pickers = tuple(picker for picker in _pickers(rows) if len(picker.choices) > 1)
    slider = bool(content.total_ns) and len(rows) >= MANY
    shown = chips if len(chips) > 1 else ()
    return render("report/selectors", content=content, shown=len(rows) > 1, chips=shown, pickers=pickers, slider=slider)


def _pickers(rows: list[dict[str, Any]]) -> Iterable[Picker]:
    yield _picker("gpu", "GPU", rows)
    yield _picker("precision", "Precision", rows, resource_label)
    yield _picker("range", "NVTX range", rows)
    yield _picker("process", "Process", rows)
    yield _picker("device", "Device", rows, "device {}".format)


def _picker(key: str, label: str, rows: Iterable[Mapping[str, Any]], words: Callable[[str], str] = str) -> Picker:
    """List the values in order of falling time, as the launches come."""
    values = dict.fromkeys(row[key] for row in rows if row[key])
    return Picker(key, label, tuple(Choice(value, fmt.cut_middle(words(value), LABEL_WIDTH)) for value in values))


def items(content: Content) -> list[dict[str, Any]]:
    """List the launches in order of falling time; missing text is empty.

    Keys: `k` launch, `g` kernel, `n` launches it stands for, `cum` share of GPU time before it; the rest by name.
    """
    return [_item(launch) for launch in content.launches]


def precision(launch: Launch) -> str:
    """Name the type with most of the launch's FLOPs; empty without FLOPs."""
    flop = {dtype: amount for dtype, amount in launch.analysis.counted_flop.items() if amount > 0}
    return max(flop, key=lambda dtype: flop[dtype], default="")


def _item(launch: Launch) -> dict[str, Any]:
    kernel = launch.analysis.kernel
    return {
        "k": launch.key,
        "g": launch.group_key,
        "n": launch.analysis.launches,
        "name": fmt.cut_middle(launch.shown, NAME_WIDTH),
        "gpu": launch.gpu,
        "bound": FAILED if launch.failed else launch.bound,
        "precision": precision(launch),
        "range": kernel.nvtx_range or "",
        "process": kernel.process or "",
        "device": "" if kernel.device is None else str(kernel.device),
        # A share without a duration is not known to be small, but it is in no top by time either.
        "cum": 1.0 if launch.duration_ns is None else round(min(launch.cumulative_share, 1.0), 6),
    }
