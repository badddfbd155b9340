"""A comparison as JSON with its schema: every program with its sides in order, and with all its kernels.

What is written stands once in the rows below; `rooflens/report/comparison.schema.json` is `schema_text()`, held by a
test.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, get_args

from msgspec import Struct

from rooflens.model.catalogue import (
    NUMBER,
    POSITION,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    TRUTH,
    Key,
    Shape,
    choice,
    fixed,
    items,
    nullable,
)
from rooflens.model.compare.compare import Change, Outcome
from rooflens.model.compare.findings import FindingChange, FindingChanges, What, changed_findings
from rooflens.model.compare.gate import Gated
from rooflens.model.compare.given import Given
from rooflens.model.compare.ladder import Ladder
from rooflens.model.compare.lines import slower_lines
from rooflens.model.compare.matching import How
from rooflens.model.compare.pairing import Unpaired
from rooflens.model.records import LEVELS, Finding
from rooflens.model.verdict_classes import BOUNDS
from rooflens.report.data import json_text, written_schema
from rooflens.report.ladder_data import LADDER, SIGNED, TIMING, TRUTH_OR_NULL, Judging, gain_of
from rooflens.report.words.change import change_sentence

SCHEMA_VERSION = 2


class PlacedChange(Struct, frozen=True):
    """What became of a kernel, with its ladder."""

    change: Change
    ladder: Ladder


class ComparisonAnswer(Struct, frozen=True):
    """All that one comparison says."""

    ladders: Sequence[Ladder]
    unpaired: Sequence[Unpaired]
    gated: Gated | None
    given: Sequence[Given] = ()


SIDE = fixed(
    Key("label", TEXT, "what the side is called"),
    Key("recordings", POSITION, "how many reports it has", value=lambda side: len(side.recordings)),
    Key("sources", TEXTS, "their paths as given", value=lambda side: [run.source for run in side.runs]),
)

LINE = fixed(
    Key("file", TEXT_OR_NULL, "source file", value=attrgetter("hotspot.file")),
    Key("line", NUMBER, "from 1", value=attrgetter("hotspot.line")),
    Key("before_ns", NUMBER, "null where it was not among the hottest", "ns"),
    Key("after_ns", NUMBER, "what it takes now", "ns"),
    Key("share", NUMBER, "of what the kernel lost", "share"),
    Key("matched_by_text", TRUTH, "both sides know its text", value=attrgetter("by_text")),
)


def _sides(shape: Shape, take: Any) -> Shape:
    return fixed(
        Key("base", shape, value=lambda change: take(change.before)),
        Key("head", shape, value=lambda change: take(change.after)),
    )


def _severity(finding: Finding | None) -> str | None:
    return finding.severity if finding else None


def _finding_gain(finding: Finding | None) -> float | None:
    return finding.gain.factor if finding and finding.gain else None


FINDING = fixed(
    Key("id", TEXT, "`rooflens about findings/ID`", value=attrgetter("finding.id")),
    Key("title", TEXT, "in words", value=attrgetter("finding.title")),
    Key(
        "severity", _sides(TEXT_OR_NULL, _severity), "on both sides; null where a side lacks it", value=lambda one: one
    ),
    Key("gain", _sides(NUMBER, _finding_gain), "of its move", "factor", value=lambda one: one),
    Key(
        "evidence",
        items(
            fixed(
                Key("name", TEXT),
                Key("unit", TEXT),
                Key("base", NUMBER, value=attrgetter("before")),
                Key("head", NUMBER, value=attrgetter("after")),
            )
        ),
        "the numbers behind it on both sides",
        value=attrgetter("numbers"),
    ),
)


def _that(what: What) -> Any:
    def take(changes: FindingChanges) -> list[FindingChange]:
        return [one for one in changes.changes if one.what == what]

    return take


FORECAST = fixed(
    Key("finding", TEXT, "of the slower side, whose move leads to the other", value=attrgetter("finding.id")),
    Key("side", choice("base", "head"), "the slower one", value=lambda one: "head" if one.is_back else "base"),
    Key("predicted", NUMBER, "the gain of that move as that side said it", "factor"),
    Key("reached", NUMBER, "how much faster the other side is", "factor"),
)

FINDINGS = fixed(
    Key("gone", items(FINDING), "not there any more, and its number did not get worse", value=_that("gone")),
    Key("changed", items(FINDING), "on both sides with other numbers, or outweighed now", value=_that("changed")),
    Key("new", items(FINDING), "was not there", value=_that("new")),
    Key("untold", TEXTS, "that one side's report cannot have"),
    Key("limit", NUMBER, "how much faster at most, as the base said", "factor", value=attrgetter("limit.factor")),
    Key("limit_proven", TRUTH, "nothing that keeps the work beats it", value=attrgetter("limit.proven")),
    Key("speedup_reached", NUMBER, "how much faster it became", "factor", value=attrgetter("reached")),
    Key(
        "forecast",
        nullable(FORECAST),
        "what was predicted of the change, and what it brought; null where no finding of the slower side went",
    ),
)


def _by_level(take: str) -> Shape:
    get = attrgetter(take)

    def key(level: str) -> Key:
        return Key(level, NUMBER, value=lambda one: get(one.levels[level]))

    return fixed(*map(key, LEVELS))


KERNEL = fixed(
    Key("name", TEXT, "demangled", value=attrgetter("kernel.name")),
    Key("nvtx_range", TEXT_OR_NULL, "it was launched in", value=attrgetter("kernel.nvtx_range")),
    Key("gpu", TEXT_OR_NULL, "name as the report has it", value=attrgetter("kernel.gpu")),
    Key("flop", NUMBER, "floating-point operations of a launch", "FLOP", value=attrgetter("flop_total")),
    Key("bytes", _by_level("amount_bytes"), "moved at each level", "B", value=lambda one: one),
    Key("intensity", _by_level("intensity_flop_per_byte"), "FLOP per byte", "FLOP/B", value=lambda one: one),
    Key("share", _by_level("share"), "of each level's peak", "share", value=lambda one: one),
    Key("bound", choice(*BOUNDS), "class of its limit", value=attrgetter("verdict.bound")),
    Key("or_bound", TEXTS, "classes that an unmeasured side could turn it into", value=attrgetter("verdict.or_bound")),
    Key("resource", TEXT_OR_NULL, "level or pipe of it", value=attrgetter("verdict.resource")),
    Key("at_roof", TRUTH, "the limit is reached", value=attrgetter("verdict.at_roof")),
    Key("gain", NUMBER, "of its first move", "factor", value=gain_of),
    Key("limit", NUMBER, "how much faster at most", "factor", value=attrgetter("verdict.limit.factor")),
    Key("limit_proven", TRUTH, "nothing that keeps the work beats it", value=attrgetter("verdict.limit.proven")),
)

CHANGE = fixed(
    Key("matched", choice(*get_args(How)), "how its launches were matched", value=attrgetter("change.how")),
    Key(
        "launches",
        fixed(
            Key("base", POSITION, value=lambda counts: counts[0]),
            Key("head", POSITION, value=lambda counts: counts[1]),
        ),
        "on both sides",
        value=attrgetter("change.launches"),
    ),
    Key(
        "same_work",
        TRUTH_OR_NULL,
        "both sides did the same work; null where nothing recorded tells",
        value=lambda placed: placed.change.work and placed.change.work.same,
    ),
    Key("time", TIMING, "of all launches", value=lambda placed: Judging(placed.change.timing, placed.ladder.threshold)),
    Key(
        "mean_launch",
        TIMING,
        "of one",
        value=lambda placed: Judging(placed.change.mean_launch, placed.ladder.threshold),
    ),
    Key("base", nullable(KERNEL), "its median launch; null for a new kernel", value=attrgetter("change.base")),
    Key("head", nullable(KERNEL), "the kernel on that side; null where it is gone", value=attrgetter("change.head")),
    Key(
        "findings",
        nullable(FINDINGS),
        "what became of them; null for a kernel that one side lacks",
        value=lambda placed: changed_findings(placed.change, placed.ladder.threshold),
    ),
    Key(
        "slower_lines", items(LINE), "where it lost time, worst first", value=lambda placed: slower_lines(placed.change)
    ),
    Key("sentence", TEXT, "the change, in words", value=lambda placed: change_sentence(placed.change, placed.ladder)),
)

PROGRAM = fixed(
    Key("program", TEXT, "what it is called, with its sides where it has several"),
    Key("base", SIDE, "before"),
    Key("head", SIDE, "after"),
    Key("threshold", NUMBER, "smaller changes count as none", "share"),
    Key("warnings", TEXTS, "what to keep in mind of how both were recorded"),
    Key("total", TIMING, "GPU time of the whole", value=lambda one: Judging(one.total, one.threshold)),
    Key(
        "shared",
        TIMING,
        "the same without kernels that only one side has, unless new ones do the work of gone ones: what gate and "
        "headline go by",
        value=lambda one: Judging(one.shared, one.threshold),
    ),
    Key(
        "kernels",
        items(CHANGE),
        "largest difference first",
        value=lambda one: [PlacedChange(change, one) for change in one.changes],
    ),
)

JUDGED = fixed(
    Key("program", TEXT, "what it is called"),
    Key("kernel", TEXT_OR_NULL, "null for the program's total"),
    Key("failed", TRUTH, "it fails the gate"),
    Key("outcome", choice(*get_args(Outcome)), "as of a timing"),
    Key("change", SIGNED, "after over before, minus 1", "share", value=attrgetter("timing.change")),
    Key(
        "lost_ns",
        SIGNED,
        "time lost",
        "ns",
        value=lambda one: one.timing.lost_ns if one.timing.change is not None else None,
    ),
    Key("fail_on", NUMBER, "the limit of the gate for it", "share"),
    Key("floor_ns", NUMBER, "time that it must lose to fail", "ns"),
    Key("reason", TEXT_OR_NULL, "why it is not judged or let through", value=lambda one: one.reason or None),
    Key("held_by_floor", TRUTH, "it grew enough to fail, and lost too little", value=attrgetter("is_held_by_floor")),
)

GATE = fixed(
    Key("fail_on", NUMBER, "growth that fails", "share", value=attrgetter("gate.fail_on")),
    Key("floor_ns", NUMBER, "time that must be lost as well", "ns", value=attrgetter("gate.floor_ns")),
    Key("per_kernel", TRUTH, "every kernel is judged, too", value=attrgetter("gate.per_kernel")),
    Key("outcome", choice("failed", "not judged", "holds"), "how it ended", value=attrgetter("word")),
    Key("failed", TRUTH, "anything fails"),
    Key("failures", TEXTS, "in words"),
    Key("let_through", TEXTS, "what grew, and why it does not fail"),
    Key("unjudged", TEXTS, "what cannot be judged, and why"),
    Key("left_out", TEXTS, "kernels that only one side has, with their time: they never fail it"),
    Key("judged", items(JUDGED), "each time that it judged"),
)

GIVEN = fixed(
    Key("option", TEXT, "its name on the command line, without dashes"),
    Key("values", TEXTS, "as they are typed; none for a flag"),
    Key("source", TEXT, "`command line`, or the file or environment variable that it comes from"),
)

UNPAIRED = fixed(Key("where", TEXT, "the side that has them"), Key("programs", TEXTS, "that another side lacks"))

COMPARISON = fixed(
    Key(
        "schema_version",
        Shape({"const": SCHEMA_VERSION}),
        "raised when a key goes or means something else",
        value=lambda _: SCHEMA_VERSION,
    ),
    Key("ladders", items(LADDER), "each program over its sides"),
    Key(
        "programs",
        items(PROGRAM),
        "the first side of each program with each other one",
        value=lambda answer: [pair for one in answer.ladders for pair in one.each],
    ),
    Key("unpaired", items(UNPAIRED), "programs that one side lacks"),
    Key("gate", nullable(GATE), "what it found; null without one", value=attrgetter("gated")),
    Key(
        "options",
        items(GIVEN),
        "what the command was given and by whom, but for how it is written",
        value=attrgetter("given"),
    ),
)
"""Everything that is written of a comparison."""


def to_json(
    ladders: Sequence[Ladder],
    unpaired: Sequence[Unpaired] = (),
    gated: Gated | None = None,
    given: Sequence[Given] = (),
) -> str:
    """Write every program with its sides and kernels: SI base units, null where nothing was measured."""
    return json_text(COMPARISON.json(ComparisonAnswer(ladders, unpaired, gated, given)))


def schema_text() -> str:
    """Write the JSON Schema as it ships."""
    return written_schema("rooflens compare --format json", COMPARISON.schema)
