"""The quantities of a kernel, each described once: key, type, unit, label, meaning, and where its value comes from.

JSON and its schema, CSV, the Parquet table `roofline`, data frames, the columns of tables and pages, and the reference
are made from `KERNEL`. JSON nests the keys; everything flat names a quantity by its path (`flat_name`): the item, then
the quantity (`levels.dram.share` is `dram_share`), other groups first (`verdict.bound` is `verdict_bound`).
"""

from __future__ import annotations

import math
from functools import cache
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct

from rooflens.format import cut_name, plain_name
from rooflens.model.bounds import BOUNDS
from rooflens.model.hotspots import leading_stall
from rooflens.model.records import LEVELS, Confidence, Grain, Severity, Status, ratio
from rooflens.model.roofline.datasheets import ACC16, PEAK_KEYS
from rooflens.model.roofline.work import main_work
from rooflens.model.unprofiled import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rooflens.model.records import Analysis, Hotspot, Kernel

SCHEMA_VERSION = 3
"""Version of the JSON: raised when a key is removed or changes its meaning."""

SHORT_NAME_WIDTH = 48

Schema = dict[str, Any]
CellKind = Literal["text", "real", "count", "truth", "texts", "counts"]
"""What one cell of a flat table holds: a text, a number, a whole number, a truth value, or a list."""

PageSet = Literal["", "Basic", "Levels", "Launch", "Work"]


class Shape(Struct, frozen=True):
    """A type of value.

    Attributes:
        schema: What the JSON Schema says of it.
        write: Makes it JSON; None for what is JSON as it is.
        cell: What a cell of a flat table holds; None where it fits into none.
        keys: Of an object, its keys; of a mapping, those names that flat tables have columns of.
    """

    schema: Schema
    write: Callable[[Any], Any] | None = None
    cell: CellKind | None = None
    keys: tuple[Key, ...] = ()

    def json(self, value: Any) -> Any:
        """Make a value JSON."""
        return value if self.write is None else self.write(value)


class Key(Struct, frozen=True):
    """One key of an object; a quantity where its shape fits into a cell.

    Attributes:
        value: Takes the value from the record that the object describes; None for the record itself.
        meaning: In one line.
        unit: SI base unit or noun; `share` for a fraction of one, `factor` for one of time; empty for texts.
        label: Heading of its column; the name by default.
        flat: Whether flat faces (CSV, Parquet, frames, columns) hold it, where it fits into a cell.
        page: Set of columns in which the page offers it.
    """

    name: str
    shape: Shape
    value: Callable[[Any], Any] | None
    meaning: str = ""
    unit: str = ""
    label: str = ""
    flat: bool = True
    page: PageSet = ""

    @property
    def schema(self) -> Schema:
        """What the JSON Schema says of the key: its description and unit as well."""
        said = {"description": self.meaning, "unit": self.unit}
        return self.shape.schema | {name: text for name, text in said.items() if text}


class Quantity(Struct, frozen=True):
    """A key of `KERNEL` in flat tables.

    Attributes:
        name: Its flat name.
        path: Its keys in JSON, from the outermost.
        value: Takes it from an `Analysis`.
    """

    name: str
    path: tuple[str, ...]
    key: Key
    value: Callable[[Analysis], Any]

    @property
    def kind(self) -> CellKind:
        """What its cells hold."""
        assert self.key.shape.cell is not None  # noqa: S101 - `quantities` leaves out what fits into no cell
        return self.key.shape.cell

    @property
    def label(self) -> str:
        """Heading of its column."""
        return self.key.label or self.name.replace("_", " ")

    @property
    def is_of_item(self) -> bool:
        """Whether it is one of several alike, by memory level or number type."""
        return not _ITEMS.isdisjoint(self.path)


DTYPES = tuple(name for name in PEAK_KEYS if not name.endswith(ACC16))
"""Number types that flat tables have columns of."""

_ITEMS = frozenset((*LEVELS, *DTYPES))
_AT: dict[str, str] = {"dram": "DRAM", "l2": "L2", "l1": "L1", "smem": "shared memory"}


def flat_name(path: tuple[str, ...]) -> str:
    """Name a quantity by its path in JSON: `levels.dram.share` is `dram_share`, `verdict.bound` `verdict_bound`."""
    *groups, last = path
    if last in _ITEMS:
        return f"{last}_{groups[-1]}"
    if groups and groups[-1] in _ITEMS:
        return f"{groups[-1]}_{last}"
    return "_".join(path)


def number(value: float | None) -> float | int | None:
    """Write whole numbers as integers, so that counts stay exact to the digit; what is not finite is missing."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def choice(*words: str) -> Shape:
    """Describe a text that is one of a few words."""
    return Shape({"enum": list(words)}, cell="text")


def mapping(of: Shape, *columns: Key) -> Shape:
    """Describe values of one type by any name; those of `columns` have columns in flat tables."""
    schema: Schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": of.schema}
    write_value = of.write

    def write(values: Any) -> dict[str, Any]:
        if write_value is None:
            return dict(values)
        return dict(zip(values, map(write_value, values.values()), strict=True))

    return Shape(schema, write, keys=columns)


def items(of: Shape) -> Shape:
    """Describe a list of values of one type."""
    write = of.write
    return Shape({"type": "array", "items": of.schema}, list if write is None else lambda values: [*map(write, values)])


def fixed(*keys: Key) -> Shape:
    """Describe an object whose keys are all there, and no others."""
    schema: Schema = {
        "type": "object",
        "properties": {key.name: key.schema for key in keys},
        "required": [key.name for key in keys],
        "additionalProperties": False,
    }
    rows = [(key.name, key.value, key.shape.write) for key in keys]

    def write(record: Any) -> dict[str, Any]:
        written = {}
        for name, take, put in rows:
            value = record if take is None else take(record)
            written[name] = value if put is None else put(value)
        return written

    return Shape(schema, write, keys=keys)


TEXT = Shape({"type": "string"}, cell="text")
TEXT_OR_NULL = Shape({"type": ["string", "null"]}, cell="text")
TEXTS = Shape({"type": "array", "items": {"type": "string"}}, list, cell="texts")
FLAGS = Shape({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, list, cell="texts")
POSITION = Shape({"type": "integer", "minimum": 0}, cell="count")
TRUTH = Shape({"type": "boolean"}, cell="truth")
NUMBER = Shape({"type": ["number", "null"], "minimum": 0}, number, cell="real")
STATED = Shape(NUMBER.schema, cell="real")
"""A number as NVIDIA's rule states it."""
SIZE = Shape(
    {"type": ["array", "null"], "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
    lambda size: None if size is None else list(size),
    cell="counts",
)


class ShownHotspot(Struct, frozen=True):
    """A hot spot with its share of its kernel's samples."""

    hotspot: Hotspot
    share_of_samples: float | None


def hotspots_of(kernel: Kernel, hotspots: Iterable[Hotspot]) -> list[ShownHotspot]:
    """Set hot spots against their kernel's total."""
    samples = kernel.code_totals.get("samples")
    return [ShownHotspot(hotspot, ratio(hotspot.measures.get("samples", 0.0), samples)) for hotspot in hotspots]


def _at_levels(make: Callable[[str], Key]) -> Shape:
    return fixed(*map(make, LEVELS))


def _level(level: str, field: str) -> Callable[[Analysis], Any]:
    take = attrgetter(field)
    return lambda analysis: take(analysis.levels[level])


def _counter(name: str) -> Callable[[Analysis], float | None]:
    return lambda analysis: analysis.kernel.counters.get(name)


PIPE = fixed(
    Key("amount_per_s", NUMBER, attrgetter("amount_per_s"), "work a second, in its unit"),
    Key("peak_per_s", NUMBER, attrgetter("peak_per_s"), "its roof at the profiled clock, in its unit"),
    Key(
        "unit",
        choice("FLOP", "op", "inst", "cycle"),
        attrgetter("unit"),
        "operations, warp instructions, or busy cycles",
    ),
    Key("share", NUMBER, attrgetter("share"), "of its peak", "share"),
)


def _level_key(level: str) -> Key:
    at = _AT[level]
    keys = fixed(
        Key("bytes_per_s", NUMBER, attrgetter("bytes_per_s"), "bytes moved a second", "B/s", f"{at} rate"),
        Key(
            "peak_bytes_per_s",
            NUMBER,
            attrgetter("peak_bytes_per_s"),
            "its roof at the profiled clock",
            "B/s",
            f"{at} peak",
        ),
        Key(
            "share",
            NUMBER,
            attrgetter("share"),
            "of the peak of its busiest stage",
            "share",
            f"{at} busy",
            page="Levels",
        ),
        Key("stages", mapping(NUMBER), attrgetter("stages"), "share of peak by stage", "share"),
    )
    return Key(level, keys, lambda analysis: analysis.levels[level])


VERDICT = fixed(
    Key(
        "bound",
        choice(*BOUNDS),
        attrgetter("bound"),
        "the class of the limit: `rooflens about verdicts/NAME`",
        label="Verdict",
    ),
    Key(
        "resource",
        TEXT_OR_NULL,
        attrgetter("resource"),
        "level or pipe of the limit; null for latency, overhead and unknown",
    ),
    Key("at_roof", TRUTH, attrgetter("at_roof"), "the limit is reached: only less work or fewer bytes help"),
    Key("cause", TEXT_OR_NULL, attrgetter("cause"), "a short phrase; null where the class says all"),
    Key("sentence", TEXT, attrgetter("sentence"), "the verdict in one sentence, with its decisive numbers"),
    Key(
        "headroom",
        NUMBER,
        attrgetter("distances.headroom"),
        "speed-up as written, with its busiest unit at its peak",
        "factor",
        "Headroom",
        page="Work",
    ),
    Key(
        "potential",
        NUMBER,
        attrgetter("distances.potential"),
        "upper bound of the speed-up if proven waste goes; bounds no change of algorithm or instructions",
        "factor",
        "Potential",
        page="Basic",
    ),
    Key(
        "potential_by_reuse",
        NUMBER,
        attrgetter("distances.potential_by_reuse"),
        "how much faster at most if tiling or fusing kept the operands on chip as well",
        "factor",
        "By reuse",
        page="Work",
    ),
    Key("floor_ns", NUMBER, attrgetter("distances.floor_ns"), "the time that `potential` leads to", "ns", "Floor"),
    Key(
        "why_no_potential",
        TEXT_OR_NULL,
        attrgetter("distances.why_null"),
        "why `potential` is null; null where it is not",
    ),
    Key("confidence", choice(*get_args(Confidence)), attrgetter("confidence"), "how sure the verdict is"),
    Key("evidence", TEXTS, attrgetter("evidence"), "the numbers it stands on, in words", flat=False),
    Key("advice", TEXTS, attrgetter("advice"), "what to try, first things first", flat=False),
)

EVIDENCE = fixed(
    Key("value", NUMBER, attrgetter("value"), "in its unit"),
    Key("unit", TEXT, attrgetter("unit"), "`share` for a fraction of one, a noun for a count, or an SI unit"),
    Key("source", TEXT, attrgetter("source"), "stored metrics or formula that gave it"),
)

PLACE = fixed(
    Key("file", TEXT_OR_NULL, attrgetter("hotspot.file"), "source file"),
    Key("line", NUMBER, attrgetter("hotspot.line"), "from 1; null without line information"),
    Key("function", TEXT_OR_NULL, attrgetter("hotspot.function"), "function that holds the instructions"),
    Key("pc", NUMBER, attrgetter("hotspot.pc"), "offset from the start of the kernel's code", "B"),
    Key("sass", TEXT_OR_NULL, attrgetter("hotspot.sass"), "the instruction, where it stands at one"),
    Key("share", NUMBER, attrgetter("share"), "part of what the finding is about that is there", "share"),
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
    Key(
        "speedup_up_to",
        NUMBER,
        attrgetter("speedup_up_to"),
        "if this waste alone went; such factors do not add up",
        "factor",
    ),
    Key("where", items(PLACE), attrgetter("where"), "worst first"),
    Key("move", TEXT, attrgetter("move"), "what to do, in one sentence"),
    Key("confidence", choice(*get_args(Confidence)), attrgetter("confidence"), "how sure it is"),
)

HOTSPOT = fixed(
    Key("by", choice(*get_args(Grain)), attrgetter("hotspot.by"), "a source line, an instruction or a function"),
    Key("file", TEXT_OR_NULL, attrgetter("hotspot.file"), "source file"),
    Key("line", NUMBER, attrgetter("hotspot.line"), "from 1; null without line information"),
    Key("function", TEXT_OR_NULL, attrgetter("hotspot.function"), "function that holds the instructions"),
    Key("pc", NUMBER, attrgetter("hotspot.pc"), "offset from the start of the kernel's code", "B"),
    Key("sass", TEXT_OR_NULL, attrgetter("hotspot.sass"), "the instruction in text"),
    Key("text", TEXT_OR_NULL, attrgetter("hotspot.text"), "the source line in text, where the report embeds the file"),
    Key("measures", mapping(NUMBER), attrgetter("hotspot.measures"), "whole amounts; those that are 0 are left out"),
    Key(
        "share_of_samples",
        NUMBER,
        attrgetter("share_of_samples"),
        "of the kernel's; null where it has none",
        "share",
    ),
    Key("leading_stall", TEXT_OR_NULL, lambda shown: leading_stall(shown.hotspot), "what most samples wait for"),
)

WORK = fixed(
    Key(
        "unit",
        choice("FLOP", "op"),
        lambda placed: placed[0].unit,
        "FLOP, or op where all counted operations are integer",
        label="Unit",
        page="Work",
    ),
    Key(
        "amount",
        NUMBER,
        lambda placed: placed[0].total,
        "operations of one launch",
        "FLOP or op",
        "Operations",
        page="Work",
    ),
    Key(
        "amount_per_s",
        NUMBER,
        lambda placed: placed[0].per_s,
        "operations a second",
        "FLOP/s or op/s",
        "Achieved",
        page="Work",
    ),
    Key(
        "peak_per_s",
        NUMBER,
        lambda placed: placed[0].peak_per_s,
        "of its mix of types",
        "FLOP/s or op/s",
        "Peak of its mix",
    ),
    Key(
        "per_byte",
        _at_levels(
            lambda level: Key(
                level,
                NUMBER,
                lambda placed: placed[0].intensity(placed[1][level]),
                "operations for each byte moved",
                "FLOP/B or op/B",
                flat=False,
            )
        ),
        None,
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
    Key("fp32_pct_of_peak", STATED, attrgetter("fp32_pct_of_peak"), "by NVIDIA's rule", "%"),
    Key("fp64_pct_of_peak", STATED, attrgetter("fp64_pct_of_peak"), "by NVIDIA's rule", "%"),
)


def _short_name(analysis: Analysis) -> str:
    return cut_name(plain_name(analysis.kernel.name), SHORT_NAME_WIDTH)


KERNEL = fixed(
    Key("source", TEXT, attrgetter("kernel.source"), "path of the report as it was given", label="Report"),
    Key("index", POSITION, attrgetter("kernel.index"), "position among the report's results, from 0"),
    Key(
        "name",
        TEXT,
        attrgetter("kernel.name"),
        "demangled name, with template arguments and parameters where the report has them",
    ),
    Key("function", TEXT, attrgetter("kernel.function_name"), "name of the function alone"),
    Key("short_name", TEXT, _short_name, f"name in at most {SHORT_NAME_WIDTH} characters, as tables show it"),
    Key("key", TEXT, attrgetter("key"), "name of the launch from run to run; unique in its report"),
    Key("digest", TEXT, attrgetter("kernel.digest"), "SHA-256 of the report"),
    Key("gpu", TEXT_OR_NULL, attrgetter("kernel.gpu"), "name as the report has it", label="GPU"),
    Key("compute_capability", TEXT_OR_NULL, attrgetter("kernel.compute_capability"), "such as 9.0"),
    Key(
        "nvtx_range",
        TEXT_OR_NULL,
        attrgetter("kernel.nvtx_range"),
        "path of the NVTX ranges it was launched in, from the outermost in; null outside any",
        label="NVTX range",
    ),
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
    Key("synthetic", TRUTH, attrgetter("kernel.synthetic"), "a generator wrote the report: nothing was recorded"),
    Key("duration_ns", NUMBER, attrgetter("kernel.duration_ns"), "GPU time of one launch under the profiler", "ns"),
    Key(
        "launches",
        POSITION,
        attrgetter("launches"),
        "launches of the program that it stands for: 1, unless an un-profiled run counted them",
    ),
    Key("gpu_time_ns", NUMBER, attrgetter("gpu_time_ns"), "GPU time of all these launches", "ns", "GPU time"),
    Key("grid", SIZE, attrgetter("kernel.grid"), "blocks of the launch in x, y and z", "blocks"),
    Key("grid_size", NUMBER, _counter("grid_size"), "blocks of the launch", "blocks", "Grid", page="Launch"),
    Key("block", SIZE, attrgetter("kernel.block"), "threads of a block in x, y and z", "threads"),
    Key("block_size", NUMBER, _counter("block_size"), "threads of a block", "threads", "Block", page="Launch"),
    Key(
        "registers_per_thread",
        NUMBER,
        _counter("registers_per_thread"),
        "registers of a thread",
        "registers",
        "Registers",
        page="Launch",
    ),
    Key(
        "smem_per_block_bytes",
        NUMBER,
        _counter("smem_per_block_bytes"),
        "shared memory of a block",
        "B",
        "Shared memory",
        page="Launch",
    ),
    Key(
        "occupancy",
        NUMBER,
        _counter("achieved_occupancy"),
        "achieved, of the warp slots of the SMs",
        "share",
        "Occupancy",
        page="Launch",
    ),
    Key(
        "bytes",
        _at_levels(
            lambda level: Key(
                level, NUMBER, _level(level, "amount_bytes"), "bytes moved", "B", f"{_AT[level]} bytes", page="Work"
            )
        ),
        None,
        "bytes moved at each memory level; null where not measured",
        "B",
    ),
    Key(
        "bytes_source",
        _at_levels(
            lambda level: Key(
                level,
                TEXT_OR_NULL,
                _level(level, "source"),
                "stored metrics or formula that gave the bytes",
                flat=False,
            )
        ),
        None,
        "stored metrics or formula that gave the bytes",
    ),
    Key(
        "flop",
        mapping(
            NUMBER,
            *(Key(name, NUMBER, methodcaller("get", name), f"{name} operations", "FLOP or op") for name in DTYPES),
        ),
        attrgetter("flop"),
        "operations by dtype; integer tensor operations stand here and in no total",
        "FLOP",
    ),
    Key(
        "flop_source",
        mapping(choice("opcode", "tensor_ops", "sass", "estimated", "upper_bound")),
        attrgetter("flop_source"),
        "an upper bound is in no total",
    ),
    Key(
        "flop_total",
        NUMBER,
        attrgetter("flop_total"),
        "floating-point operations; null when a part is unknown",
        "FLOP",
        "FLOPs",
    ),
    Key("flop_per_s", NUMBER, attrgetter("flop_per_s"), "floating-point operations a second", "FLOP/s", "FLOP rate"),
    Key(
        "flop_peak_per_s",
        NUMBER,
        attrgetter("flop_peak_per_s"),
        "roof of its mix of floating-point types",
        "FLOP/s",
        "FLOP peak",
    ),
    Key(
        "intensity",
        _at_levels(
            lambda level: Key(
                level,
                NUMBER,
                _level(level, "intensity_flop_per_byte"),
                "FLOP for each byte moved",
                "FLOP/B",
                f"AI at {_AT[level]}",
                page="Levels",
            )
        ),
        None,
        "FLOP per byte",
        "FLOP/B",
    ),
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
        _at_levels(_level_key),
        None,
        "share = the largest stage; fractions of the report's own peaks at the profiled clock",
    ),
    Key("verdict", VERDICT, attrgetter("verdict"), "what limits the kernel"),
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
"""Everything that is written of one launch."""

GAPS_AFTER = fixed(
    Key("kernel", TEXT_OR_NULL, attrgetter("name"), "ran before the gaps; null for copies and graphs traced whole"),
    Key("count", NUMBER, attrgetter("count"), "gaps after it"),
    Key("gap_ns", NUMBER, attrgetter("gap_ns"), "their time together", "ns"),
)

PROGRAM = fixed(
    Key("source", TEXT, attrgetter("run.source"), "path of its report as it was given"),
    Key(
        "measured_by",
        choice(*SOURCES),
        attrgetter("unprofiled.source"),
        "what timed the run without the profiler: the workload itself, nsys, or only the clock on the wall",
    ),
    Key("wall_ns", NUMBER, attrgetter("unprofiled.wall_ns"), "time of the run without the profiler", "ns"),
    Key("gap_ns", NUMBER, attrgetter("unprofiled.gap_ns"), "no kernel ran; null where nobody looked", "ns"),
    Key("gap_share", NUMBER, attrgetter("unprofiled.gap_share"), "gap_ns / wall_ns", "share"),
    Key("gaps_after", items(GAPS_AFTER), attrgetter("unprofiled.gaps_after"), "longest sum first"),
)
"""Everything that is written of one program that was also run without the profiler."""


@cache
def quantities() -> tuple[Quantity, ...]:
    """List the quantities of flat tables, in the order of JSON."""
    return tuple(_flat(KERNEL.keys, (), None))


def _flat(keys: Iterable[Key], path: tuple[str, ...], take: Callable[[Any], Any] | None) -> Iterable[Quantity]:
    for key in keys:
        place, value = (*path, key.name), _then(take, key.value)
        if key.shape.keys:
            yield from _flat(key.shape.keys, place, value)
        elif key.flat and key.shape.cell and value is not None:
            yield Quantity(flat_name(place), place, key, value)


def _then(first: Callable[[Any], Any] | None, second: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """Compose two ways to a value, either of which may be no step."""
    if first is None or second is None:
        return second if first is None else first
    return lambda record: second(first(record))
