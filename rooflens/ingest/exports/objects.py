"""JSON of counters as scripts and agents write it: `{kernel: {metric: value}}`, at any depth, with ncu's names.

JSON has no units, so values are read in base units, as `--print-units base` prints them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from rooflens.errors import InputError
from rooflens.ingest.exports.kernels import UNNAMED, ExportedKernel, function_of
from rooflens.ingest.exports.numbers import Style
from rooflens.ingest.exports.tables import ExportFacts, open_text

_METRIC = re.compile(r"[a-z][a-z0-9]*__\w{1,200}(?:\.\w{1,60}){0,4}")
_ENTRY = re.compile(rb'"[a-z][a-z0-9]*__\w{1,200}(?:\.\w{1,60}){0,4}"\s*:\s*(?:-?\d|"-?\d|\{|\[)')
_OF_OTHERS = (b'"traceEvents"', b'"schemaVersion"', b'"schema_version"')
"""Keys that mark a timeline or our own JSON."""
_NOT_NAMES = frozenset({"metrics", "counters", "kernels", "launches", "values", "results", "data"})
"""Keys that wrap kernels, or stand between a kernel and its metrics."""
_NAME_KEYS = ("kernel", "kernel_name", "name", "Kernel Name")
_VALUES = ("value", "avg", "mean")
_MOST_JSON_BYTES = 64 << 20
_DEEPEST = 8
_AGAIN = "write {kernel: {metric: value}}, or export with `ncu --import REPORT --page raw --csv --print-units base`"


def is_counters(head: bytes) -> bool:
    """Return whether a file is JSON of counters, judged by its first bytes or by all of it."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return start in {b"{", b"["} and _ENTRY.search(head) is not None and not any(key in head for key in _OF_OTHERS)


def object_kernels(data: bytes, facts: ExportFacts) -> Iterator[ExportedKernel]:
    """Yield the kernels of JSON of counters in file order.

    Raises:
        InputError: The data is no JSON, or too large, or nested too deeply.
    """
    if len(data) > _MOST_JSON_BYTES:
        raise InputError(f"JSON of counters larger than {_MOST_JSON_BYTES >> 20} MiB", _AGAIN)
    try:
        whole = json.loads(open_text(data).read().lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not complete JSON: {error}"[:200], _AGAIN) from error
    facts.is_without_units = True
    for index, (name, metrics) in enumerate(_metric_objects(whole, UNNAMED, _DEEPEST)):
        kernel = ExportedKernel(function_of(name), name, index)
        for metric, value in metrics.items():
            if facts.is_wanted(metric):
                _add_value(kernel, metric, value)
        yield kernel


def _metric_objects(item: object, name: str, depth: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each object that holds metrics, with the name of the kernel around it."""
    if isinstance(item, list) and depth:
        for one in item:
            yield from _metric_objects(one, name, depth - 1)
    if not isinstance(item, dict):
        return
    own = {key: value for key, value in item.items() if _METRIC.fullmatch(key)}
    said = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str)), name)
    if own:
        yield said, own
    elif depth:
        for key, value in item.items():
            yield from _metric_objects(value, said if key in _NOT_NAMES else key, depth - 1)


def _add_value(kernel: ExportedKernel, metric: str, value: object) -> None:
    """Give a kernel a metric's value, which is a number, a string with a number, an object with a value, or a word."""
    if isinstance(value, dict):
        value = next((value[key] for key in _VALUES if key in value), None)
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        kernel.add(metric, str(value), Style(), 0)
