"""The details page, and what `--metrics` prints: one row for each metric of a launch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from msgspec import Struct, field

from rooflens.ingest.exports.kernels import ExportedKernel, identified
from rooflens.ingest.exports.labels import metric_of
from rooflens.ingest.exports.numbers import Printed, parse, style_of
from rooflens.ingest.exports.tables import (
    ID,
    IDENTITY,
    METRIC,
    RULE,
    RULE_TEXT,
    SECTION,
    SPEEDUP,
    SPEEDUP_OF,
    UNIT,
    VALUE,
    Facts,
    Header,
)
from rooflens.ingest.exports.units import is_count, power_of
from rooflens.model.records import Rule

_SAMPLE_ROWS = 2_000
_OF_KERNEL, _OF_UNIT = "global", "local"

_BUSY: Mapping[str, str] = {"SM Busy": "sm__instruction_throughput.avg", "Issue Slots Busy": "sm__inst_issued.avg"}
"""Labels of shares that are of active cycles before ncu 2025.4, and of elapsed cycles from then on."""

_SINCE_2025_4 = frozenset({"Local Memory Spilling Requests", "Shared Memory Spilling Requests"})
"""Labels that ncu prints from 2025.4 on, by which the version is known."""


class _Launch(Struct):
    """One launch while its rows are gathered.

    Attributes:
        shown: Section and label of its rows so far.
        busy: Values of the labels in `_BUSY`, in per cent.
    """

    kernel: ExportedKernel
    shown: set[tuple[str, str]] = field(default_factory=set)
    busy: dict[str, float] = field(default_factory=dict)


def long_kernels(header: Header, rows: Iterator[list[str]], facts: Facts) -> list[ExportedKernel]:
    """Gather the launches of a table with one row for each metric, in the order in which they first appear."""
    sample = list(islice(rows, _SAMPLE_ROWS))
    facts.style = style_of(_printed(header, sample), facts.style)
    if UNIT not in header.columns:
        facts.is_without_units = True
    table = _Table(header, facts)
    for cells in chain(sample, rows):
        table.add(cells)
    return table.finish()


def _printed(header: Header, rows: Sequence[Sequence[str]]) -> Iterator[Printed]:
    value, unit, metric = (header.columns.get(name) for name in (VALUE, UNIT, METRIC))
    for cells in rows:
        if value is not None and value < len(cells):
            words = cells[unit].strip() if unit is not None and unit < len(cells) else ""
            name = cells[metric].strip() if metric is not None and metric < len(cells) else ""
            yield Printed(cells[value], words == "%", is_count=is_count(name, words))


class _Table:
    """The launches of one table."""

    def __init__(self, header: Header, facts: Facts) -> None:
        self._header = header
        self._facts = facts
        self._identity = [header.columns[name] for name in IDENTITY if name in header.columns]
        self._least_cells = max(self._identity, default=-1) + 1
        self._has_ids = ID in header.columns
        self._launches: dict[tuple[str, ...], _Launch] = {}
        self._done: list[_Launch] = []

    def add(self, cells: list[str]) -> None:
        """Add one row; with more cells than the header its values are shifted, with too few it has no launch."""
        if not self._least_cells <= len(cells) <= len(self._header.names):
            self._facts.broken_rows += 1
            return
        section, label = self._cell(cells, SECTION), self._cell(cells, METRIC)
        rule = self._cell(cells, RULE)
        if not label and not rule:
            return
        launch = self._launch(cells, (section, label) if label else None)
        if rule:
            launch.kernel.rules.append(self._rule(cells, section, rule))
        if label:
            self._add_metric(launch, label, self._cell(cells, UNIT), self._cell(cells, VALUE))

    def _cell(self, cells: Sequence[str], name: str) -> str:
        place = self._header.columns.get(name)
        return cells[place].strip() if place is not None and place < len(cells) else ""

    def _launch(self, cells: Sequence[str], shown: tuple[str, str] | None) -> _Launch:
        """Find the launch of a row; in a table without IDs, a metric that was shown already begins the next one."""
        key = tuple(cells[place] for place in self._identity)
        launch = self._launches.get(key)
        if launch is None or (not self._has_ids and shown in launch.shown):
            launch = _Launch(identified(cells, self._header))
            self._launches[key] = launch
            self._done.append(launch)
        if shown is not None:
            launch.shown.add(shown)
        return launch

    def _add_metric(self, launch: _Launch, label: str, unit: str, text: str) -> None:
        power = power_of(unit)
        if power is None:
            self._facts.unknown_units[unit] += 1
            return
        if label in _BUSY:
            value = parse(text, self._facts.style)
            if value is not None and math.isfinite(value) and unit == "%":
                launch.busy[label] = value
            return
        metric = metric_of(label, unit)
        if metric is None:
            self._facts.unknown_labels[label] += 1
        elif self._facts.is_wanted(metric) and metric not in launch.kernel.numbers:
            launch.kernel.add(metric, text, self._facts.style, power)

    def _rule(self, cells: Sequence[str], section: str, name: str) -> Rule:
        """Read the row of a rule, which states a speed-up of the whole kernel, of one unit, or none."""
        of, pct = self._cell(cells, SPEEDUP_OF).casefold(), parse(self._cell(cells, SPEEDUP), self._facts.style)
        speedup_pct = pct if pct is not None and math.isfinite(pct) else None
        return Rule(
            identifier=name,
            section=section,
            title="",
            message=self._cell(cells, RULE_TEXT),
            speedup_pct=speedup_pct if of == _OF_KERNEL else None,
            unit_speedup_pct=speedup_pct if of == _OF_UNIT else None,
        )

    def finish(self) -> list[ExportedKernel]:
        """Return the launches, with the shares whose metric depends on ncu's version."""
        for launch in self._done:
            labels = {label for _, label in launch.shown}
            cycles = "elapsed" if labels & _SINCE_2025_4 else "active"
            for label, value in launch.busy.items():
                metric = f"{_BUSY[label]}.pct_of_peak_sustained_{cycles}"
                if self._facts.is_wanted(metric):
                    launch.kernel.numbers.setdefault(metric, value)
        return [launch.kernel for launch in self._done]
