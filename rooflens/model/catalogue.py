"""The quantities of a kernel, each described once: key, type, unit, label, meaning, and where its value comes from.

JSON and its schema, CSV, the Parquet table `verdicts`, data frames, the columns of tables and pages, and the reference
are made from `KERNEL`. JSON nests the keys; everything flat names a quantity by its path (`flat_name`): the item, then
the quantity (`levels.dram.share` is `dram_share`), other groups first (`verdict.bound` is `verdict_bound`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Literal, get_args

from msgspec import Struct

from rooflens.model.hotspots import STALL, WaitFor, caller_of, leading_stall, waits_for
from rooflens.model.records import (
    LEVELS,
    Analysis,
    Confidence,
    Grain,
    Hotspot,
    Kernel,
    LoopKind,
    MoveKind,
    Place,
    PredictedQuantity,
    PredictedVerdict,
    Role,
    RoofSource,
    Severity,
    Status,
    WaitFound,
    ratio,
)
from rooflens.model.roofline.datasheets import ACC16, PEAK_KEYS
from rooflens.model.roofline.roof import SCALAR_DTYPES
from rooflens.model.roofline.work import main_work
from rooflens.model.unprofiled import SOURCES
from rooflens.model.verdict_classes import BOUNDS
from rooflens.report.words.verdict import done_words, evidence_lines, verdict_sentence

SCHEMA_VERSION = 7
"""Version of the JSON: raised when a key is removed or changes its meaning."""


Schema = dict[str, Any]
CellKind = Literal["text", "real", "count", "truth", "texts", "counts"]
"""What one cell of a flat table holds: a text, a number, a whole number, a truth value, or a list."""

PageSet = Literal["", "Basic", "Levels", "Launch", "Work"]


class Shape(Struct, frozen=True):
    """A type of value.

    Attributes:
        schema: What the JSON Schema says of it.
        write: Makes it JSON; None for what is JSON as it is.
        cell: What a cell of a flat table holds; None if it fits into none.
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
        meaning: In one line.
        unit: SI base unit or noun; `share` for a fraction of one, `factor` for one of time; empty for texts.
        label: Heading of its column; the name by default.
        value: Takes the value from the record that the object describes; by default the attribute of its name.
        flat: Whether flat faces (CSV, Parquet, frames, columns) hold it, where it fits into a cell.
        page: Set of columns in which the page offers it.
    """

    name: str
    shape: Shape
    meaning: str = ""
    unit: str = ""
    label: str = ""
    value: Callable[[Any], Any] | None = None
    flat: bool = True
    page: PageSet = ""

    @property
    def take(self) -> Callable[[Any], Any]:
        """What takes the value from the record."""
        return self.value or attrgetter(self.name)

    @property
    def schema(self) -> Schema:
        """What the JSON Schema says of the key: its description and unit as well."""
        said = {"description": self.meaning, "unit": self.unit}
        return self.shape.schema | {name: text for name, text in said.items() if text}


class KernelQuantity(Struct, frozen=True):
    """A key of `KERNEL` in flat tables.

    Attributes:
        name: Its flat name.
        path: Its keys in JSON, from the outermost.
        value: Takes it from an `Analysis`; of `kernel_quantities`, from a `KernelSummary`.
    """

    name: str
    path: tuple[str, ...]
    key: Key
    value: Callable[[Any], Any]

    @property
    def kind(self) -> CellKind:
        """What its cells hold."""
        assert self.key.shape.cell is not None  # noqa: S101 - `quantities` leaves out what fits into no cell
        return self.key.shape.cell

    @property
    def label(self) -> str:
        """Heading of its column."""
        return self.key.label or self.name.replace("_", " ")


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


def choices(*words: str) -> Shape:
    """Describe a list of texts, each one of a few words."""
    return Shape({"type": "array", "items": {"enum": list(words)}, "uniqueItems": True}, list, cell="texts")


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
    rows = [(key.name, key.take, key.shape.write) for key in keys]

    def write(record: Any) -> dict[str, Any]:
        written = {}
        for name, take, put in rows:
            value = take(record)
            written[name] = value if put is None else put(value)
        return written

    return Shape(schema, write, keys=keys)


def nullable(of: Shape) -> Shape:
    """Describe an object that may be missing."""
    return Shape(
        {"anyOf": [of.schema, {"type": "null"}]}, lambda value: None if value is None else of.json(value), keys=of.keys
    )


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
    """A hot spot with its share of its kernel's samples, and what the warps there wait for."""

    hotspot: Hotspot
    share_of_samples: float | None
    waits_for: tuple[WaitFor, ...] = ()
    caller: tuple[str, int] | None = None


def hotspots_of(kernel: Kernel, hotspots: Iterable[Hotspot]) -> list[ShownHotspot]:
    """Set hot spots against their kernel's total."""
    samples = kernel.code_totals.get("samples")
    return [
        ShownHotspot(
            hotspot,
            ratio(hotspot.measures.get("samples", 0.0), samples),
            tuple(waits_for(kernel.inside, hotspot)),
            caller_of(kernel.inside, hotspot),
        )
        for hotspot in hotspots
    ]


def _itself(record: Any) -> Any:
    return record


def _own_place(place: Place) -> tuple[str | None, int | None]:
    return place.hotspot.file, place.hotspot.line


def _at_levels(make: Callable[[str], Key]) -> Shape:
    return fixed(*map(make, LEVELS))


def _level(level: str, field: str) -> Callable[[Analysis], Any]:
    take = attrgetter(field)
    return lambda analysis: take(analysis.levels[level])


def _counter(name: str) -> Callable[[Analysis], float | None]:
    return lambda analysis: analysis.kernel.counters.get(name)


SOURCE = Shape({"enum": [*get_args(RoofSource), None]}, cell="text")
_PEAK_SOURCE = (
    "the report's own peak, a rate over its per cent of peak, or the GPU's datasheet, at the profiled clock where that "
    "is known; null without a peak"
)

PIPE = fixed(
    Key("amount_per_s", NUMBER, "work a second, in its unit"),
    Key("peak_per_s", NUMBER, "its roof, in its unit"),
    Key("peak_source", SOURCE, _PEAK_SOURCE),
    Key("unit", choice("FLOP", "op", "inst", "cycle"), "operations, warp instructions, or busy cycles"),
    Key("share", NUMBER, "of its peak", "share"),
)


def _level_key(level: str) -> Key:
    at = _AT[level]
    keys = fixed(
        Key("bytes_per_s", NUMBER, "bytes moved a second", "B/s", f"{at} rate"),
        Key("peak_bytes_per_s", NUMBER, "its roof", "B/s", f"{at} peak"),
        Key("peak_source", SOURCE, _PEAK_SOURCE, label=f"{at} peak from"),
        Key(
            "stage_peak_bytes_per_s",
            NUMBER,
            "the rate at which its busiest stage would be full, at this traffic; null where its roof is what binds",
            "B/s",
            f"{at} stage peak",
        ),
        Key("share", NUMBER, "of the peak of its busiest stage", "share", f"{at} busy", page="Levels"),
        Key("stages", mapping(NUMBER), "share of peak by stage", "share"),
    )
    return Key(level, keys, value=itemgetter(level))


GAIN = fixed(
    Key("factor", NUMBER, "time over the time after the move; gains do not add up", "factor", "Gain", page="Basic"),
    Key("time_after_ns", NUMBER, "time of a launch after the move", "ns", "Time after"),
    Key("proven", TRUTH, "a bound that nothing beats, and no model's estimate"),
    Key("changes", TEXT_OR_NULL, "what the move changes that the limit keeps: types, instructions or bytes"),
)

UNIT_FLOOR = fixed(
    Key("resource", TEXT, "the busiest level or pipe"),
    Key("share", NUMBER, "of the time in which it is busy", "share"),
    Key("floor_ns", NUMBER, "that time: only less work for the unit gets below it", "ns"),
)

DOES = fixed(
    Key("results", NUMBER, "sums that a thread keeps in registers; null on tensor cores", "results"),
    Key("registers", NUMBER, "of a thread", "registers"),
    Key("tile_bytes", NUMBER, "shared memory of a block, without the driver's part", "B"),
    Key("copies", nullable(TEXTS), "how it copies to shared memory past registers: cp.async, bulk copies, TMA"),
    Key(
        "stages",
        NUMBER,
        "tiles in shared memory: the one read, and those that copies bring; null where no code tells",
        "stages",
    ),
    Key(
        "waits_for_oldest",
        nullable(TRUTH),
        "it waits for the oldest copies alone, not for all; null where nothing tells",
    ),
    Key("products_left", NUMBER, "groups of wgmma that its waits leave under way; 0 for none", "groups"),
    Key("products", TEXT_OR_NULL, "what multiplies, and in which type", value=lambda does: does.products or None),
    Key("older_products", nullable(TRUTH), "by an instruction that is older than the chip's own"),
    Key("load_bytes", NUMBER, "its widest load from global memory", "B"),
    Key("lanes", NUMBER, "threads at work in an instruction, up to 32", "threads"),
    Key("reduces_by", nullable(TEXTS), "how its threads cooperate: shuffles, barriers, atomics"),
    Key("persistent", nullable(TRUTH), "it launches as many blocks as SMs hold"),
    Key("specialised", nullable(TRUTH), "warps hand registers to others"),
    Key("sources", mapping(TEXT), "what told each field that is known"),
)

LIMIT = fixed(
    Key("factor", NUMBER, "best possible speed-up; null where unknown or far", "factor", "Limit", page="Basic"),
    Key("far", TRUTH, "over 10x, so that the factor says nothing: the floor is far away"),
    Key("floor_ns", NUMBER, "what its arithmetic or its traffic needs at peak rates", "ns", "Floor", page="Work"),
    Key("by", TEXT, "the side that sets the floor; empty without one"),
    Key("proven", TRUTH, "false at today's traffic, which is no proof that all of it is needed"),
    Key("missing", TEXT_OR_NULL, "the counters that would tell; null where it is known"),
)

EVIDENCE = fixed(
    Key("value", NUMBER, "in its unit"),
    Key("unit", TEXT, "`share` for a fraction of one, a noun for a count, or an SI unit"),
    Key("source", TEXT, "stored metrics or formula that gave it"),
)

PLACE = fixed(
    Key("file", TEXT_OR_NULL, "source file", value=lambda place: (place.caller or _own_place(place))[0]),
    Key(
        "line",
        NUMBER,
        "from 1; null without line information",
        value=lambda place: (place.caller or _own_place(place))[1],
    ),
    Key(
        "library_file",
        TEXT_OR_NULL,
        "header of a library that it stands in, inlined at `line`; null for the program's own",
        value=lambda place: _own_place(place)[0] if place.caller else None,
    ),
    Key(
        "library_line",
        NUMBER,
        "its line there",
        value=lambda place: _own_place(place)[1] if place.caller else None,
    ),
    Key("function", TEXT_OR_NULL, "function that holds the instructions", value=attrgetter("hotspot.function")),
    Key("pc", NUMBER, "offset from the start of the kernel's code", "B", value=attrgetter("hotspot.pc")),
    Key("sass", TEXT_OR_NULL, "the instruction, where it is at one", value=attrgetter("hotspot.sass")),
    Key("share", NUMBER, "part of what the finding is about that is there", "share"),
)

SPELLING = fixed(
    Key("cuda", TEXT_OR_NULL, "in CUDA and PTX"),
    Key("cutlass", TEXT_OR_NULL, "in CUTLASS or CuTe"),
    Key("triton", TEXT_OR_NULL, "in Triton"),
)

EDIT = fixed(
    Key("file", TEXT, "source file of the statement"),
    Key("line", POSITION, "its first line, from 1"),
    Key("last_line", POSITION, "its last line"),
    Key("before", TEXTS, "the statement, line by line"),
    Key("after", TEXTS, "a sketch of what it becomes, not compiled; empty where no general rule makes one"),
    Key("note", TEXT, "what the sketch holds for, or what else has to follow"),
    Key("check", TEXT, "the command that tells what the change did"),
    Key(
        "ways_before",
        NUMBER,
        "passes of its shared-memory accesses for each that their bytes need, replayed and equal to those counted",
        "passes/access",
    ),
    Key("ways_after", NUMBER, "the same with the sketch", "passes/access"),
)

MOVE = fixed(
    Key("finding", TEXT_OR_NULL, "the finding that it comes from; null where it is the limiter's or asks for counters"),
    Key("kind", choice(*get_args(MoveKind)), "what it changes, in one word"),
    Key("text", TEXT, "what to do, in one sentence"),
    Key("where", items(PLACE), "worst first"),
    Key("gain", nullable(GAIN), "what it brings, alone; null where that cannot be modelled"),
    Key("spelling", nullable(SPELLING), "what it is called, on tensor cores and of asynchronous copies; else null"),
    Key("edit", nullable(EDIT), "the statement that it changes; null where the text of its line is not known"),
)

ROOF_REACHED = fixed(
    Key("resource", TEXT, "`dram`, or the pipe"),
    Key("share", NUMBER, "of its peak", "share"),
)

PHASES = fixed(
    Key("resource", TEXT, "level or pipe that is busiest on the plateau"),
    Key("share", NUMBER, "its mean share of peak there", "share"),
    Key("ramp", NUMBER, "of the run before the plateau", "share"),
    Key("plateau", NUMBER, "of the run", "share"),
    Key("tail", NUMBER, "of the run after it", "share"),
    Key("warps_in_tail", NUMBER, "resident warps there over those on the plateau; null where not sampled", "factor"),
)


def _of_verdict(name: str, shape: Shape, meaning: str, *, label: str = "", flat: bool = True) -> Key:
    return Key(name, shape, meaning, label=label, value=attrgetter(f"verdict.{name}"), flat=flat)


VERDICT = fixed(
    _of_verdict("bound", choice(*BOUNDS), "the class of the limit: `rooflens about verdicts/NAME`", label="Verdict"),
    _of_verdict(
        "or_bound",
        choices(*BOUNDS),
        "classes that a side which was not measured could turn it into; empty where the class is sure",
        label="Or",
    ),
    _of_verdict(
        "unmeasured",
        TEXTS,
        "what was not measured and may be busier than all that was: levels, `other pipes`, or a side as a whole",
        label="Not measured",
    ),
    _of_verdict("resource", TEXT_OR_NULL, "level or pipe of the limit; null for latency, overhead and unknown"),
    _of_verdict("at_roof", TRUTH, "the limit is reached: only less work or fewer bytes help"),
    _of_verdict("full_for_a_while", TRUTH, "the limit holds for a part of the run, its plateau", flat=False),
    _of_verdict("cause", TEXT_OR_NULL, "a short phrase; null where the class says all"),
    _of_verdict("causes", TEXTS, "ids of the findings that say why it waits, the first cause first", flat=False),
    Key(
        "wait_explained",
        nullable(TRUTH),
        "whether these explain most of what it waits for; null of another class than latency",
        value=attrgetter("verdict.is_wait_explained"),
        flat=False,
    ),
    Key(
        "share_while_active",
        NUMBER,
        "how busy its busiest unit is while SMs have work, where that is more than on average; else null",
        "share",
        value=attrgetter("verdict.share_while_active"),
        flat=False,
    ),
    Key(
        "brief",
        TRUTH,
        "it waits, and the start and the end of any launch are a good part of its time",
        value=attrgetter("verdict.is_brief"),
        flat=False,
    ),
    Key("sentence", TEXT, "the verdict in one sentence, with its decisive numbers", value=verdict_sentence),
    _of_verdict("gain", nullable(GAIN), "what the best of its moves brings, alone; null where that cannot be modelled"),
    _of_verdict("limit", LIMIT, "how much faster at most: with the same arithmetic, types and needed bytes"),
    _of_verdict("today", nullable(UNIT_FLOOR), "the floor with today's instructions and traffic; null where unknown"),
    _of_verdict("does", DOES, "what it already does, which no move advises; null where nothing tells"),
    Key(
        "done",
        TEXT_OR_NULL,
        "the roof that it has reached: only another algorithm or type gets further; null elsewhere",
        value=lambda analysis: done_words(analysis) or None,
    ),
    Key(
        "done_at",
        nullable(ROOF_REACHED),
        "the same as numbers; null while there is something left to win",
        value=attrgetter("verdict.done"),
        flat=False,
    ),
    _of_verdict("moves", items(MOVE), "what to do, first things first"),
    _of_verdict("confidence", choice(*get_args(Confidence)), "how sure the verdict is"),
    Key("evidence", TEXTS, "the numbers behind it, in words", value=evidence_lines, flat=False),
)

COST = fixed(
    Key("low", NUMBER, "what is proven: the time in which its unit works in vain", "share"),
    Key("high", NUMBER, "what it can be: the time that goes with it", "share"),
)

FINDING = fixed(
    Key("id", TEXT, "which finding it is: `rooflens about findings/ID`"),
    Key("title", TEXT, "the finding in words"),
    Key(
        "severity",
        choice(*get_args(Severity)),
        "limiter: it bounds the kernel; contributes: it costs time besides; note: true, but not what costs time",
    ),
    Key(
        "evidence",
        mapping(EVIDENCE),
        "the numbers behind it, by name",
        value=lambda finding: {number.name: number for number in finding.evidence},
    ),
    Key("gain", nullable(GAIN), "what its move brings, alone; null for notes, and where that cannot be modelled"),
    Key("cost", nullable(COST), "what goes to it of the kernel's time; null where nothing tells"),
    Key("where", items(PLACE), "worst first"),
    Key("move", TEXT, "what to do, in one sentence"),
    Key("kind", choice(*get_args(MoveKind)), "what the move changes, in one word"),
    Key("confidence", choice(*get_args(Confidence)), "how sure it is"),
)

WAIT = fixed(
    Key("file", TEXT_OR_NULL, "source file of the instruction that is waited for", value=attrgetter("wait.file")),
    Key("line", NUMBER, "from 1; null without line information", value=attrgetter("wait.line")),
    Key("pc", POSITION, "offset from the start of the kernel's code", "B", value=attrgetter("wait.pc")),
    Key("sass", TEXT_OR_NULL, "the instruction in text", value=attrgetter("wait.sass")),
    Key("share", NUMBER, "of the samples here", "share"),
    Key("reason", TEXT, "why these samples wait", value=attrgetter("wait.reason")),
    Key(
        "how",
        choice(*get_args(WaitFound)),
        "what tells: the scoreboard that it sets, registers, its group, its mbarrier, the queue that it fills, the "
        "barrier, or its order",
        value=attrgetter("wait.how"),
    ),
)

HOTSPOT = fixed(
    Key("by", choice(*get_args(Grain)), "a source line, an instruction or a function", value=attrgetter("hotspot.by")),
    Key("file", TEXT_OR_NULL, "source file", value=attrgetter("hotspot.file")),
    Key("line", NUMBER, "from 1; null without line information", value=attrgetter("hotspot.line")),
    Key("function", TEXT_OR_NULL, "function that holds the instructions", value=attrgetter("hotspot.function")),
    Key("pc", NUMBER, "offset from the start of the kernel's code", "B", value=attrgetter("hotspot.pc")),
    Key("sass", TEXT_OR_NULL, "the instruction in text", value=attrgetter("hotspot.sass")),
    Key(
        "text",
        TEXT_OR_NULL,
        "the source line in text, where the report embeds the file",
        value=attrgetter("hotspot.text"),
    ),
    Key(
        "measures",
        mapping(NUMBER),
        "whole amounts; those that are 0 are left out",
        value=attrgetter("hotspot.measures"),
    ),
    Key("share_of_samples", NUMBER, "of the kernel's; null where it has none", "share"),
    Key("leading_stall", TEXT_OR_NULL, "what most samples wait for", value=lambda shown: leading_stall(shown.hotspot)),
    Key("waits_for", items(WAIT), "instructions that its samples wait for, most first; empty where nobody looked"),
    Key(
        "caller_file",
        TEXT_OR_NULL,
        "of a line of a library: the program's own file that it was inlined at; else null",
        value=lambda shown: None if shown.caller is None else shown.caller[0],
    ),
    Key(
        "caller_line",
        NUMBER,
        "its line, from 1",
        value=lambda shown: None if shown.caller is None else shown.caller[1],
    ),
)


ANATOMY = fixed(
    Key("instructions", NUMBER, "warp instructions a trip"),
    Key("by_kind", mapping(NUMBER), "the same by purpose"),
    Key(
        "global_loads",
        mapping(NUMBER),
        "loads of global memory a trip, by width in bytes a thread",
        value=lambda body: {str(width): count for width, count in body.global_loads.items()},
    ),
    Key(
        "shared_loads",
        mapping(NUMBER),
        "loads of shared memory a trip, by width in bytes a thread",
        value=lambda body: {str(width): count for width, count in body.shared_loads.items()},
    ),
    Key("stores", NUMBER, "stores a trip to global and shared memory"),
    Key("multiply_adds", NUMBER, "multiply-adds a thread and trip"),
    Key("dtype", TEXT_OR_NULL, "type of most of them"),
    Key("is_matrix", TRUTH, "matrix instructions make them"),
    Key("global_operands", NUMBER, "values loaded from global memory for each multiply-add"),
    Key("shared_operands", NUMBER, "values loaded from shared memory for each multiply-add"),
    Key("results", NUMBER, "sums that a thread keeps; null for matrix instructions"),
    Key("in_flight", NUMBER, "global loads of a warp under way where most of the wait for them is"),
    Key("barriers", NUMBER, "block-wide barriers a trip"),
    Key("address_share", NUMBER, "of the instructions that count, move, jump and compute addresses", "share"),
    Key("copies_asynchronously", TRUTH, "it copies to shared memory without waiting"),
    Key("unroll", NUMBER, "how far its counter steps; null where no one register counts"),
    Key("stages", NUMBER, "tiles in shared memory: the one read, and those that copies bring; null without groups"),
    Key("groups_left", NUMBER, "groups of copies that its waits leave under way; 0 where it waits for all"),
    Key("products_left", NUMBER, "groups of wgmma that its waits leave under way; 0 for none", "groups"),
)

LOOP = fixed(
    Key("id", POSITION, "number of the row in the kernel", value=attrgetter("loop.id")),
    Key(
        "kind",
        choice(*get_args(LoopKind)),
        "a loop, or a straight part before, between or after loops",
        value=attrgetter("loop.kind"),
    ),
    Key(
        "name",
        TEXT,
        "of a straight part: prologue, between, epilogue, called, or body where there is no loop",
        value=attrgetter("loop.name"),
    ),
    Key("parent", NUMBER, "id of the loop around it; null for an outermost one", value=attrgetter("loop.parent")),
    Key(
        "start",
        POSITION,
        "offset of its first instruction",
        "B",
        value=attrgetter("loop.start"),
    ),
    Key("end", POSITION, "offset of its last instruction", "B", value=attrgetter("loop.end")),
    Key("file", TEXT_OR_NULL, "source file", value=attrgetter("loop.file")),
    Key("line", NUMBER, "its first line, from 1; null without line information", value=attrgetter("loop.line")),
    Key("last_line", NUMBER, "its last line", value=attrgetter("loop.last_line")),
    Key(
        "library_file",
        TEXT_OR_NULL,
        "header of a library that it stands in, inlined at `line`; null for the program's own",
        value=attrgetter("loop.library_file"),
    ),
    Key("library_line", NUMBER, "its line there", value=attrgetter("loop.library_line")),
    Key("trips", NUMBER, "how often the body runs for each warp that enters", value=attrgetter("loop.trips")),
    Key("share", NUMBER, "of the kernel's samples, inner loops too: of warps' time, not the clock's", "share"),
    Key("share_self", NUMBER, "the same without inner loops", "share"),
    Key(
        "warp_inst",
        NUMBER,
        "warp instructions, inner loops too",
        value=lambda one: one.loop.amounts.get("warp_inst", 0),
    ),
    Key(
        "thread_inst",
        NUMBER,
        "thread instructions, inner loops too",
        value=lambda one: one.loop.amounts.get("thread_inst", 0),
    ),
    Key("flop", NUMBER, "operations, inner loops too", "FLOP"),
    Key("l2_bytes", NUMBER, "its part of the kernel's L2 bytes, by the sectors that its accesses touch", "B"),
    Key("smem_bytes", NUMBER, "its part of the kernel's shared-memory bytes, by the wavefronts of its accesses", "B"),
    Key("intensity", NUMBER, "flop / l2_bytes", "FLOP/B"),
    Key("flop_per_s", NUMBER, "flop over the kernel's time x share: while warps are in it", "FLOP/s"),
    Key("class", choice(*BOUNDS), "by what is busy while warps are in it", value=attrgetter("bound")),
    Key("resource", TEXT_OR_NULL, "level or pipe that is busiest while warps are in it"),
    Key("resource_share", NUMBER, "how busy that is; null where other parts run at the same moment", "share"),
    Key("job", TEXT, "what it is there for, in a word or two"),
    Key(
        "stalls",
        mapping(NUMBER),
        "its own samples by stall reason",
        value=lambda one: {
            name.removeprefix(STALL): amount for name, amount in one.loop.own.items() if name.startswith(STALL)
        },
    ),
    Key(
        "anatomy",
        nullable(ANATOMY),
        "what a trip consists of; null for straight parts",
        value=attrgetter("loop.anatomy"),
    ),
)

WORK = fixed(
    Key(
        "unit",
        choice("FLOP", "op"),
        "FLOP, or op where all counted operations are integer",
        label="Unit",
        value=lambda placed: placed[0].unit,
        page="Work",
    ),
    Key(
        "amount",
        NUMBER,
        "operations of one launch",
        "FLOP or op",
        "Operations",
        value=lambda placed: placed[0].total,
    ),
    Key(
        "amount_per_s",
        NUMBER,
        "operations a second",
        "FLOP/s or op/s",
        "Achieved",
        value=lambda placed: placed[0].per_s,
        page="Work",
    ),
    Key(
        "peak_per_s",
        NUMBER,
        "of its mix of types",
        "FLOP/s or op/s",
        "Peak of its mix",
        value=lambda placed: placed[0].peak_per_s,
    ),
    Key(
        "per_byte",
        _at_levels(
            lambda level: Key(
                level,
                NUMBER,
                "operations for each byte moved",
                "FLOP/B or op/B",
                f"AI at {_AT[level]}",
                value=lambda placed: placed[0].intensity(placed[1][level]),
                page="Levels",
            )
        ),
        "operations for each byte moved, by memory level",
        value=_itself,
    ),
)

NVIDIA = fixed(
    Key("bottleneck", TEXT_OR_NULL, "what NVIDIA's own rules in the report call the bottleneck"),
    Key("fp32_pct_of_peak", STATED, "by NVIDIA's rule", "%"),
    Key("fp64_pct_of_peak", STATED, "by NVIDIA's rule", "%"),
)


IN_PROGRAM = fixed(
    Key("time_ns", NUMBER, "median time of a launch", "ns", "Alone"),
    Key("low_ns", NUMBER, "tenth percentile of the times", "ns"),
    Key("high_ns", NUMBER, "ninetieth percentile of the times", "ns"),
    Key("total_ns", NUMBER, "time of all launches that this profile stands for", "ns"),
    Key("share", NUMBER, "of the time of all kernels of the program", "share"),
    Key("gap_ns", NUMBER, "idle time of the GPU around a launch, median", "ns"),
    Key("streams", Shape({"type": "array", "items": {"type": "integer"}}, list), "numbers of the streams"),
    Key("nvtx_range", TEXT_OR_NULL, "NVTX ranges, or ranges of `record_function`, that most launches were in"),
    Key("module", TEXT_OR_NULL, "module whose forward pass made most launches"),
    Key("operator", TEXT_OR_NULL, "operator that made most launches"),
    Key("code", TEXT_OR_NULL, "file and line, or node of a compiler's graph, that made most launches"),
)


KERNEL = fixed(
    Key("source", TEXT, "path of the report as it was given", label="Report", value=attrgetter("kernel.source")),
    Key("index", POSITION, "position among the report's results, from 0", value=attrgetter("kernel.index")),
    Key(
        "name",
        TEXT,
        "demangled name, with template arguments and parameters where the report has them",
        value=attrgetter("kernel.name"),
    ),
    Key("function", TEXT, "name of the function alone", value=attrgetter("kernel.function_name")),
    Key(
        "short_name",
        TEXT,
        "what sets its name apart in its report: the function, and the template arguments that differ",
    ),
    Key("key", TEXT, "name of the launch from run to run; unique in its report"),
    Key("digest", TEXT, "SHA-256 of the report", value=attrgetter("kernel.digest")),
    Key("gpu", TEXT_OR_NULL, "name as the report has it", label="GPU", value=attrgetter("kernel.gpu")),
    Key("compute_capability", TEXT_OR_NULL, "such as 9.0", value=attrgetter("kernel.compute_capability")),
    Key(
        "nvtx_range",
        TEXT_OR_NULL,
        "path of the NVTX ranges it was launched in, from the outermost in; null outside any",
        label="NVTX range",
        value=attrgetter("kernel.nvtx_range"),
    ),
    Key(
        "status",
        choice(*get_args(Status)),
        "failed: it failed under the profiler, or holds an impossible value; partial: some counters are missing",
        value=attrgetter("kernel.status"),
    ),
    Key(
        "status_reason",
        TEXT_OR_NULL,
        "why it failed, or which values could not be read; else null",
        value=attrgetter("kernel.status_reason"),
    ),
    Key("synthetic", TRUTH, "a generator wrote the report: nothing was recorded", value=attrgetter("kernel.synthetic")),
    Key(
        "duration_ns", NUMBER, "GPU time of one launch under the profiler", "ns", value=attrgetter("kernel.duration_ns")
    ),
    Key("launches", POSITION, "launches of the program that it stands for: 1, unless an un-profiled run counted them"),
    Key("gpu_time_ns", NUMBER, "GPU time of all these launches, without the profiler if known", "ns", "GPU time"),
    Key(
        "in_program",
        nullable(IN_PROGRAM),
        "the kernel in its program without the profiler; null where no launch was timed",
    ),
    Key("grid", SIZE, "blocks of the launch in x, y and z", "blocks", value=attrgetter("kernel.grid")),
    Key(
        "grid_size",
        NUMBER,
        "blocks of the launch",
        "blocks",
        "Grid",
        value=attrgetter("kernel.grid_blocks"),
        page="Launch",
    ),
    Key("block", SIZE, "threads of a block in x, y and z", "threads", value=attrgetter("kernel.block")),
    Key(
        "block_size",
        NUMBER,
        "threads of a block",
        "threads",
        "Block",
        value=attrgetter("kernel.block_threads"),
        page="Launch",
    ),
    Key(
        "registers_per_thread",
        NUMBER,
        "registers of a thread",
        "registers",
        "Registers",
        value=_counter("registers_per_thread"),
        page="Launch",
    ),
    Key(
        "smem_per_block_bytes",
        NUMBER,
        "shared memory of a block",
        "B",
        "Shared memory",
        value=_counter("smem_per_block_bytes"),
        page="Launch",
    ),
    Key(
        "occupancy",
        NUMBER,
        "achieved, of the warp slots of the SMs",
        "share",
        "Occupancy",
        value=_counter("achieved_occupancy"),
        page="Launch",
    ),
    Key(
        "bytes",
        _at_levels(
            lambda level: Key(
                level,
                NUMBER,
                "bytes moved",
                "B",
                f"{_AT[level]} bytes",
                value=_level(level, "amount_bytes"),
            )
        ),
        "bytes moved at each memory level; null where not measured",
        "B",
        value=_itself,
    ),
    Key(
        "bytes_source",
        _at_levels(
            lambda level: Key(
                level,
                TEXT_OR_NULL,
                "stored metrics or formula that gave the bytes",
                value=_level(level, "source"),
                flat=False,
            )
        ),
        "stored metrics or formula that gave the bytes",
        value=_itself,
    ),
    Key(
        "flop",
        mapping(
            NUMBER,
            *(
                Key(name, NUMBER, f"{name} operations", "FLOP or op", value=methodcaller("get", name))
                for name in DTYPES
            ),
        ),
        "operations by dtype; integer tensor operations stand here and in no total",
        "FLOP",
    ),
    Key(
        "flop_source",
        mapping(choice("opcode", "tensor_ops", "sass", "estimated", "upper_bound")),
        "an upper bound is in no total",
    ),
    Key(
        "flop_total",
        NUMBER,
        "floating-point operations of the types that were counted; null where none was, or uncounted work is known",
        "FLOP",
        "FLOPs",
    ),
    Key("flop_uncounted", choices(*SCALAR_DTYPES, "tensor"), "types that were not counted, and are in no total"),
    Key("flop_per_s", NUMBER, "floating-point operations a second", "FLOP/s", "FLOP rate"),
    Key("flop_peak_per_s", NUMBER, "roof of its mix of floating-point types", "FLOP/s", "FLOP peak"),
    Key(
        "intensity",
        _at_levels(
            lambda level: Key(
                level,
                NUMBER,
                "FLOP for each byte moved",
                "FLOP/B",
                f"FLOP/B at {_AT[level]}",
                value=_level(level, "intensity_flop_per_byte"),
            )
        ),
        "FLOP per byte",
        "FLOP/B",
        value=_itself,
    ),
    Key(
        "work",
        WORK,
        "its main work, from which it is placed: integer tensor operations where those need more time than FLOPs",
        value=lambda analysis: (main_work(analysis), analysis.levels),
    ),
    Key("pipes", mapping(PIPE), "by pipe: number types (fp32, tensor_bf16, ...), alu, xu, lsu, issue"),
    Key(
        "levels",
        _at_levels(_level_key),
        "share = the largest stage; fractions of the report's own peaks at the profiled clock, else of published ones",
    ),
    Key(
        "role",
        choice(*get_args(Role)),
        "kernel: its code can be changed; library: a library's; fill: it fills inputs; copy: it copies memory",
    ),
    Key("verdict", VERDICT, "what limits the kernel", value=_itself),
    Key("phases", nullable(PHASES), "how its run divides; null without samples or a clear plateau", flat=False),
    Key("findings", items(FINDING), "first what costs time, then notes"),
    Key(
        "hotspots",
        items(HOTSPOT),
        "hottest lines, instructions and functions, each with its whole amounts; empty where none were recorded",
        value=lambda analysis: hotspots_of(analysis.kernel, analysis.kernel.hotspots),
    ),
    Key("loops", items(LOOP), "loops and straight parts, which add up; empty where nobody looked inside"),
    Key(
        "loops_note",
        TEXT_OR_NULL,
        "why there are no loops though somebody looked, or how far it is known what waits wait for",
        value=lambda analysis: (analysis.kernel.inside.note or None) if analysis.kernel.inside else None,
        flat=False,
    ),
    Key("nvidia", NVIDIA, "NVIDIA's own rules where the report has them"),
    Key("flags", FLAGS, "traps that apply to this kernel: `rooflens about flags/NAME`"),
)
"""Everything that is written of a launch."""

_RANKED_BY = ("gain", "limit", "time", "library", "fill")

OPPORTUNITY = fixed(
    Key(
        "kernels",
        TEXTS,
        "keys of the median launches of the kernels that the move is for",
        value=lambda ranked: [one.analysis.key for one in ranked[0].members or (ranked[0],)],
    ),
    Key("launches", POSITION, "launches of all of them", value=lambda ranked: ranked[0].launch_count),
    Key("time_ns", NUMBER, "GPU time of all of them", "ns", value=lambda ranked: ranked[0].duration_ns),
    Key("time_share", NUMBER, "of the GPU time of all kernels", "share", value=lambda ranked: ranked[0].time_share),
    Key(
        "move",
        nullable(MOVE),
        "the first move; null where there is none",
        value=lambda ranked: next(iter(ranked[0].analysis.verdict.moves), None),
    ),
    Key(
        "winnable_ns",
        NUMBER,
        "GPU time that the best move wins, or else what lies above the floor of the limit",
        "ns",
        value=lambda ranked: ranked[0].winnable_ns,
    ),
    Key(
        "by",
        choice(*_RANKED_BY),
        "what it is ranked by: all with a gain come first; libraries and what fills inputs, last, stand by their time",
        value=lambda ranked: _RANKED_BY[ranked[1]],
    ),
)
"""A row of what to do first: a `KernelSummary` and its place among `_RANKED_BY`."""

COMPARED = fixed(
    Key(
        "quantity",
        choice(*get_args(PredictedQuantity)),
        "the last three are times that the measured one is compared with: no kernel is faster, a kernel for each step "
        "of a composite operation, and published ones",
        value=attrgetter("name"),
    ),
    Key("unit", choice("FLOP", "op", "B", "FLOP/B", "ns"), "of both", flat=False),
    Key("predicted", NUMBER, "by formula, of one iteration"),
    Key("measured", NUMBER, "of its kernels"),
    Key("factor", NUMBER, "measured over predicted", "factor", "ratio"),
    Key("verdict", choice(*get_args(PredictedVerdict)), "what the measured amount is beside the predicted one"),
)
"""A row of predicted against measured: a `Compared`; tables have a column for each key that is flat."""

CHECKED = fixed(
    Key("digest", TEXT, "of the report"),
    Key("kernels", TEXT_OR_NULL, "pattern of the kernels that it is about; null for all", value=attrgetter("kernel")),
    Key("operation", TEXT, "what was predicted", value=attrgetter("prediction.operation")),
    Key("dtype", TEXT, "of the operands", value=attrgetter("prediction.dtype")),
    Key("sizes", mapping(NUMBER), "by name", value=attrgetter("prediction.parameters")),
    Key("launches", POSITION, "that the measured amounts are of", value=attrgetter("measured.launches")),
    Key("at_least", TRUTH, "equal launches were profiled once, and the measured amounts are lower bounds"),
    Key("rows", items(COMPARED), "what was predicted and measured"),
    Key(
        "expected_bound",
        Shape({"enum": [*BOUNDS, None]}, cell="text"),
        "class that was expected; null where none was",
        value=attrgetter("prediction.bound"),
    ),
    Key(
        "bound",
        TEXT_OR_NULL,
        "class of most of the time",
        value=lambda checked: checked.measured.limiter and checked.measured.limiter[0],
    ),
    Key("gaps", TEXTS, "keys of what may explain the differences, such as `read_again`"),
)
"""A prediction with its measurement."""

GAPS_AFTER = fixed(
    Key(
        "kernel", TEXT_OR_NULL, "ran before the gaps; null for copies and graphs traced whole", value=attrgetter("name")
    ),
    Key("count", NUMBER, "gaps after it"),
    Key("gap_ns", NUMBER, "their time together", "ns"),
)

PROGRAM = fixed(
    Key("source", TEXT, "path of its report as it was given", value=attrgetter("run.source")),
    Key(
        "measured_by",
        choice(*SOURCES),
        "what timed the run without the profiler: the workload itself, nsys, a trace of the PyTorch profiler, or only "
        "the clock on the wall",
        value=attrgetter("unprofiled.source"),
    ),
    Key("wall_ns", NUMBER, "time of the run without the profiler", "ns", value=attrgetter("unprofiled.wall_ns")),
    Key("gap_ns", NUMBER, "no kernel ran; null where nobody looked", "ns", value=attrgetter("unprofiled.gap_ns")),
    Key("gap_share", NUMBER, "gap_ns / wall_ns", "share", value=attrgetter("unprofiled.gap_share")),
    Key(
        "overlap_ns",
        NUMBER,
        "two kernels or copies, or more, ran at once; null where nobody looked",
        "ns",
        value=attrgetter("unprofiled.overlap_ns"),
    ),
    Key("gaps_after", items(GAPS_AFTER), "longest sum first", value=attrgetter("unprofiled.gaps_after")),
)
"""Everything that is written of a program that was also run without the profiler."""


_SHAPE_TEXT = "sizes of the tensors that its operator was called with: `[2048, 256] [256, 512]`; null where unknown"

MEASURED = fixed(
    Key("source", TEXT, "path of the report as it was given", value=attrgetter("kernel.source")),
    Key("key", TEXT, "names the launch in that report: `--kernel` takes it"),
    Key("duration_ns", NUMBER, "of that launch under ncu", "ns", value=attrgetter("kernel.duration_ns")),
    Key("sentence", TEXT, "its verdict", value=verdict_sentence),
    Key("gain", nullable(GAIN), "what its best move brings, alone", value=attrgetter("verdict.gain")),
    Key("limit", LIMIT, "how much faster at most", value=attrgetter("verdict.limit")),
    Key("moves", items(MOVE), "what to do, first things first", value=attrgetter("verdict.moves")),
)
"""What a report beside a trace says of a kernel of it: its median launch."""

_SHARE = (
    "`wall_ns` over that of the program; null of communication, whose exposed time has one; of a printed summary, "
    "which has no `wall_ns`, `time_ns` over that of all kernels"
)

PROGRAM_KERNEL = fixed(
    Key("name", TEXT, "as the trace has it"),
    Key("time_ns", NUMBER, "all launches", "ns"),
    Key("count", NUMBER, "launches", "launches"),
    Key("share", NUMBER, _SHARE, "share"),
    Key("shape", TEXT_OR_NULL, _SHAPE_TEXT),
    Key("wall_ns", NUMBER, "of the program's time: an instant is shared among the compute kernels that run", "ns"),
    Key("floor_ns", NUMBER, "no less for all launches, with caches as `caches` says; null where not known", "ns"),
    Key("module", TEXT_OR_NULL, "whose forward pass launched most of it; `Block_*` where several of a kind did"),
    Key("operator", TEXT_OR_NULL, "that launched it"),
    Key("dtype", TEXT_OR_NULL, "types of these tensors, as PyTorch names them"),
    Key("launch_ns", NUMBER, "a typical launch", "ns"),
    Key("gap_ns", NUMBER, "the GPU was idle before these launches", "ns"),
    Key("grid", SIZE, "of most launches", "blocks"),
    Key("block", SIZE, "of most launches", "threads"),
    Key("code", TEXT_OR_NULL, "file and line, or node of a compiler's graph, that launched most of it"),
    Key("nvtx_range", TEXT_OR_NULL, "open on the host at most of it, outermost first; `*` for numbers that differ"),
    Key("flop", NUMBER, "of one call, by its sizes", "FLOP"),
    Key("moved_bytes", NUMBER, "of one call: operands read once, results written once", "B"),
    Key("floor_cold_ns", NUMBER, "floor of all launches where L2 holds nothing before", "ns"),
    Key(
        "caches",
        Shape({"enum": ["cold", "warm", "partly", None]}, cell="text"),
        "of `floor_ns`: `cold`; where it took less, `warm` if operands and result fit in L2, else `partly`",
    ),
    Key("limited_by", TEXT_OR_NULL, "what the cold floor is the time of: memory or compute"),
    Key(
        "gain_ns",
        NUMBER,
        "time above the cold floor, and above 5 µs a launch; of one in a report what its best move wins, or what lies "
        "above its limit; null where nobody knows",
        "ns",
    ),
    Key(
        "by",
        choice("gain", "limit", "time", "communication", "floor"),
        "what it is ranked by: what its best move wins, what lies above floor or limit, all of its time because "
        "neither is known; those that wait for other GPUs, and those with nothing to win, come last",
    ),
    Key("bound", choice(*BOUNDS), "`unknown`: nothing was counted in it; `overhead` where gaps outweigh it"),
    Key("or_bound", choices(*BOUNDS), "the classes that it can have"),
    Key(
        "launch",
        nullable(POSITION),
        "a typical launch among those of its function, from 0: what `--launch-skip` takes; null of a printed summary",
    ),
    Key("measured", nullable(MEASURED), "the same kernel in a report beside the trace; null where none has it"),
)
"""Everything that is written of a kernel of a trace, without a report."""

STRETCH = fixed(
    Key("start_ns", NUMBER, "from the first launch", "ns"),
    Key("wall_ns", NUMBER, "from the gap before its first launch to the end of its last", "ns"),
    Key("gap_ns", NUMBER, "the GPU was idle", "ns"),
    Key("count", NUMBER, "launches", "launches"),
    Key("first", TEXT, "kernel that it begins with"),
    Key("last", TEXT, "kernel that it ends with"),
    Key("module", TEXT_OR_NULL, "of its first kernel"),
    Key("nvtx_range", TEXT_OR_NULL, "of its first kernel"),
)

UNKNOWN_OPERATOR = fixed(
    Key("operator", TEXT_OR_NULL, "null: no operator is known to have launched them", value=attrgetter("name")),
    Key("count", NUMBER, "launches", "launches"),
    Key("time_ns", NUMBER, "all launches", "ns"),
    Key("share", NUMBER, "as of a kernel", "share"),
)

COLLECTIVE = fixed(
    Key("name", TEXT, "the collective; the kernel's function where nothing tells it"),
    Key("kernel", TEXT, "function of the kernel"),
    Key("group", TEXT_OR_NULL, "name of the group of ranks; null where the trace does not say, as of what follows"),
    Key("description", TEXT_OR_NULL, "what the group is for"),
    Key("ranks", TEXT_OR_NULL, "ranks of the group"),
    Key("gpus", NUMBER, "ranks of the group", "GPUs"),
    Key("gpus_assumed", TRUTH, "the trace does not say; all its ranks are taken", value=attrgetter("are_gpus_assumed")),
    Key("dtype", TEXT_OR_NULL, "type of the elements, as PyTorch names it"),
    Key(
        "size_bytes",
        NUMBER,
        "as nccl-tests count it: of an all-gather and a reduce-scatter all ranks together, else the buffer of one",
        "B",
    ),
    Key("algorithm", TEXT_OR_NULL, "in the kernel's name, which is no proof: NCCL runs any in any of its kernels"),
    Key("protocol", TEXT_OR_NULL, "in the kernel's name, likewise"),
    Key("count", NUMBER, "launches", "launches"),
    Key("time_ns", NUMBER, "all launches", "ns"),
    Key("exposed_ns", NUMBER, "of it: no kernel ran on the GPU that does not communicate", "ns"),
    Key("hidden_ns", NUMBER, "the rest", "ns"),
    Key("median_ns", NUMBER, "the median launch", "ns"),
    Key("best_ns", NUMBER, "the shortest, which waits least for other ranks", "ns"),
    Key("algorithm_bytes_per_s", NUMBER, "size over time of the median launch", "B/s"),
    Key("bus_bytes_per_s", NUMBER, "bus bandwidth of the median launch, as nccl-tests define it", "B/s"),
    Key("best_bus_bytes_per_s", NUMBER, "bus bandwidth of the shortest launch", "B/s"),
    Key("link", TEXT_OR_NULL, "what joins the GPUs; null where unknown", value=attrgetter("link_name")),
    Key("link_bytes_per_s", NUMBER, "what it can send while it receives as much, by the datasheet", "B/s"),
)
"""All launches of one collective by one group with one size."""

COMMUNICATION = fixed(
    Key("count", NUMBER, "launches", "launches"),
    Key("time_ns", NUMBER, "all launches", "ns"),
    Key(
        "share", NUMBER, "`exposed_ns` over `wall_ns`; of a printed summary `time_ns` over that of all kernels", "share"
    ),
    Key("exposed_ns", NUMBER, "one of them ran, and no compute kernel on its GPU; null of a printed summary", "ns"),
    Key("hidden_ns", NUMBER, "the rest of their time", "ns"),
    Key("collectives", items(COLLECTIVE), "by group and size, most exposed time first"),
)

RANK = fixed(
    Key("source", TEXT, "path as it was given", value=attrgetter("program.source")),
    Key("rank", nullable(POSITION), "which process it is", value=attrgetter("program.rank")),
    Key("kernels_ns", NUMBER, "kernels that do not communicate", "ns"),
    Key("idle_ns", NUMBER, "no kernel and no copy ran", "ns", value=attrgetter("program.unprofiled.gap_ns")),
    Key("exposed_ns", NUMBER, "only communication ran; null without any", "ns"),
    Key("hidden_ns", NUMBER, "the rest of its time", "ns"),
    Key("compared", NUMBER, "collectives set beside those of other ranks", "collectives"),
    Key("waits_ns", NUMBER, "waited in them for the last rank; null without any", "ns"),
    Key("late_ns", NUMBER, "came to them after the median of the other ranks; null without any", "ns"),
)
"""A rank beside the others; ranks are aligned by the ends of their collectives."""

WAITED_FOR = fixed(
    Key("source", TEXT, "its trace", value=attrgetter("rank.program.source")),
    Key("rank", nullable(POSITION), "which process it is", value=attrgetter("rank.program.rank")),
    Key(
        "late_ns",
        NUMBER,
        "later than the median of the others; null without collectives to compare",
        "ns",
        value=attrgetter("rank.late_ns"),
    ),
    Key("first_ns", NUMBER, "of it, at first collectives, to which ranks also come late that were recorded late", "ns"),
    Key(
        "reason",
        Shape({"enum": ["kernels", "host", None]}, cell="text"),
        "what took longer there before it came late: kernels, or the host, for which the GPU was idle; null where "
        "unknown",
    ),
    Key("more_ns", NUMBER, "how much longer", "ns"),
    Key("kernel", TEXT_OR_NULL, "loses most time there against the median of the others"),
    Key("operator", TEXT_OR_NULL, "of that kernel, or what the host was in"),
    Key("time_ns", NUMBER, "of that kernel, all launches there", "ns"),
    Key("usual_ns", NUMBER, "of that kernel, the median of the others", "ns"),
)
"""The rank that the others wait for, and why."""

TOTAL = fixed(
    Key("of", choices("kernel", "operator", "copy", "call", "range"), "calls and ranges are of the host"),
    Key("name", TEXT, "as printed"),
    Key("count", NUMBER, "how often"),
    Key("time_ns", NUMBER, "their time together", "ns"),
)
"""A row of a printed summary that is no kernel, or is of the same time as one."""

STEP = fixed(
    Key("index", NUMBER, "from 0"),
    Key("name", TEXT_OR_NULL, "of the range that marks it; null for a repetition"),
    Key("begin_ns", NUMBER, "from the first launch of the program to the first kernel of the step", "ns"),
    Key("wall_ns", NUMBER, "to the first kernel of the next step", "ns"),
    Key("kernel_ns", NUMBER, "times of its launches; those that overlap count in full", "ns"),
    Key("launches", NUMBER, "in it", "launches"),
    Key("idle_ns", NUMBER, "the GPUs did nothing", "ns"),
)
"""One step of a program on its GPUs."""

PARTS = fixed(
    Key("faster_ns", NUMBER, "kernels: what could be won of them at most", "ns"),
    Key("floor_ns", NUMBER, "the rest of those kernels: at their floor, or as short as a launch", "ns"),
    Key("open_ns", NUMBER, "kernels of which nobody knows what can be won", "ns"),
    Key("communication_ns", NUMBER, "a kernel that waits for other GPUs ran, and no other kernel or graph", "ns"),
    Key("copies_ns", NUMBER, "a copy or memset ran, and no kernel or graph", "ns"),
    Key("graphs_ns", NUMBER, "a graph ran that was traced as one, and no kernel", "ns"),
    Key("unknown_ns", NUMBER, "a graph may have run of which nothing was recorded, and nothing else", "ns"),
    Key("launching_ns", NUMBER, "idle: launches came later, one by one, than the GPU could take them", "ns"),
    Key("synchronizing_ns", NUMBER, "idle: the host had waited for the GPU, and could launch only then", "ns"),
    Key("host_ns", NUMBER, "idle: the host did something else, for longer than a launch takes", "ns"),
    Key("queued_ns", NUMBER, "idle: the next work was launched already, and nothing says what it waited for", "ns"),
    Key("idle_unknown_ns", NUMBER, "idle: nothing says who launched the next work", "ns"),
)
"""Where the time of a trace goes: they add up to `wall_ns`."""

_CAUSE = (
    Key(
        "kind",
        choice("launching", "synchronizing", "host", "queued", "unknown"),
        "`launching`: launches came too late one by one; `synchronizing`: the host had waited for the GPU; `host`: it "
        "did something else; `queued`: the next work was launched already, and nothing says what it waited for; "
        "`unknown`: nothing says who launched it",
        value=attrgetter("cause.kind"),
    ),
    Key(
        "operator",
        TEXT_OR_NULL,
        "that the thread which launched was in for most of it",
        value=attrgetter("cause.operator"),
    ),
    Key("call", TEXT_OR_NULL, "of CUDA or of the system, likewise", value=attrgetter("cause.call")),
    Key(
        "nvtx_range",
        TEXT_OR_NULL,
        "the innermost open; of several gaps, the longest",
        value=attrgetter("cause.nvtx_range"),
    ),
    Key("code", TEXT_OR_NULL, "file and line of the program, likewise", value=attrgetter("cause.code")),
    Key("before", TEXT_OR_NULL, "operator or kernel that ended it, likewise", value=attrgetter("cause.before")),
)
"""Keys of why a GPU was idle, as of gaps that are summed up so of a single one."""

IDLE = fixed(
    *_CAUSE,
    Key("count", NUMBER, "gaps"),
    Key("gap_ns", NUMBER, "their time", "ns"),
    Key("longest_ns", NUMBER, "the longest of them", "ns"),
    Key("share", NUMBER, "of `wall_ns`", "share"),
)
"""Gaps of a trace that have the same cause."""

GAP = fixed(
    Key("start_ns", NUMBER, "from the first launch of the program", "ns"),
    Key("gap_ns", NUMBER, "nothing ran", "ns"),
    Key("step", nullable(POSITION), "index of the step in which it began; null where it is in none"),
    Key("into_step_ns", NUMBER, "from the begin of that step; null without one", "ns"),
    *_CAUSE,
)
"""One of the longest gaps of a trace, and what the host did meanwhile."""

COPIES = fixed(
    Key("name", TEXT_OR_NULL, "what was copied where: `Memcpy HtoD (Pageable -> Device)`"),
    Key("count", NUMBER, "copies or memsets"),
    Key("time_ns", NUMBER, "all of them; those that overlap count in full", "ns"),
    Key("moved_bytes", NUMBER, "all of them; null where it is not known of each", "B"),
    Key("bandwidth_bytes_per_s", NUMBER, "moved_bytes / time_ns", "B/s"),
)

FUSION = fixed(
    Key("first", TEXT, "operator that writes the tensor between them"),
    Key("second", TEXT, "operator that reads it"),
    Key("first_kernel", TEXT, "a kernel of the first one"),
    Key("second_kernel", TEXT, "a kernel of the second one"),
    Key("module", TEXT_OR_NULL, "whose forward pass launched most of them"),
    Key("shape", TEXT, "sizes of the tensor between them"),
    Key("dtype", TEXT, "its type"),
    Key("count", NUMBER, "how often the pair occurs"),
    Key("tensor_bytes", NUMBER, "of one tensor", "B"),
    Key("is_kept", TRUTH, "another call may read it, or it outlives both: only its read would be saved"),
    Key("saved_bytes", NUMBER, "of all occurrences: written once and read once less", "B"),
    Key("saved_ns", NUMBER, "the time of these bytes at the bandwidth of DRAM, or of L2 where the tensor fits", "ns"),
    Key("time_ns", NUMBER, "what both take today", "ns"),
    Key("share", NUMBER, "`saved_ns` over `wall_ns`", "share"),
    Key("fits_l2", TRUTH, "the tensor fits in L2"),
)
"""Two operators of a trace that could be one kernel, by sizes and types alone."""

MEMBER = fixed(
    Key("name", TEXT, "the kernel", value=attrgetter("kernel.name")),
    Key("operator", TEXT_OR_NULL, "that launched it", value=attrgetter("kernel.operator")),
    Key("shape", TEXT_OR_NULL, _SHAPE_TEXT, value=attrgetter("kernel.shape")),
    Key("count", NUMBER, "launches in the group", "launches"),
    Key("time_ns", NUMBER, "of these launches", "ns"),
)

GROUP = fixed(
    Key("name", TEXT_OR_NULL, "what its rows have in common; null where that is unknown"),
    Key("count", NUMBER, "launches", "launches"),
    Key("time_ns", NUMBER, "all launches", "ns"),
    Key("share", NUMBER, "as of a kernel; null where all of them wait for other GPUs", "share"),
    Key("floor_ns", NUMBER, "sum of the known floors; null where none is known", "ns"),
    Key("floor_time_ns", NUMBER, "time of the launches with a floor", "ns"),
    Key("gain_ns", NUMBER, "what can be won in those of which that is known; null where it is known of none", "ns"),
    Key("is_communication", TRUTH, "all of them wait for other GPUs"),
    Key("rows", items(MEMBER), "kernels by operator and sizes, most time first"),
)
"""Kernels of a trace that have their operator or their module in common."""

TRACE = fixed(
    Key("source", TEXT, "path as it was given"),
    Key("kind", TEXT, "what recorded it"),
    Key("rank", nullable(POSITION), "which process of several it is of; null where it does not say"),
    Key("gpu", TEXT_OR_NULL, "as the trace has it, else as it was given"),
    Key("launches", NUMBER, "kernels that ran", "launches"),
    Key("time_ns", NUMBER, "all launches", "ns"),
    Key("wall_ns", NUMBER, "first to last kernel, of all GPUs together", "ns", value=attrgetter("unprofiled.wall_ns")),
    Key("gaps_ns", NUMBER, "nothing ran", "ns", value=attrgetter("unprofiled.gap_ns")),
    Key(
        "parts",
        nullable(PARTS),
        "where `wall_ns` goes: they add up to it; null of a printed summary",
        value=lambda one: None if one.unprofiled.wall_ns is None else one.parts,
    ),
    Key(
        "largest",
        Shape({"enum": ["idle", "communication", "copies", "kernels", "graphs", "unknown", None]}, cell="text"),
        "the largest part; kernels count without those at their floor; null where all are",
        value=attrgetter("parts.largest"),
    ),
    Key("idle", items(IDLE), "causes of `gaps_ns`, most time first: they add up to it"),
    Key("longest_gaps", items(GAP), "the longest first, ten at most"),
    Key("copies", items(COPIES), "by direction and kind of memory, most time first"),
    Key(
        "calls_share",
        NUMBER,
        "part of the calls that CUDA numbered meanwhile which the trace holds; null where it does not tell",
        "share",
    ),
    Key("may_be_sample", TRUTH, "`calls_share` is so small that the trace may be a sample, and gaps what it lacks"),
    Key("overlap_ns", NUMBER, "two or more ran at once", "ns", value=attrgetter("unprofiled.overlap_ns")),
    Key("gain_ns", NUMBER, "above the floors that are known; null where none is", "ns"),
    Key("known_share", NUMBER, "part of the time of all kernels that has a floor", "share"),
    Key("open_share", NUMBER, "part of the time of all kernels of which nobody knows what can be won", "share"),
    Key("communication", nullable(COMMUNICATION), "kernels that wait for other GPUs; null where there are none"),
    Key("gaps_after", items(GAPS_AFTER), "longest sum first", value=attrgetter("unprofiled.gaps_after")),
    Key("stretches", items(STRETCH), "launches that each came too late, most idle time first"),
    Key(
        "unknown_operators",
        items(UNKNOWN_OPERATOR),
        "without a floor, those that wait for other GPUs left out, most time first",
        value=attrgetter("unknown"),
    ),
    Key("operators", items(GROUP), "kernels by operator, most time first", value=lambda one: one.grouped("operator")),
    Key(
        "modules",
        items(GROUP),
        "kernels by module, most time first; numbered modules of a kind are one",
        value=lambda one: one.grouped("module"),
    ),
    Key("fusions", items(FUSION), "operators that could be one kernel, most to save first, from 0.1 % of `wall_ns` on"),
    Key(
        "minor_fusions",
        fixed(
            Key("count", NUMBER, "pairs of operators"),
            Key("saved_ns", NUMBER, "of all of them", "ns"),
        ),
        "those that save less",
    ),
    Key("steps", items(STEP), "in order; empty where none were found"),
    Key("kernels", items(PROGRAM_KERNEL), "most to win first, then those of which that is not known, by time"),
    Key("totals", items(TOTAL), "what a printed summary (`nsys stats`, `key_averages`) has beside the kernels"),
    Key("notes", TEXTS, "what was left out, and what lacks for a floor"),
)
"""Everything that is written of a trace without a report."""


@cache
def quantities() -> tuple[KernelQuantity, ...]:
    """List the quantities of flat tables, in the order of JSON."""
    return tuple(_flat(KERNEL.keys, (), None))


def _flat(keys: Iterable[Key], path: tuple[str, ...], of: Callable[[Any], Any] | None) -> Iterable[KernelQuantity]:
    for key in keys:
        place, value = (*path, key.name), key.take if of is None else _then(of, key.take)
        if not key.flat:
            continue
        if key.shape.keys:
            yield from _flat(key.shape.keys, place, value)
        elif key.shape.cell:
            yield KernelQuantity(flat_name(place), place, key, value)


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if first is _itself:
        return second
    return lambda record: None if (value := first(record)) is None else second(value)


TOTALS: tuple[Key, ...] = (
    Key(
        "kernel_launches",
        POSITION,
        "launches of the kernel",
        label="Launches",
        value=attrgetter("launch_count"),
        page="Basic",
    ),
    Key(
        "kernel_time_ns",
        NUMBER,
        "GPU time of all its launches",
        "ns",
        "Time",
        value=attrgetter("duration_ns"),
        page="Basic",
    ),
    Key("time_share", NUMBER, "of the GPU time of all kernels", "share", "Share", page="Basic"),
    Key(
        "winnable_ns",
        NUMBER,
        "GPU time that the best move wins, or else what lies above the floor of the limit",
        "ns",
        "Won",
    ),
    Key(
        "kernel_work",
        NUMBER,
        "operations of all launches, of the main work",
        "FLOP or op",
        "Operations",
        value=attrgetter("work"),
        page="Work",
    ),
    Key(
        "kernel_dram_bytes",
        NUMBER,
        "bytes that all launches moved to and from DRAM",
        "B",
        "DRAM traffic",
        value=attrgetter("dram_bytes"),
        page="Work",
    ),
)
"""What is said of all launches of a kernel together, of a `KernelSummary`."""


@cache
def kernel_quantities() -> dict[str, KernelQuantity]:
    """List the columns of tables of kernels by name: totals, then those of the median launch."""
    totals = (KernelQuantity(key.name, (key.name,), key, key.take) for key in TOTALS)
    medians = (KernelQuantity(one.name, one.path, one.key, _of_median(one.value)) for one in quantities())
    return {one.name: one for one in (*totals, *medians)}


def _of_median(take: Callable[[Analysis], Any]) -> Callable[[Any], Any]:
    return lambda kernel: take(kernel.analysis)
