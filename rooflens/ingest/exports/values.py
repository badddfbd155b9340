"""One printed value: a number in base units, a word, or a number followed by those of its instances."""

from __future__ import annotations

import math

from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.ingest.exports.numbers import Style, instance_counts, parse, split_instances

_ABSENT = frozenset({"", "n/a", "-", "none", "null", "no data", "<no data>"})
_TABLES = "sass__"


def add_value(kernel: ExportedKernel, name: str, text: str, style: Style, power: int) -> None:
    """Add one printed value to a kernel; numbers are multiplied by ten to `power`."""
    value = parse(text, style, power)
    if value is None:
        _add_other(kernel, name, text.strip(), style, power)
    elif math.isfinite(value):
        kernel.numbers[name] = value
    elif math.isnan(value):
        kernel.not_numbers.append(name)


def _add_other(kernel: ExportedKernel, name: str, text: str, style: Style, power: int) -> None:
    own, instances = split_instances(text)
    if instances is not None:
        value = parse(own, style, power)
        if value is not None and math.isfinite(value):
            kernel.numbers[name] = value
        if name.startswith(_TABLES) and (counts := instance_counts(instances, style)):
            kernel.tables[name] = counts
    elif own.casefold() not in _ABSENT and not own.startswith("(!)"):
        kernel.texts[name] = own
