"""Predictions as text: the table of the terminal, JSON, CSV and Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import inf
from operator import attrgetter
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import MISSING, duration, percent, si, significant
from rooflens.model.catalogue import (
    NUMBER,
    POSITION,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    Key,
    Schema,
    Shape,
    choice,
    fixed,
    items,
    mapping,
)
from rooflens.model.predict.communication import uneven
from rooflens.model.predict.forecast import Forecast, Regime, Row, gpus_to_hold, held_bytes, moving, work_of
from rooflens.model.predict.published import floor_words, time_words
from rooflens.model.predict.rows import pipes_for
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.data import csv_text, json_text

TILES = (
    "bytes of a tile are set against DRAM, as if L2 caught none of them; where operands fit into L2 it "
    "catches most, and --l2-tile sets them against L2"
)


class Said(Struct, frozen=True):
    """One forecast of a row, at its sizes."""

    row: Row
    sizes: Mapping[str, int]
    result: Forecast


def _finite(value: float) -> float | None:
    return None if value == inf else value


def _alone(name: str) -> Callable[[Forecast], float | None]:
    """Take a rate of one kernel; several have none of their own."""
    return lambda result: None if result.parts else _finite(getattr(result.rates, name))


def _attained(take: Callable[[Any], Any]) -> Callable[[Said], Any]:
    return lambda said: take(said.result.attainable) if said.result.attainable else None


_NUMBERS: tuple[Key, ...] = (
    Key("flop", NUMBER, "operations by formula", "FLOP"),
    Key("bytes", NUMBER, "that must be moved to and from DRAM", "B", value=attrgetter("moved_bytes")),
    Key(
        "intensity",
        NUMBER,
        "operations per byte",
        "FLOP/B",
        value=lambda one: one.intensity if one.moved_bytes else None,
    ),
    Key("peak", TEXT, "pipe that does the operations"),
    Key("peak_flop_per_s", NUMBER, "its dense peak by the datasheet", "FLOP/s"),
    Key("ridge", NUMBER, "operations per byte from which the pipe is the limit", "FLOP/B"),
    Key("regime", choice(*get_args(Regime)), "what the floor is set by"),
    Key("t_math_s", NUMBER, "time of the operations at that peak", "s"),
    Key("t_memory_s", NUMBER, "time of the bytes at DRAM's bandwidth", "s"),
    Key("t_comms_s", NUMBER, "time of what is sent to other GPUs", "s"),
    Key("t_lower_s", NUMBER, "the floor: the longest of the times, parts added up", "s"),
    Key("sent_bytes", NUMBER, "sent to other GPUs", "B"),
    Key("link", TEXT_OR_NULL, "what they go through"),
    Key("link_bytes_per_s", NUMBER, "its bandwidth", "B/s"),
    Key("link_intensity", NUMBER, "operations per byte sent", "FLOP/B"),
    Key("link_ridge", NUMBER, "those from which the link is not the limit", "FLOP/B"),
    Key("roof_flop_per_s", NUMBER, "operations a second at best", "FLOP/s"),
    Key("share_of_peak", NUMBER, "of the pipe's peak, at best", "share"),
    Key("longest", TEXT, "which of the times is the longest"),
    Key("special", NUMBER, "operations of the special function unit"),
    Key("special_per_s", NUMBER, "its rate; null of several kernels", value=_alone("special_per_s")),
    Key("t_special_s", NUMBER, "their time", "s"),
    Key("issued", NUMBER, "warp instructions"),
    Key("issued_per_s", NUMBER, "their rate; null of several kernels", value=_alone("issued_per_s")),
    Key("t_issue_s", NUMBER, "their time", "s"),
    Key("l2_bytes", NUMBER, "moved through L2", "B"),
    Key("l2_bytes_per_s", NUMBER, "its bandwidth", "B/s", value=lambda one: _finite(one.rates.l2_bytes_per_s)),
    Key("t_l2_s", NUMBER, "time of them", "s"),
)
"""What is written of a forecast, and of each of its parts."""

PART = fixed(
    Key("part", TEXT, "what it is called", value=attrgetter("label")), Key("count", POSITION, "how often"), *_NUMBERS
)


def _of_result(key: Key) -> Key:
    take = key.take
    return replace(key, value=lambda said: take(said.result))


PREDICTION = fixed(
    Key("operation", TEXT, "its name", value=attrgetter("row.operation.name")),
    Key("sizes", mapping(NUMBER), "by name"),
    Key("dtype", TEXT, "type of the operands", value=attrgetter("row.dtype")),
    Key("out_dtype", TEXT, "type of the result", value=attrgetter("row.result_dtype")),
    Key("gpu", TEXT, "of the datasheet", value=attrgetter("row.gpu.name")),
    Key("gpus", NUMBER, "that share it", value=lambda said: said.row.operation.group(said.sizes)),
    *map(_of_result, _NUMBERS),
    Key(
        "t_lower_warm_s", NUMBER, "the floor where the caches are warm", "s", value=attrgetter("result.t_lower_warm_s")
    ),
    Key("bandwidth_bytes_per_s", NUMBER, "of DRAM", "B/s", value=attrgetter("result.bandwidth_bytes_per_s")),
    Key("tokens_per_s", NUMBER, "at best", "tokens/s", value=attrgetter("result.tokens_per_s")),
    Key("measured_s", NUMBER, "as given", "s", value=attrgetter("row.measured_s")),
    Key(
        "time_over_floor",
        NUMBER,
        "measured over the floor",
        "factor",
        value=lambda said: _over(said, said.result.t_lower_s),
    ),
    Key(
        "time_over_attainable",
        NUMBER,
        "measured over what is typical",
        "factor",
        value=lambda said: _over(said, said.result.attainable.typical_s if said.result.attainable else None),
    ),
    Key("attainable_low_s", NUMBER, "of published kernels", "s", value=_attained(attrgetter("low_s"))),
    Key("attainable_typical_s", NUMBER, "of published kernels", "s", value=_attained(attrgetter("typical_s"))),
    Key("attainable_high_s", NUMBER, "of published kernels", "s", value=_attained(attrgetter("high_s"))),
    Key(
        "attainable_proven",
        Shape({"type": ["boolean", "null"]}),
        "kernels of this operation are published",
        value=_attained(attrgetter("proven")),
    ),
    Key("attainable_points", POSITION, "how many", value=lambda said: _attained(attrgetter("points"))(said) or 0),
    Key("attainable_sources", TEXTS, "where", value=lambda said: _attained(attrgetter("sources"))(said) or ()),
    Key("repeated_flop_share", NUMBER, "more than one GPU would do", "share", value=lambda said: _repeated(said)[0]),
    Key("repeated_bytes_share", NUMBER, "more than one GPU would move", "share", value=lambda said: _repeated(said)[1]),
    Key(
        "held_bytes",
        NUMBER,
        "that must be kept in memory",
        "B",
        value=lambda said: held_bytes(said.row.operation, said.sizes, said.row.dtype, said.row.out_dtype),
    ),
    Key(
        "memory_bytes",
        NUMBER,
        "of the GPU",
        "B",
        value=lambda said: said.row.gpu.dram_size.value if said.row.gpu.dram_size else None,
    ),
    Key(
        "gpus_to_hold",
        NUMBER,
        "GPUs that hold it",
        value=lambda said: gpus_to_hold(
            said.row.operation, said.sizes, said.row.dtype, said.row.gpu, said.row.out_dtype
        ),
    ),
    Key("parts", items(PART), "of a composite operation, in order", value=attrgetter("result.parts")),
)
"""Everything that is written of one prediction."""


def _over(said: Said, time_s: float | None) -> float | None:
    return said.row.measured_s / time_s if said.row.measured_s and time_s else None


def _repeated(said: Said) -> tuple[float | None, float | None]:
    """Say how much more FLOPs and bytes all GPUs that split heads or columns have together than one; None for one."""
    gpus, row = said.sizes.get("tensor_parallel", 1), said.row
    if gpus == 1:
        return None, None
    flop, moved_bytes = work_of(row.operation, {**said.sizes, "tensor_parallel": 1}, row.dtype, row.out_dtype)
    return gpus * said.result.flop / flop - 1, gpus * said.result.moved_bytes / moved_bytes - 1


def _objects(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [PREDICTION.json(Said(row, sizes, result)) for row in rows for sizes, result in row.steps]


def to_json(rows: Sequence[Row]) -> str:
    """Write one prediction as one object, several as a list under `predictions`."""
    objects = _objects(rows)
    return json_text(objects[0] if len(objects) == 1 else {"predictions": objects})


def schema_text() -> str:
    """Write the JSON Schema as it ships: of one prediction, or of several under `predictions`."""
    several = {"type": "array", "items": {"$ref": "#/$defs/prediction"}}
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rooflens predict --format json",
        "anyOf": [
            {"$ref": "#/$defs/prediction"},
            {"type": "object", "properties": {"predictions": several}, "required": ["predictions"]},
        ],
        "$defs": {"prediction": PREDICTION.schema},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def to_csv(rows: Sequence[Row]) -> str:
    """Write a line for each prediction: SI base units, sizes in columns of their own, parts left out."""
    objects = _objects(rows)
    for row in objects:
        row.pop("parts")
        row["attainable_sources"] = "; ".join(row["attainable_sources"])
        sizes = row.pop("sizes")
        row.update({f"size_{name}": value for name, value in sizes.items()})
    return csv_text(list(objects[0]), objects).rstrip("\n")


_OF_A_LINK = ("sent", "FLOP/link B", "T comms")


def columns_of(row: Row) -> tuple[str, ...]:
    """Name the columns of a row's table: those of a link where GPUs share it, times beside the usual where counted."""
    return tuple(_cells(row, "", row.steps[0][1]))


def _cells(row: Row, sizes: str, result: Forecast) -> dict[str, str]:
    cells = {
        "sizes": sizes,
        "FLOP": si(result.flop, "FLOP"),
        "bytes": si(result.moved_bytes, "B"),
        "FLOP/B": significant(result.intensity),
        "ridge": significant(result.ridge),
        "sent": si(result.sent_bytes, "B"),
        "FLOP/link B": significant(result.link_intensity) if result.link_intensity else MISSING,
        "regime": f"{result.regime}-bound",
        "T math": duration(result.t_math_s * 1e9),
        "T memory": duration(result.t_memory_s * 1e9),
        "T comms": duration(result.t_comms_s * 1e9),
        "T MUFU": _time(result.t_special_s),
        "T issue": _time(result.t_issue_s),
        "T L2": _time(result.t_l2_s),
        "floor": duration(result.t_lower_s * 1e9),
        "warm floor": _time(result.t_lower_warm_s),
        "of peak": percent(result.share_of_peak),
    }
    steps = [step for _, step in row.steps]
    shown = dict.fromkeys(_OF_A_LINK, any(step.link for step in steps))
    shown |= {
        "T MUFU": any(_tells(step.special_s, step) for step in steps),
        "T issue": any(_tells(step.issue_s, step) for step in steps),
        "T L2": any(through_l2(step) for step in steps),
        "warm floor": any(step.t_lower_warm_s is not None for step in steps),
    }
    return {name: cell for name, cell in cells.items() if shown.get(name, True)}


_TELLS_FROM = 0.01
"""Part of the floor from which a time beside the usual ones has a column, and an uneven split a note."""


def _tells(time_s: float, result: Forecast) -> bool:
    return time_s > _TELLS_FROM * result.t_lower_s


def _time(seconds: float | None) -> str:
    return MISSING if seconds is None else duration(seconds * 1e9)


def through_l2(result: Forecast) -> bool:
    """Return whether more passes between the SMs and L2 than must come from DRAM."""
    return result.l2_bytes > result.moved_bytes


def crossing_words(row: Row, sizes: Mapping[str, int], regime: Regime) -> str:
    """Say from which size another regime is the limit: `compute-bound from n = 887`."""
    return f"{regime}-bound from {sizes_text(row, sizes)}"


def sizes_text(row: Row, sizes: Mapping[str, int]) -> str:
    """Write the sizes that tell a step apart: `m = n = k = 4,096`."""
    names = moving(row)
    if len(names) > 1 and len({sizes[name] for name in names}) == 1:
        return f"{' = '.join(names)} = {sizes[names[0]]:,}"
    return ", ".join(f"{name} {sizes[name]:,}" for name in names) or "usual sizes"


def heading(row: Row) -> str:
    """Name operation, type and GPU."""
    return f"{row.operation.name}, {row.dtype}, on {row.gpu.name}"


def notes(row: Row) -> list[str]:
    """Say which roofs were used, where the regime changes, and what was reached."""
    last = row.steps[-1][1]
    compute, memory = si(last.peak_flop_per_s, "FLOP/s"), si(last.bandwidth_bytes_per_s, "B/s")
    said = [
        f"roofs: {resource_label(last.peak)} {compute}, DRAM {memory}",
        *filter(None, [of_products(row)]),
        *([f"results in {row.result_dtype}"] if row.result_dtype != row.dtype else []),
        *_fit_notes(row),
        *_link_notes(row),
        *_uneven_notes(row),
    ]
    if any(sizes.get("tile") and "l2_tile" in sizes for sizes, _ in row.steps):
        said.append(TILES)
    said += [crossing_words(row, sizes, regime) for sizes, regime in row.crossings]
    if last.attainable or last.t_lower_warm_s is not None:
        at = f"{sizes_text(row, row.steps[-1][0])}: " if len(row.steps) > 1 else ""
        said.append(f"{at}{floor_words(last.t_lower_s, last.attainable, last.t_lower_warm_s)}")
    if last.tokens_per_s and len(row.steps) == 1:
        said.append(f"at best {significant(last.tokens_per_s)} tokens/s")
    if row.measured_s:
        said.append(time_words(row.measured_s, last.t_lower_s, last.attainable, last.t_without_dram_s))
    return said


def of_products(row: Row) -> str:
    """Say what peak counted FLOPs have where they are matrix products; empty where that peak is used or not known."""
    pipe = next((name for name in pipes_for("matrix", row.dtype) if name in row.gpu.peaks), row.steps[-1][1].peak)
    if row.operation.unit != "counted" or pipe == row.steps[-1][1].peak:
        return ""
    return f"matrix products could use tensor cores: {resource_label(pipe)} {si(row.gpu.peaks[pipe].value, 'FLOP/s')}"


def _fit_notes(row: Row) -> list[str]:
    """Say of the largest step that does not fit what it holds, and how many GPUs would hold it."""
    size = row.gpu.dram_size
    held = [(held_bytes(row.operation, sizes, row.dtype, row.out_dtype) or 0.0, sizes) for sizes, _ in row.steps]
    most, sizes = max(held, key=lambda step: step[0])
    if size is None or most <= size.value:
        return []
    what = "operands" if row.operation.parts is None else "weights and cache alone"
    needed = gpus_to_hold(row.operation, sizes, row.dtype, row.gpu, row.out_dtype)
    at = f" ({sizes_text(row, sizes)})" if len(row.steps) > 1 else ""
    taken = f"{what} take {si(most, 'B')} of a GPU's {si(size.value, 'B')}"
    return [f"does not fit{at}: {taken}; it takes {needed} such GPUs or more to hold them"]


def _link_notes(row: Row) -> list[str]:
    """Name each link that GPUs share the work over, the most GPUs that do, and where T math and T comms are equal."""
    over = {result.link: (row.operation.group(sizes), result) for sizes, result in row.steps if result.link}
    said = []
    for kind, (gpus, result) in over.items():
        link = row.gpu.links[kind]
        rate, both = si(link.bytes_per_s_per_direction, "B/s"), si(link.bytes_per_s_total, "B/s")
        ridge = f"; ridge {significant(result.link_ridge)} FLOP/link B" if result.flop and result.link_ridge else ""
        said.append(f"link of {gpus} GPUs: {link.name}, {rate} each way, {both} both ways{ridge}")
    return said


def _uneven_notes(row: Row) -> list[str]:
    """Say for each number of GPUs which sizes they cannot split evenly, and what that costs."""
    found = dict.fromkeys(one for sizes, _ in row.steps for one in uneven(sizes))
    return [
        f"{one.gpus} GPUs do not divide {one.amount:,} {one.what}: the one with most has {one.most:,}, as if "
        f"there were {percent(one.extra)} more"
        for one in found
        if one.extra >= _TELLS_FROM
    ]


def table_rows(row: Row) -> list[tuple[str, ...]]:
    """Write the steps as cells; a single composite operation shows its parts and their sum."""
    if len(row.steps) > 1 or not row.steps[0][1].parts:
        named = [(sizes_text(row, sizes), result) for sizes, result in row.steps]
    else:
        whole = row.steps[0][1]
        named = [(f"{part.count} x {part.label}" if part.count > 1 else part.label, part) for part in whole.parts]
        named.append(("all", whole))
    return [tuple(_cells(row, name, result).values()) for name, result in named]
