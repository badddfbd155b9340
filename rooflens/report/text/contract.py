"""The JSON of `analyze --format json` in one table: each key with its type, its meaning and where its value comes from.

The writer and the JSON Schema are both made of it. `rooflens/report/analysis.schema.json` is `schema_text()`, held by a
test. Keys stay what they are while `SCHEMA_VERSION` does.
"""

from __future__ import annotations

import json
import math
from operator import attrgetter
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct

from rooflens.model.bounds import BOUNDS
from rooflens.model.hotspots import leading_stall
from rooflens.model.records import LEVELS, Confidence, Grain, Severity, Status, ratio
from rooflens.model.roofline.work import main_work
from rooflens.model.unprofiled import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflens.model.records import Analysis, AnalyzedReport, Hotspot, Kernel

SCHEMA_VERSION = 2

Schema = dict[str, Any]


class Shape(Struct, frozen=True):
    """A type of value: what the schema says of it, and how it is written."""

    schema: Schema
    write: Callable[[Any], Any]


class Key(Struct, frozen=True):
    """One key of an object.

    Attributes:
        value: Takes the value from the record that the object describes.
        meaning: For the schema and the reference; only an object that neither describes leaves it out.
    """

    name: str
    shape: Shape
    value: Callable[[Any], Any]
    meaning: str = ""

    @property
    def schema(self) -> Schema:
        """What the schema says of the key."""
        return {**self.shape.schema, "description": self.meaning} if self.meaning else self.shape.schema


def _as_it_is(value: Any) -> Any:
    return value


def _number(value: float | None) -> float | int | None:
    """Write whole numbers as integers, so that counts stay exact to the digit; what is not finite is missing."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def choice(*words: str) -> Shape:
    """Describe a text that is one of a few words."""
    return Shape({"enum": list(words)}, _as_it_is)


def mapping(of: Shape, names: tuple[str, ...] = ()) -> Shape:
    """Describe values of one type by name; `names` are all there, without them any may be."""
    schema: Schema = {
        "type": "object",
        "properties": dict.fromkeys(names, of.schema),
        "required": list(names),
        "additionalProperties": False if names else of.schema,
    }
    return Shape(schema, lambda values: {name: of.write(value) for name, value in values.items()})


def items(of: Shape) -> Shape:
    """Describe a list of values of one type."""
    return Shape({"type": "array", "items": of.schema}, lambda values: [of.write(value) for value in values])


def fixed(*keys: Key) -> Shape:
    """Describe an object whose keys are all there, and no others."""
    schema: Schema = {
        "type": "object",
        "properties": {key.name: key.schema for key in keys},
        "required": [key.name for key in keys],
        "additionalProperties": False,
    }
    return Shape(schema, lambda record: {key.name: key.shape.write(key.value(record)) for key in keys})


TEXT = Shape({"type": "string"}, _as_it_is)
TEXT_OR_NULL = Shape({"type": ["string", "null"]}, _as_it_is)
TEXTS = Shape({"type": "array", "items": {"type": "string"}}, list)
FLAGS = Shape({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, list)
POSITION = Shape({"type": "integer", "minimum": 0}, _as_it_is)
TRUTH = Shape({"type": "boolean"}, _as_it_is)
NUMBER = Shape({"type": ["number", "null"], "minimum": 0}, _number)
STATED = Shape(NUMBER.schema, _as_it_is)
"""A number as NVIDIA's rule states it."""


class ShownHotspot(Struct, frozen=True):
    """A hot spot beside what it is a part of."""

    hotspot: Hotspot
    share_of_samples: float | None


def hotspots_of(kernel: Kernel, hotspots: Iterable[Hotspot]) -> list[ShownHotspot]:
    """Set hot spots against their kernel's total."""
    samples = kernel.code_totals.get("samples")
    return [ShownHotspot(hotspot, ratio(hotspot.measures.get("samples", 0.0), samples)) for hotspot in hotspots]


def _of_levels(field: str) -> Callable[[Analysis], Mapping[str, Any]]:
    value = attrgetter(field)
    return lambda analysis: {name: value(level) for name, level in analysis.levels.items()}


def _counter(name: str) -> Callable[[Analysis], float | None]:
    return lambda analysis: analysis.kernel.counters.get(name)


PIPE = fixed(
    Key("amount_per_s", NUMBER, attrgetter("amount_per_s"), "what it did a second, in its unit"),
    Key("peak_per_s", NUMBER, attrgetter("peak_per_s"), "its roof at the profiled clock, in its unit"),
    Key(
        "unit",
        choice("FLOP", "op", "inst", "cycle"),
        attrgetter("unit"),
        "operations, warp instructions, or busy cycles",
    ),
    Key("share", NUMBER, attrgetter("share"), "of its peak, 0 to 1"),
)

LEVEL = fixed(
    Key("bytes_per_s", NUMBER, attrgetter("bytes_per_s"), "bytes moved a second"),
    Key("peak_bytes_per_s", NUMBER, attrgetter("peak_bytes_per_s"), "its roof at the profiled clock"),
    Key("share", NUMBER, attrgetter("share"), "of the peak of its busiest stage, 0 to 1"),
    Key("stages", mapping(NUMBER), attrgetter("stages"), "share of peak by stage, 0 to 1"),
)

VERDICT = fixed(
    Key("bound", choice(*BOUNDS), attrgetter("bound"), "the class of the wall: `rooflens about verdicts/NAME`"),
    Key(
        "resource",
        TEXT_OR_NULL,
        attrgetter("resource"),
        "level or pipe of the wall; null for latency, overhead and unknown",
    ),
    Key("at_roof", TRUTH, attrgetter("at_roof"), "the wall is reached: only less work or fewer bytes help"),
    Key("cause", TEXT_OR_NULL, attrgetter("cause"), "a short phrase; null where the class says all"),
    Key("headroom", NUMBER, attrgetter("distances.headroom"), "how much faster as written, its busiest unit full"),
    Key(
        "potential",
        NUMBER,
        attrgetter("distances.potential"),
        "upper bound of the speed-up if proven waste goes; bounds no change of algorithm or instructions",
    ),
    Key(
        "potential_by_reuse",
        NUMBER,
        attrgetter("distances.potential_by_reuse"),
        "how much faster at most if tiling or fusing kept the operands on chip as well",
    ),
    Key("floor_ns", NUMBER, attrgetter("distances.floor_ns"), "the time that `potential` leads to"),
    Key(
        "why_no_potential",
        TEXT_OR_NULL,
        attrgetter("distances.why_null"),
        "why `potential` is null; null where it is not",
    ),
    Key("confidence", choice(*get_args(Confidence)), attrgetter("confidence"), "how sure the verdict is"),
    Key("evidence", TEXTS, attrgetter("evidence"), "the numbers it stands on, in words"),
    Key("advice", TEXTS, attrgetter("advice"), "what to try, first things first"),
)

EVIDENCE = fixed(
    Key("value", NUMBER, attrgetter("value"), "in its unit"),
    Key("unit", TEXT, attrgetter("unit"), "`share` for a fraction of one, a noun for a count, or an SI unit"),
    Key("source", TEXT, attrgetter("source"), "stored metrics or formula that gave it"),
)

PLACE = fixed(
    Key("file", TEXT_OR_NULL, attrgetter("hotspot.file"), "source file"),
    Key("line", NUMBER, attrgetter("hotspot.line"), "from 1; null without line information"),
    Key("function", TEXT_OR_NULL, attrgetter("hotspot.function"), "what the instructions stand in"),
    Key("pc", NUMBER, attrgetter("hotspot.pc"), "offset from the start of the kernel's code, in bytes"),
    Key("sass", TEXT_OR_NULL, attrgetter("hotspot.sass"), "the instruction, where it stands at one"),
    Key("share", NUMBER, attrgetter("share"), "part of what the finding is about that is there"),
)

FINDING = fixed(
    Key("id", TEXT, attrgetter("id"), "which finding it is: `rooflens about findings/ID`"),
    Key("title", TEXT, attrgetter("title"), "the finding in words"),
    Key(
        "severity",
        choice(*get_args(Severity)),
        attrgetter("severity"),
        "limiter: it bounds the kernel; contributes: it costs time besides; note: true, but not what costs time",
    ),
    Key(
        "evidence",
        mapping(EVIDENCE),
        lambda finding: {number.name: number for number in finding.evidence},
        "the numbers it stands on, by name",
    ),
    Key("speedup_up_to", NUMBER, attrgetter("speedup_up_to"), "if this waste alone went; such factors do not add up"),
    Key("where", items(PLACE), attrgetter("where"), "worst first"),
    Key("move", TEXT, attrgetter("move"), "what to do, in one sentence"),
    Key("confidence", choice(*get_args(Confidence)), attrgetter("confidence"), "how sure it is"),
)

HOTSPOT = fixed(
    Key("by", choice(*get_args(Grain)), attrgetter("hotspot.by"), "a source line, an instruction or a function"),
    Key("file", TEXT_OR_NULL, attrgetter("hotspot.file"), "source file"),
    Key("line", NUMBER, attrgetter("hotspot.line"), "from 1; null without line information"),
    Key("function", TEXT_OR_NULL, attrgetter("hotspot.function"), "what the instructions stand in"),
    Key("pc", NUMBER, attrgetter("hotspot.pc"), "offset from the start of the kernel's code, in bytes"),
    Key("sass", TEXT_OR_NULL, attrgetter("hotspot.sass"), "the instruction in text"),
    Key("text", TEXT_OR_NULL, attrgetter("hotspot.text"), "the source line in text, where the report embeds the file"),
    Key("measures", mapping(NUMBER), attrgetter("hotspot.measures"), "whole amounts; those that are 0 are left out"),
    Key("share_of_samples", NUMBER, attrgetter("share_of_samples"), "of the kernel's; null where it has none"),
    Key("leading_stall", TEXT_OR_NULL, lambda shown: leading_stall(shown.hotspot), "what most samples wait for"),
)

WORK = fixed(
    Key(
        "unit",
        choice("FLOP", "op"),
        lambda placed: placed[0].unit,
        "FLOP, or op where all counted operations are integer",
    ),
    Key("amount", NUMBER, lambda placed: placed[0].total, "operations of one launch"),
    Key("amount_per_s", NUMBER, lambda placed: placed[0].per_s, "operations a second"),
    Key("peak_per_s", NUMBER, lambda placed: placed[0].peak_per_s, "of its mix of types"),
    Key(
        "per_byte",
        mapping(NUMBER, LEVELS),
        lambda placed: {name: placed[0].intensity(level) for name, level in placed[1].items()},
        "operations for each byte moved, by memory level",
    ),
)

NVIDIA = fixed(
    Key(
        "bottleneck",
        TEXT_OR_NULL,
        attrgetter("bottleneck"),
        "what NVIDIA's own rules in the report call the bottleneck",
    ),
    Key("fp32_pct_of_peak", STATED, attrgetter("fp32_pct_of_peak"), "by NVIDIA's rule"),
    Key("fp64_pct_of_peak", STATED, attrgetter("fp64_pct_of_peak"), "by NVIDIA's rule"),
)

KERNEL = fixed(
    Key("source", TEXT, attrgetter("kernel.source"), "path of the report as it was given"),
    Key("index", POSITION, attrgetter("kernel.index"), "position among the report's results, from 0"),
    Key("name", TEXT, attrgetter("kernel.function_name"), "function name"),
    Key("key", TEXT, attrgetter("key"), "what the launch is called from run to run; unique in its report"),
    Key("gpu", TEXT_OR_NULL, attrgetter("kernel.gpu"), "name as the report has it"),
    Key("compute_capability", TEXT_OR_NULL, attrgetter("kernel.compute_capability"), "such as 9.0"),
    Key(
        "status",
        choice(*get_args(Status)),
        attrgetter("kernel.status"),
        "failed: it failed under the profiler, or holds an impossible value; partial: some counters are missing",
    ),
    Key(
        "status_reason",
        TEXT_OR_NULL,
        attrgetter("kernel.status_reason"),
        "why it failed, or which values could not be read; else null",
    ),
    Key("duration_ns", NUMBER, attrgetter("kernel.duration_ns"), "GPU time of one launch under the profiler"),
    Key("grid_size", NUMBER, _counter("grid_size"), "blocks of the launch"),
    Key("block_size", NUMBER, _counter("block_size"), "threads of a block"),
    Key(
        "bytes",
        mapping(NUMBER, LEVELS),
        _of_levels("amount_bytes"),
        "bytes moved at each memory level; null where not measured",
    ),
    Key(
        "bytes_source",
        mapping(TEXT_OR_NULL, LEVELS),
        _of_levels("source"),
        "stored metrics or formula that gave the bytes",
    ),
    Key(
        "flop",
        mapping(NUMBER),
        attrgetter("flop"),
        "operations by dtype; integer tensor operations stand here and in no total",
    ),
    Key(
        "flop_source",
        mapping(choice("opcode", "tensor_ops", "sass", "estimated", "upper_bound")),
        attrgetter("flop_source"),
        "an upper bound is in no total",
    ),
    Key("flop_total", NUMBER, attrgetter("flop_total"), "floating-point operations; null when a part is unknown"),
    Key("intensity", mapping(NUMBER, LEVELS), _of_levels("intensity_flop_per_byte"), "FLOP per byte"),
    Key(
        "work",
        WORK,
        lambda analysis: (main_work(analysis), analysis.levels),
        "its main work, from which it is placed: integer tensor operations where those need more time than FLOPs",
    ),
    Key(
        "pipes",
        mapping(PIPE),
        attrgetter("pipes"),
        "by pipe: number types (fp32, tensor_bf16, ...), alu, xu, lsu, issue",
    ),
    Key(
        "levels",
        mapping(LEVEL, LEVELS),
        attrgetter("levels"),
        "share = the largest stage; fractions of the report's own peaks at the profiled clock",
    ),
    Key("verdict", VERDICT, attrgetter("verdict"), "which wall the kernel hits"),
    Key("findings", items(FINDING), attrgetter("findings"), "first what costs time, then notes"),
    Key(
        "hotspots",
        items(HOTSPOT),
        lambda analysis: hotspots_of(analysis.kernel, analysis.kernel.hotspots),
        "hottest lines, instructions and functions, each with its whole amounts; empty where none were recorded",
    ),
    Key("nvidia", NVIDIA, attrgetter("nvidia"), "NVIDIA's own rules where the report has them"),
    Key(
        "flags",
        FLAGS,
        attrgetter("flags"),
        "traps that apply to this kernel: `rooflens about flags/NAME`",
    ),
)
"""Everything that is written of one kernel."""

GAPS_AFTER = fixed(
    Key("kernel", TEXT_OR_NULL, attrgetter("name"), "ran before the gaps; null for copies and graphs traced whole"),
    Key("count", NUMBER, attrgetter("count"), "how many gaps there were after it"),
    Key("gap_ns", NUMBER, attrgetter("gap_ns"), "their time together"),
)

PROGRAM = fixed(
    Key("source", TEXT, attrgetter("run.source"), "path of its report as it was given"),
    Key(
        "measured_by",
        choice(*SOURCES),
        attrgetter("unprofiled.source"),
        "what timed the run without the profiler: the workload itself, nsys, or only the clock on the wall",
    ),
    Key("wall_ns", NUMBER, attrgetter("unprofiled.wall_ns"), "time of the run without the profiler"),
    Key("gap_ns", NUMBER, attrgetter("unprofiled.gap_ns"), "no kernel ran; null where nobody looked"),
    Key("gap_share", NUMBER, attrgetter("unprofiled.gap_share"), "gap_ns / wall_ns"),
    Key("gaps_after", items(GAPS_AFTER), attrgetter("unprofiled.gaps_after"), "longest sum first"),
)
"""What is written of one program that was also run without the profiler."""


def to_document(analyses: Iterable[Analysis], reports: Iterable[AnalyzedReport] = ()) -> dict[str, Any]:
    """Build the JSON document: units in names, shares as fractions, what was not measured null.

    Args:
        analyses: The kernels.
        reports: The reports whose programs are told of, where they were also run without the profiler.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "programs": [PROGRAM.write(report) for report in reports if report.unprofiled is not None],
        "kernels": [KERNEL.write(analysis) for analysis in analyses],
    }


def to_schema() -> Schema:
    """Build the JSON Schema of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rooflens analyze --format json",
        "type": "object",
        "properties": {
            "schema_version": {
                "const": SCHEMA_VERSION,
                "description": "raised when a field is removed or changes its meaning; new ones do not raise it",
            },
            "programs": {
                "type": "array",
                "items": PROGRAM.schema,
                "description": "programs that were also run without the profiler",
            },
            "kernels": {
                "type": "array",
                "items": KERNEL.schema,
                "description": "one entry a profiled kernel, in the order of the reports",
            },
        },
        "required": ["schema_version", "programs", "kernels"],
        "additionalProperties": False,
    }


def schema_text() -> str:
    """Write the JSON Schema as it ships."""
    return json.dumps(to_schema(), indent=2, ensure_ascii=False) + "\n"
