"""A program over its sides as JSON: the rows of a ladder, for comparisons and for reports that hold versions."""

from __future__ import annotations

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
    number,
)
from rooflens.model.compare.compare import Outcome, Timing
from rooflens.model.compare.ladder import Ladder, Rung
from rooflens.model.records import Analysis
from rooflens.model.verdict_classes import BOUNDS
from rooflens.report.words.ladder import step_words, why_words
from rooflens.report.words.verdict import best_move

TRUTH_OR_NULL = Shape({"type": ["boolean", "null"]})
SIGNED = Shape({"type": ["number", "null"]}, number)
BOUND_OR_NULL = Shape({"enum": [*BOUNDS, None]})


class PlacedRung(Struct, frozen=True):
    """One rung with the ladder that it stands in."""

    ladder: Ladder
    rung: Rung


class Judging(Struct, frozen=True):
    """A timing with the threshold that it is judged by."""

    timing: Timing
    threshold: float


def _value_at(step: PlacedRung, path: str) -> Any:
    """Take a value from the analysis of a rung; None if a record on the way is missing."""
    value: Any = step.rung.analysis
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _kernel_of(step: PlacedRung) -> str | None:
    return step.rung.analysis.kernel.name if step.rung.analysis and step.ladder.followed else None


def _of_step(step: PlacedRung) -> str | None:
    return step.rung.changed_kernel or (step.ladder.followed.name if step.ladder.followed else None)


def _factor(rung: Rung) -> float | None:
    """Return how many times as fast as the first version a rung is: 1 of the first itself."""
    if rung.to_first is None:
        return 1.0 if rung.previous is None and not rung.apart and rung.time.times_ns else None
    return rung.to_first.factor


def gain_of(analysis: Analysis) -> float | None:
    """Return the gain of a kernel's first move; None if it cannot be modelled."""
    return analysis.verdict.gain.factor if analysis.verdict.gain else None


SPREAD = fixed(
    Key("median", NUMBER, "over the recordings", "ns", value=attrgetter("median_ns")),
    Key("low", NUMBER, "shortest recording", "ns", value=attrgetter("low_ns")),
    Key("high", NUMBER, "longest recording", "ns", value=attrgetter("high_ns")),
    Key("samples", POSITION, "recordings with a time", value=lambda spread: len(spread.times_ns)),
)

TIMING = fixed(
    Key("base_ns", SPREAD, "time before", "ns", value=attrgetter("timing.base")),
    Key("head_ns", SPREAD, "time after", "ns", value=attrgetter("timing.head")),
    Key("factor", NUMBER, "before over after: above 1 is faster", "factor", value=attrgetter("timing.factor")),
    Key("change", SIGNED, "after over before, minus 1", "share", value=attrgetter("timing.change")),
    Key(
        "outcome",
        choice(*get_args(Outcome)),
        "same: within noise; single: one run on a side; unknown: no time, or not compared",
        value=lambda judged: judged.timing.outcome(judged.threshold),
    ),
    Key("not_compared", TEXT_OR_NULL, "why the times are not compared", value=lambda one: one.timing.apart or None),
    Key("threshold", NUMBER, "a change of less is none", "share", value=lambda one: one.timing.limit(one.threshold)),
)

CAUSE = fixed(
    Key("topic", TEXT, "what it is about, in a word"),
    Key("words", TEXT, "what changed, with its numbers"),
)

STEP = fixed(
    Key("from", TEXT, "the version before it", value=lambda step: step.ladder.rungs[step.rung.previous or 0].label),
    Key(
        "time",
        nullable(TIMING),
        "its time against that",
        value=lambda step: step.rung.to_previous and Judging(step.rung.to_previous, step.ladder.threshold),
    ),
    Key("kernel", TEXT_OR_NULL, "the kernel that it is said of", value=_of_step),
    Key("changed", items(CAUSE), "what changed, the most telling first", value=attrgetter("rung.changed")),
    Key(
        "sentence",
        TEXT,
        "the same in words",
        value=lambda step: step_words(step.ladder.rungs, step.rung, step.ladder.threshold),
    ),
)

RUNG = fixed(
    Key("label", TEXT, "what the version is called", value=attrgetter("rung.label")),
    Key("source", TEXT, "path of its first report as given", value=lambda step: step.rung.side.runs[0].source),
    Key("sources", TEXTS, "of all its reports", value=lambda step: [run.source for run in step.rung.side.runs]),
    Key("recordings", POSITION, "how many it has", value=lambda step: len(step.rung.side.recordings)),
    Key(
        "created_unix_s",
        NUMBER,
        "when the first was recorded",
        value=lambda step: step.rung.side.runs[0].created_unix_s,
    ),
    Key(
        "same_work",
        TRUTH_OR_NULL,
        "it did the work that most versions did; null where nothing recorded tells",
        value=lambda step: step.rung.work and step.rung.work.same,
    ),
    Key("why", TEXT, "what tells that, or why it is not compared", value=lambda step: why_words(step.rung)),
    Key(
        "factor",
        NUMBER,
        "times as fast as the first version; null unless it did the same work on the same GPU",
        "factor",
        value=lambda step: _factor(step.rung),
    ),
    Key(
        "time_per_work",
        NUMBER,
        "time of a launch for a unit of its work",
        "ns",
        value=lambda step: step.rung.per_work and step.rung.per_work.time_ns,
    ),
    Key("work_unit", TEXT_OR_NULL, "that unit", value=lambda step: step.rung.per_work and step.rung.per_work.unit),
    Key(
        "kernel",
        TEXT_OR_NULL,
        "the kernel that the time is of; null of a whole program",
        value=_kernel_of,
    ),
    Key("gpu", TEXT_OR_NULL, "name as the report has it", value=lambda step: _value_at(step, "kernel.gpu")),
    Key("launches", POSITION, "launches of that kernel", value=attrgetter("rung.launches")),
    Key("time_ns", SPREAD, "of one launch, or of the whole program", "ns", value=attrgetter("rung.time")),
    Key("gpu_time_ns", SPREAD, "of all launches", "ns", value=attrgetter("rung.gpu_time")),
    Key("fastest", TRUTH, "the version to go on from", value=attrgetter("rung.is_fastest")),
    Key("not_compared", Shape({"enum": ["GPU", "work", None]}), "why", value=lambda step: step.rung.apart or None),
    Key("bound", BOUND_OR_NULL, "class of its limit", value=lambda step: _value_at(step, "verdict.bound")),
    Key(
        "or_bound",
        TEXTS,
        "classes that an unmeasured side could turn it into",
        value=lambda step: _value_at(step, "verdict.or_bound") or (),
    ),
    Key("resource", TEXT_OR_NULL, "level or pipe of it", value=lambda step: _value_at(step, "verdict.resource")),
    Key(
        "share",
        NUMBER,
        "of the peak of its busiest unit",
        "share",
        value=lambda step: _value_at(step, "verdict.bottleneck.share"),
    ),
    Key(
        "limit", NUMBER, "how much faster at most", "factor", value=lambda step: _value_at(step, "verdict.limit.factor")
    ),
    Key(
        "limit_proven",
        TRUTH_OR_NULL,
        "nothing that keeps the work beats it",
        value=lambda step: _value_at(step, "verdict.limit.proven"),
    ),
    Key(
        "move",
        TEXT_OR_NULL,
        "what to do first, of the fastest",
        value=lambda step: best_move(step.rung.analysis) if step.rung.analysis and step.rung.is_fastest else None,
    ),
    Key(
        "step",
        nullable(STEP),
        "the change since the version before; null for the first",
        value=lambda step: step if step.rung.previous is not None else None,
    ),
)

CELL = fixed(
    Key("name", TEXT, "of the kernel on that side", value=attrgetter("analysis.kernel.name")),
    Key("launches", POSITION, "launches of it"),
    Key("time_ns", SPREAD, "GPU time of all of them", "ns", value=attrgetter("gpu_time")),
    Key("mean_launch_ns", NUMBER, "of one", "ns", value=lambda rung: rung.gpu_time.per(rung.launches).median_ns),
    Key("bound", choice(*BOUNDS), "class of its limit", value=attrgetter("analysis.verdict.bound")),
    Key(
        "or_bound",
        TEXTS,
        "classes that an unmeasured side could turn it into",
        value=attrgetter("analysis.verdict.or_bound"),
    ),
    Key("resource", TEXT_OR_NULL, "level or pipe of it", value=attrgetter("analysis.verdict.resource")),
    Key("gain", NUMBER, "of its first move", "factor", value=lambda rung: gain_of(rung.analysis)),
    Key("limit", NUMBER, "how much faster at most", "factor", value=attrgetter("analysis.verdict.limit.factor")),
    Key(
        "limit_proven", TRUTH, "nothing that keeps the work beats it", value=attrgetter("analysis.verdict.limit.proven")
    ),
)

OVER_SIDES = fixed(
    Key("name", TEXT, "on the last side that has it"),
    Key("factor", NUMBER, "first side over last: above 1 it became faster", "factor"),
    Key(
        "sides",
        items(nullable(CELL)),
        "one for each side; null where it lacks the kernel",
        value=lambda kernel: [rung if rung.analysis else None for rung in kernel.rungs],
    ),
)

BESIDE = fixed(
    Key("name", TEXT, "of the library", value=attrgetter("library")),
    Key("kernel", TEXT, "its kernel", value=attrgetter("analysis.kernel.name")),
    Key("time_ns", SPREAD, "of one launch", "ns", value=attrgetter("time")),
    Key("factor", NUMBER, "times as fast as the first version", "factor", value=_factor),
)

LADDER = fixed(
    Key("program", TEXT, "what it is called"),
    Key(
        "kernel",
        TEXT_OR_NULL,
        "the kernel that it follows",
        value=lambda one: one.followed.name if one.followed else None,
    ),
    Key("rungs", items(RUNG), "one for each side", value=lambda one: [PlacedRung(one, rung) for rung in one.rungs]),
    Key(
        "library",
        nullable(BESIDE),
        "a library's kernel of the same work in a report of a side, beside which they stand; null without one",
    ),
    Key("kernels", items(OVER_SIDES), "over all sides, longest first"),
)
