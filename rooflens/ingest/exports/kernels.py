"""What an export says about a launch, and what identifies the launch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial

from msgspec import Struct, field

from rooflens.format import bounded_name
from rooflens.ingest.exports.numbers import Style, instance_counts, parse, split_instances
from rooflens.ingest.exports.tables import (
    BLOCK,
    CC,
    CONTEXT,
    DEVICE,
    GRID,
    GROUPING,
    HOST,
    ID,
    INVOCATIONS,
    KERNEL,
    PROCESS,
    PROCESS_ID,
    STREAM,
    Header,
)
from rooflens.model import keys
from rooflens.model.records import Rule, held_once

GPU_NAME = "device__attribute_display_name"
_DEVICE_ID = "launch__device_id"
_CC = "device__attribute_compute_capability"

_DEFAULT_DOMAIN = "<default domain>"
_RANGE = re.compile(r'"([^"]*)"')
_FIELDS_OF_RANGE = 6
"""Fields that ncu prints after a range's name: payload type and value, colour type and value, text type and text.

The text repeats the name, colons and all, or is `none`."""

_MOST_DIGITS = 11
_AXES = "xyz"
_LENGTH = re.compile(r"L?(\d{1,6})")
_LAUNCH = (PROCESS_ID, PROCESS, HOST, CONTEXT, STREAM, GRID, BLOCK)

_WORKLOADS = {"range": "range", "graph": "graph", "cmdlist": "command list", "command list": "command list"}
"""Names that ncu gives to results other than kernels, which have no block size."""

_ABSENT = frozenset({"", "n/a", "-", "none", "null", "no data", "<no data>"})
_TABLES = "sass__"
"""Prefix of the metrics whose instances are read."""

UNNAMED = "unnamed"
"""Name of the only kernel of a table without names."""

_OPENED_LATE = re.compile(r"(?<![<\w])unnamed>::")
"""An unnamed namespace whose first bracket is lost, as in exports of Windows."""


class ExportedKernel(Struct):
    """One launch of an export; fields not listed here mean the same as in a report's raw result.

    Attributes:
        launch: The cells that identify the launch in a second table; empty if the export has no IDs.
        numbers: Metric -> value in base units.
        texts: Metric -> word.
        tables: Metric with instances -> {key: count}.
        not_numbers: Metrics printed as `nan`.
        lost: Why the launch is incomplete; None if it is complete.
        launches: How many launches its values are averaged over.
    """

    function_name: str
    signature: str
    index: int = 0
    workload: str = "kernel"
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    not_numbers: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    launch: tuple[str, ...] = ()
    process_name: str | None = None
    process: str | None = None
    nvtx_range: str | None = None
    lost: str | None = None
    launches: int = 1

    def add(self, name: str, text: str, style: Style, power: int) -> None:
        """Add a printed value, which may be a number (times ten to `power`), a word, or a number with its instances."""
        own, instances = text, None
        value = parse(text, style, power)
        if value is None:
            own, instances = split_instances(text.strip())
            value = None if instances is None else parse(own, style, power)
        if value is not None and math.isfinite(value):
            self.numbers[name] = value
        if instances is not None:
            if name.startswith(_TABLES) and (counts := instance_counts(instances, style)):
                self.tables[name] = counts
        elif value is None and own.casefold() not in _ABSENT and not own.startswith("(!)"):
            self.texts[name] = held_once(own)
        elif value is not None and math.isnan(value):
            self.not_numbers.append(name)


def identified(cells: Sequence[str], header: Header) -> ExportedKernel:
    """Start a kernel from the cells of its row that identify it."""
    cell = partial(header.cell, cells)
    # Texts repeat from launch to launch, and are held once.
    signature = held_once(_OPENED_LATE.sub("<unnamed>::", cell(KERNEL)) or UNNAMED)
    kernel = ExportedKernel(function_of(bounded_name(signature)), signature)
    if number := cell(ID):
        kernel.launch = (number, signature, *(held_once(cell(name)) for name in _LAUNCH))
    if signature.casefold() in _WORKLOADS and not _three_sizes(cell(BLOCK)):
        kernel.workload = _WORKLOADS[signature.casefold()]
    if name := cell(PROCESS):
        kernel.process_name = name
        kernel.process = held_once(f"{name} {cell(PROCESS_ID).translate(GROUPING)}".strip())
    kernel.launches = _whole(cell(INVOCATIONS)) or 1
    kernel.nvtx_range = _range_path(cells[place] for place in header.range_columns if place < len(cells))
    for what, sizes in (("block", _three_sizes(cell(BLOCK))), ("grid", _three_sizes(cell(GRID)))):
        names = (f"launch__{what}_dim_{axis}" for axis in _AXES)
        kernel.numbers.update(zip(names, map(float, sizes), strict=False))
        if sizes:
            kernel.numbers[f"launch__{what}_size"] = float(math.prod(sizes))
    _add_device(kernel, cell(DEVICE), cell(CC))
    return kernel


@lru_cache(maxsize=4096)
def function_of(signature: str) -> str:
    """Drop return type, namespaces, template arguments and parameters: `void a::f<int>(T1 *)` -> `f`."""
    if signature.startswith("_Z"):
        return _mangled_function(signature)
    return keys.function_of(signature)


def _mangled_function(symbol: str) -> str:
    """Return the last name in an Itanium-mangled symbol: `_ZN1a1fEPf` -> `f`."""
    place = re.match(r"_Z(?:N[KVrRO]*)?(?:St|L)?", symbol)
    name, at = "", place.end() if place else 0
    while length := _LENGTH.match(symbol, at):
        start = length.end()
        at = start + int(length[1])
        name = symbol[start:at] or name
    return name if name and at <= len(symbol) else symbol


@lru_cache(maxsize=4096)
def _three_sizes(cell: str) -> tuple[int, ...]:
    """Read `(32, 4, 1)`; empty unless three sizes are given."""
    sizes = [_whole(part) for part in cell.strip("() ").split(", ")]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) == len(_AXES) else ()


def _whole(cell: str) -> int | None:
    """Read a whole number, however its digits are grouped; None if it is none, or damage."""
    digits = cell.strip().translate(GROUPING)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS else None


def _add_device(kernel: ExportedKernel, device: str, capability: str) -> None:
    """Set the index of the GPU, or its name where ncu prints that instead, and its compute capability."""
    if (number := _whole(device)) is not None:
        kernel.numbers[_DEVICE_ID] = float(number)
    elif device:
        kernel.texts[GPU_NAME] = held_once(device)
    if found := re.fullmatch(r"(\d{1,2})[.,](\d{1,2})", capability):
        kernel.numbers[f"{_CC}_major"], kernel.numbers[f"{_CC}_minor"] = float(found[1]), float(found[2])


def _range_path(cells: Iterable[str]) -> str | None:
    """Join the names of the open NVTX ranges, outermost first; the default domain is not named."""
    return "/".join(_range_name(found) for cell in cells for found in _RANGE.findall(cell)) or None


def _range_name(shown: str) -> str:
    """Read domain and name of one range; both may be empty, and the name may contain colons."""
    domain, *rest = shown.split(":")
    others = len(rest) - _FIELDS_OF_RANGE
    parts = others if rest[-1:] == ["none"] else (others + 1) // 2
    name = ":".join(rest[:parts] if parts > 0 else rest)
    return name if domain == _DEFAULT_DOMAIN else f"{domain}:{name}"
