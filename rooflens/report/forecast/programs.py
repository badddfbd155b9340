"""The operations as programs that the page runs: what `rooflens predict` works out, traced from the same formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import isfinite
from types import MappingProxyType
from typing import Any

from rooflens.errors import UsageError
from rooflens.model.predict.forecast import Forecast, Row, composite, simple, whole_of, widths_in
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.published import attainable
from rooflens.model.predict.rates import SOFTWARE_ONLY, SideRates, rates_of_gpu
from rooflens.model.predict.rows import (
    ELEMENT_BYTES,
    UNITS,
    Operation,
    Part,
    Size,
    Sizes,
    Widths,
    pipes_for,
    result_type,
)
from rooflens.model.predict.sizes import check_shape
from rooflens.model.predict.tracing import Program
from rooflens.model.roofline.datasheets import (
    ARCHITECTURES,
    LINK_KINDS,
    Datasheet,
    Link,
    Quantity,
    load_datasheets,
    memory_label,
)
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.text import forecast as forecasts

USUAL_SIZE = 1024
"""Where a size starts that has no usual value, and none below."""

STARTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "elementwise": {"n": 1 << 24},
        "saxpy": {"n": 1 << 24},
        "dot": {"n": 1 << 24},
        "gemv": {"m": 4096, "k": 4096},
        "gemm": {"m": 4096, "n": 4096, "k": 4096},
        "batched-gemm": {"batch": 64},
        "layernorm": {"rows": 8192, "width": 4096},
        "rmsnorm": {"rows": 8192, "width": 4096},
        "softmax": {"rows": 8192, "width": 4096},
        "attention-naive": {"length": 4096},
        "attention-flash": {"length": 4096},
        "attention-decode": {"batch": 16, "length": 4096},
        "conv2d": {"batch": 32, "in_channels": 64, "out_channels": 64, "height": 56, "image_width": 56},
        "embedding": {"tokens": 8192},
        "decode": {"batch": 16},
        "grouped-gemm": {"m": 8192, "n": 4096, "k": 4096, "groups": 8},
        "moe": {"tokens": 4096},
        "quantized-gemm": {"m": 16, "n": 4096, "k": 4096},
        "depthwise-conv2d": {"batch": 32, "channels": 64, "height": 56, "image_width": 56},
        "gemm-backward": {"m": 4096, "n": 4096, "k": 4096},
        "attention-flash-backward": {"length": 4096},
        "cross-entropy": {"tokens": 8192},
        "cross-entropy-fused": {"tokens": 8192},
        "cross-entropy-loss": {"rows": 8192},
        "adamw": {"n": 10**9},
        **{
            name: {"bytes": 10**8}
            for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send")
        },
        "custom": {"flop": 10**12, "bytes": 10**10},
    }
)
"""Where the sizes of operations start that the command line did not ask for."""

TOGETHER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    dict.fromkeys(("gemm", "batched-gemm", "gemm-backward"), ("m", "n", "k"))
)
"""Sizes that one slider may move together: square products."""


def calculator(rows: Sequence[Row]) -> dict[str, Any]:
    """Give the page everything its controls can choose from, and where they start: the last size of the first row."""
    row = rows[0]
    sizes, _ = row.steps[-1]
    # Many numbers come from one document: its name stands once.
    sources: dict[str, int] = {}
    return {
        "start": {
            "operation": row.operation.name,
            "gpu": row.gpu.id,
            "dtype": row.dtype,
            "sizes": dict(sizes),
            "measured": row.measured_s * 1e3 if row.measured_s else None,
            "link": row.link or "",
            "out_dtype": row.out_dtype or "",
        },
        "operations": {operation.name: _operation(operation) for operation in OPERATIONS.values()},
        "dtypes": {dtype: _dtype(dtype) for dtype in ELEMENT_BYTES},
        "gpus": {gpu.id: _gpu(gpu, sources) for gpu in load_datasheets()},
        "labels": {key: resource_label(key) for gpu in load_datasheets() for key in gpu.peaks},
        "sources": list(sources),
        "links": LINK_KINDS,
    }


def gpu_choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """Group all GPUs by architecture, the newest first: heading, then id and name of each."""
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ARCHITECTURES.values()}
    for gpu in sorted(load_datasheets(), key=lambda gpu: gpu.name.casefold()):
        groups.setdefault(gpu.architecture, []).append((gpu.id, short_name(gpu)))
    return [(heading, options) for heading, options in groups.items() if options]


def short_name(gpu: Datasheet) -> str:
    """Name a GPU without its maker."""
    return gpu.name.removeprefix("NVIDIA ")


@cache
def _operation(operation: Operation) -> dict[str, Any]:
    start = {**dict.fromkeys((size.name for size in operation.sizes), USUAL_SIZE)}
    start |= {size.name: size.default for size in operation.sizes if size.default is not None}
    start |= STARTS.get(operation.name, {})
    return {
        "summary": operation.summary,
        "flop": operation.flop_source,
        "bytes": operation.bytes_source,
        "dtype": operation.dtype,
        "published": found.sources if (found := attainable(operation.name, 1.0)) else (),
        "sizes": [_size(size, start[size.name]) for size in operation.sizes],
        "has_results": operation.results is not None or operation.parts is not None,
        "together": TOGETHER.get(operation.name, ()),
        **traced(operation),
    }


def _size(size: Size, start: int) -> dict[str, Any]:
    least, most = size.limits
    return {
        "name": size.name,
        "meaning": size.meaning,
        "default": size.default,
        "start": start,
        "least": least,
        "most": most,
    }


def _dtype(dtype: str) -> dict[str, Any]:
    return {
        "bytes": ELEMENT_BYTES[dtype],
        "result": result_type(OPERATIONS["gemm"], dtype),
        **{unit: pipes_for(unit, dtype) for unit in UNITS},
        "special": dtype not in SOFTWARE_ONLY,
    }


def _gpu(gpu: Datasheet, sources: dict[str, int]) -> dict[str, Any]:
    used = {key for dtype in ELEMENT_BYTES for unit in UNITS for key in pipes_for(unit, dtype)}

    special, issued = rates_of_gpu(gpu)

    def sourced(quantity: Quantity) -> tuple[float, int]:
        return quantity.value, sources.setdefault(quantity.source, len(sources))

    return {
        "name": gpu.name,
        "short": short_name(gpu),
        "memory": memory_label(gpu.name),
        "peaks": {key: sourced(peak) for key, peak in gpu.peaks.items() if key in used},
        "bandwidth": sourced(gpu.dram_bandwidth),
        "l2": sourced(gpu.l2_bandwidth) if gpu.l2_bandwidth else None,
        # Of all SMs, a clock cycle; null where it is not known.
        "special": special if isfinite(special) else None,
        "issued": issued if isfinite(issued) else None,
        "clocks": {key: gpu.clock_of(key).value for key in gpu.peaks if key in used},
        "l2_bytes": gpu.l2_size.value if gpu.l2_size else None,
        "links": {kind: _link(link, sources) for kind, link in gpu.links.items()},
    }


def _link(link: Link, sources: dict[str, int]) -> dict[str, Any]:
    return {
        "name": link.name,
        "rate": [link.bytes_per_s_per_direction, sources.setdefault(link.source, len(sources))],
        "joins": link.joins,
    }


def traced(operation: Operation) -> dict[str, Any]:
    """Follow the forecast of an operation with symbols for its sizes, its type and its GPU.

    Inputs are the sizes by name, `element_bytes`, `result_bytes`, `bandwidth`, `measured` (seconds), `link` and
    `link rate`, and for each unit its pipe, its peak and what goes beside it a second: `matrix pipe`, `matrix peak`,
    `matrix special`, `matrix issued`, and the same of the other units; `l2 rate` is that of L2. Rates that are not
    known are infinite.

    Returns:
        `steps`; `whole`, the published name of each number -> the step that makes it; `parts`, a list of the same for
        each step of a composite operation with its label; `group`, the step that counts the GPUs which share it, and
        `shared`, whether there can be more than one; `refusal`, the step that says why sizes do not fit one another, or
        null; `early`, how many steps those two need.
    """
    program = Program()
    sizes: Any = {size.name: program.input(size.name) for size in operation.sizes}
    group = program.paths(lambda: operation.group(sizes))
    early = {
        "group": program.number_of(group),
        "refusal": program.number_of(program.paths(lambda: _refusal(sizes))),
        "early": len(program.steps()),
    }
    whole, parts = _forecast(program, operation, sizes, group)
    measured_s: Any = program.input("measured")
    numbers = program.paths(lambda: forecasts.numbers(whole))
    numbers |= program.paths(lambda: forecasts.other_numbers(whole))
    numbers |= program.paths(lambda: forecasts.numbers_of_whole(measured_s, whole))
    units = [OPERATIONS[part.operation].unit for part in parts] or [operation.unit]
    return {
        "whole": _numbered(program, numbers),
        "parts": [
            {
                "label": part.label,
                "count": program.number_of(part.count),
                **_numbered(program, program.paths(partial(forecasts.numbers, result))),
                **_numbered(program, program.paths(partial(forecasts.other_numbers, result))),
            }
            for part, result in zip(parts, whole.parts, strict=True)
        ],
        "units": sorted({operation.unit, *units}),
        **early,
        "shared": not isinstance(group, int) or group > 1,
        "steps": program.steps(),
    }


def _forecast(program: Program, operation: Operation, sizes: Sizes, group: int) -> tuple[Forecast, tuple[Part, ...]]:
    """Predict as `forecast` does, with symbols, a step of a composite operation at a time."""
    operand: Any = program.input("element_bytes")
    result: Any = program.input("result_bytes")
    widths = Widths(operand, result)
    bandwidth: Any = program.input("bandwidth")
    link: Any = program.input("link"), program.input("link rate")

    def pipe(of: Operation) -> Any:
        return program.input(f"{of.unit} pipe"), program.input(f"{of.unit} peak")

    def beside(of: Operation) -> SideRates:
        special: Any = program.input(f"{of.unit} special")
        issued: Any = program.input(f"{of.unit} issued")
        l2: Any = program.input("l2 rate")
        return SideRates(special_per_s=special, issued_per_s=issued, l2_bytes_per_s=l2)

    def step(part: Part, widths: Widths) -> Forecast:
        row = OPERATIONS[part.operation]
        found: Forecast = program.paths(
            lambda: simple(part, widths, pipe(row), bandwidth, beside(row), link if group > 1 else None)
        )
        return found

    steps = operation.parts
    if steps is None:
        return step(whole_of(operation, sizes), widths), ()
    parts: tuple[Part, ...] = program.paths(lambda: tuple(steps(sizes)))
    results = [step(part, widths_in(part, widths)) for part in parts]
    return program.paths(lambda: composite(operation, sizes, results, pipe(operation), bandwidth)), parts


def _refusal(sizes: Sizes) -> str | None:
    try:
        check_shape(sizes)
    except UsageError as error:
        return str(error)
    return None


def _numbered(program: Program, numbers: Mapping[str, Any]) -> dict[str, int]:
    return {name: program.number_of(value) for name, value in numbers.items()}
