"""Forecasts as JSON with its schema, and as CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from operator import attrgetter
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

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
from rooflens.model.predict.forecast import Forecast, ForecastRow, Regime, gpus_to_hold, held_bytes, work_of
from rooflens.model.records import AttainedVerdict, FloorVerdict, PredictedQuantity
from rooflens.report.data import csv_text, json_text, written_schema


class ForecastAt(Struct, frozen=True):
    """One forecast of a row, at its sizes."""

    row: ForecastRow
    sizes: Mapping[str, int]
    result: Forecast


def _finite(value: float) -> float | None:
    return None if value == inf else value


def _alone(name: str) -> Callable[[Forecast], float | None]:
    """Make the reader of a rate; None for forecasts of several kernels."""
    return lambda result: None if result.parts else _finite(getattr(result.rates, name))


def _attained(take: Callable[[Any], Any]) -> Callable[[ForecastAt], Any]:
    return lambda said: take(said.result.attainable) if said.result.attainable else None


_FORECAST_NUMBERS: tuple[Key, ...] = (
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
    Key("peak_flop_per_s", NUMBER, "its dense peak by the datasheet, at the clock of the floors", "FLOP/s"),
    Key("rated_flop_per_s", NUMBER, "that at the rated clock, of which shares are", "FLOP/s"),
    Key("clock_hz", NUMBER, "the highest clock that the card is known or assumed to run at: that of the floors", "Hz"),
    Key("ridge", NUMBER, "operations per byte from which the pipe is the limit", "FLOP/B"),
    Key("regime", choice(*get_args(Regime)), "what the floor is set by"),
    Key("t_math_s", NUMBER, "time of the operations at that peak", "s"),
    Key("vector_flop", NUMBER, "operations beside those of products, on CUDA cores", "FLOP"),
    Key("t_vector_s", NUMBER, "their time; 0 where products run there, too, and `t_math_s` has all", "s"),
    Key("t_memory_s", NUMBER, "time of the bytes at DRAM's bandwidth", "s"),
    Key("t_comms_s", NUMBER, "time of what is sent to other GPUs", "s"),
    Key("t_lower_s", NUMBER, "the floor: the longest of the times, parts added up", "s"),
    Key("t_upper_s", NUMBER, "the time if nothing overlaps: work, memory and links one after the other", "s"),
    Key("sent_bytes", NUMBER, "sent to other GPUs", "B"),
    Key("link", TEXT_OR_NULL, "what they go through"),
    Key("link_bytes_per_s", NUMBER, "its bandwidth", "B/s"),
    Key("link_intensity", NUMBER, "operations per byte sent", "FLOP/B"),
    Key("link_ridge", NUMBER, "those from which the link is not the limit", "FLOP/B"),
    Key("roof_flop_per_s", NUMBER, "operations a second at best", "FLOP/s"),
    Key("share_of_peak", NUMBER, "of the pipe's rated peak, at best: above 1 where the clock is", "share"),
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

TAKEN = fixed(
    Key("algorithm", TEXT, "`ring`, `direct`, `tree`, or `SHARP` of switches that add up", value=attrgetter("name")),
    Key("sent_bytes", NUMBER, "that a GPU sends", "B"),
    Key("time_s", NUMBER, "that they take", "s"),
    Key("bus_bytes_per_s", NUMBER, "bus bandwidth as nccl-tests have it", "B/s"),
)

PART = fixed(
    Key("part", TEXT, "what it is called", value=attrgetter("label")),
    Key("count", POSITION, "how often"),
    *_FORECAST_NUMBERS,
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
    *map(_of_result, _FORECAST_NUMBERS),
    Key(
        "t_lower_warm_s", NUMBER, "the floor where the caches are warm", "s", value=attrgetter("result.t_lower_warm_s")
    ),
    Key(
        "t_fused_s",
        NUMBER,
        "the floor of one kernel for all parts: none is faster; null of a simple operation",
        "s",
        value=attrgetter("result.t_fused_s"),
    ),
    Key("fused", TEXT_OR_NULL, "what such a kernel keeps on chip", value=lambda said: said.row.operation.fused or None),
    Key("rated_clock_hz", NUMBER, "boost clock of the datasheet", "Hz", value=attrgetter("row.gpu.boost_clock.value")),
    Key(
        "clock_source",
        TEXT,
        "where the clock of the floors is from; it begins with `assumed` where nobody has said",
        value=attrgetter("row.gpu.fastest_clock.source"),
    ),
    Key(
        "algorithms",
        items(TAKEN),
        "of libraries for a collective, the least first",
        value=attrgetter("result.algorithms"),
    ),
    Key(
        "algorithm_bytes_per_s",
        NUMBER,
        "bytes of a collective's buffer a second, as measured",
        "B/s",
        value=attrgetter("result.algorithm_bytes_per_s"),
    ),
    Key(
        "bus_bytes_per_s",
        NUMBER,
        "bus bandwidth as measured, as nccl-tests have it",
        "B/s",
        value=attrgetter("result.bus_bytes_per_s"),
    ),
    Key("bandwidth_bytes_per_s", NUMBER, "of DRAM", "B/s", value=attrgetter("result.bandwidth_bytes_per_s")),
    Key("tokens_per_s", NUMBER, "at best", "tokens/s", value=attrgetter("result.tokens_per_s")),
    Key("measured_s", NUMBER, "as given", "s", value=attrgetter("result.measured_s")),
    Key(
        "time_over_floor",
        NUMBER,
        "measured over the floor",
        "factor",
        value=lambda said: _over(said, "floor"),
    ),
    Key(
        "time_over_attainable",
        NUMBER,
        "measured over what is typical",
        "factor",
        value=lambda said: _over(said, "attainable"),
    ),
    Key(
        "time_verdict",
        Shape({"enum": [*get_args(FloorVerdict), *get_args(AttainedVerdict), None]}, cell="text"),
        "what the measured time is beside published kernels, or beside the floor where it is shorter or none are known",
        value=lambda said: _time_verdict(said.result),
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
    Key("repeated_flop_share", NUMBER, "more than one GPU would do", "share", value=lambda said: _extra_work(said)[0]),
    Key(
        "repeated_bytes_share", NUMBER, "more than one GPU would move", "share", value=lambda said: _extra_work(said)[1]
    ),
    Key(
        "held_bytes",
        NUMBER,
        "that must be kept in memory",
        "B",
        value=lambda said: held_bytes(said.row.operation, said.sizes, said.row.dtype, said.row.options.out_dtype),
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
            said.row.operation, said.sizes, said.row.dtype, said.row.gpu, said.row.options.out_dtype
        ),
    ),
    Key("parts", items(PART), "of a composite operation, in order", value=attrgetter("result.parts")),
)
"""Everything that is written of one prediction."""


def _over(at_step: ForecastAt, name: PredictedQuantity) -> float | None:
    return next((row.factor for row in at_step.result.compared if row.name == name), None)


def _time_verdict(result: Forecast) -> str | None:
    rows = result.compared
    is_short = any(row.verdict in {"too fast", "below the floor"} for row in rows)
    return (rows[0] if is_short else rows[-1]).verdict if rows else None


def _extra_work(at_step: ForecastAt) -> tuple[float | None, float | None]:
    """Say how much more FLOPs and bytes all GPUs that split heads or columns have together than one; None for one."""
    gpus, row = at_step.sizes.get("tensor_parallel", 1), at_step.row
    if gpus == 1:
        return None, None
    flop, moved_bytes = work_of(
        row.operation, {**at_step.sizes, "tensor_parallel": 1}, row.dtype, row.options.out_dtype
    )
    return gpus * at_step.result.flop / flop - 1, gpus * at_step.result.moved_bytes / moved_bytes - 1


def to_objects(rows: Sequence[ForecastRow]) -> list[dict[str, Any]]:
    """Make an object of JSON of each prediction."""
    return [PREDICTION.json(ForecastAt(row, sizes, result)) for row in rows for sizes, result in row.steps]


def to_json(rows: Sequence[ForecastRow]) -> str:
    """Write one prediction as one object, several as a list under `predictions`."""
    objects = to_objects(rows)
    return json_text(objects[0] if len(objects) == 1 else {"predictions": objects})


def schema_text() -> str:
    """Write the JSON Schema as it ships: of one prediction, or of several under `predictions`."""
    several = {"type": "array", "items": {"$ref": "#/$defs/prediction"}}
    schema: Schema = {
        "anyOf": [
            {"$ref": "#/$defs/prediction"},
            {"type": "object", "properties": {"predictions": several}, "required": ["predictions"]},
        ],
        "$defs": {"prediction": PREDICTION.schema},
    }
    return written_schema("rooflens predict --format json", schema)


def to_csv(rows: Sequence[ForecastRow]) -> str:
    """Write a line for each prediction: SI base units, sizes in columns of their own, parts left out."""
    objects = to_objects(rows)
    for row in objects:
        row.pop("parts")
        row["algorithms"] = "; ".join(f"{one['algorithm']} {one['time_s']:g} s" for one in row["algorithms"])
        row["attainable_sources"] = "; ".join(row["attainable_sources"])
        sizes = row.pop("sizes")
        row.update({f"size_{name}": value for name, value in sizes.items()})
    return csv_text(list(objects[0]), objects).rstrip("\n")
