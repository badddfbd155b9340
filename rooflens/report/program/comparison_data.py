"""The comparison of two timelines as JSON with its schema.

What is written stands once in the rows below; `rooflens/report/program/comparison.schema.json` is `schema_text()`, held
by a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import get_args

from msgspec import Struct

from rooflens.model.catalogue import (
    NUMBER,
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
from rooflens.model.compare.compare import Outcome
from rooflens.model.compare.gate import Gated
from rooflens.model.compare.given import Given
from rooflens.model.program.comparison import HOWS, WHATS, ProgramComparison, RowChange
from rooflens.report.comparison.data import GATE, GIVEN
from rooflens.report.data import json_text, written_schema
from rooflens.report.ladder_data import SIGNED

SCHEMA_VERSION = 1

_RANK = Shape({"type": ["integer", "null"]}, cell="count")


class TraceComparisonAnswer(Struct, frozen=True):
    """All that one comparison says."""

    comparison: ProgramComparison
    gated: Gated | None
    given: Sequence[Given] = ()


class _JudgedChange(Struct, frozen=True):
    """A row with the threshold that it is judged by."""

    change: RowChange
    threshold: float

    @property
    def outcome(self) -> Outcome:
        return self.change.timing.outcome(self.threshold)


AMOUNT = fixed(
    Key("time_ns", SIGNED, "all launches; below 0 only for what overlaps, which is taken off", "ns"),
    Key("launches", NUMBER, "a mean where steps differ", "launches"),
    Key("share", SIGNED, "of the time of the step or program", "share"),
    Key("floor_ns", NUMBER, "no less for all launches; null where it is not known of all", "ns"),
    Key("floor_cold_ns", NUMBER, "the same where L2 holds nothing before", "ns"),
)

RIDGE = fixed(
    Key("side", choice("memory", "compute"), "below the ridge, or from it on"),
    Key("intensity", NUMBER, "by the sizes of the operator's tensors", "FLOP/B"),
    Key("ridge", NUMBER, "the GPU's peak over the bandwidth of its memory", "FLOP/B"),
    Key("peak", TEXT, "the peak"),
)

KERNEL = fixed(
    Key("matched", choice(*HOWS), "how its launches were matched", value=attrgetter("how")),
    Key("name", TEXT, "after; before where it is gone"),
    Key("was", TEXT_OR_NULL, "name before, where that was another one"),
    Key("operator", TEXT_OR_NULL, "that launched it"),
    Key("module", TEXT_OR_NULL, "whose forward pass launched most of it, else the range"),
    Key("shape", TEXT_OR_NULL, "sizes of its operator's tensors"),
    Key("was_shape", TEXT_OR_NULL, "sizes before, where those were others"),
    Key("dtype", TEXT_OR_NULL, "types of these tensors"),
    Key("base", nullable(AMOUNT), "before; null for a new one"),
    Key("head", nullable(AMOUNT), "after; null for one that is gone"),
    Key("lost_ns", SIGNED, "after minus before", "ns"),
    Key("expected", NUMBER, "how much faster a launch should be by its floors", "factor"),
    Key("observed", NUMBER, "how much faster a launch is", "factor"),
    Key("ridge_base", nullable(RIDGE), "before; null where work or GPU is not known", value=lambda one: one.ridges[0]),
    Key("ridge_head", nullable(RIDGE), "after", value=lambda one: one.ridges[1]),
    Key("changed_side", TRUTH, "of the ridge"),
)

CHANGE = fixed(
    Key(
        "what",
        choice(*WHATS),
        "kernels of an operator, or of a function where a side names no operators; communication, copies and graphs "
        "that nothing hides; graphs of which nothing was recorded; time in which nothing ran; kernels of no step, or "
        "not chosen; what overlaps, taken off",
        value=attrgetter("change.what"),
    ),
    Key("name", TEXT, "the operator or function", value=attrgetter("change.name")),
    Key("base", nullable(AMOUNT), "before; null where it is new", value=attrgetter("change.base")),
    Key("head", nullable(AMOUNT), "after; null where it is gone", value=attrgetter("change.head")),
    Key(
        "lost_ns",
        SIGNED,
        "after minus before; all rows add up to that of the total",
        "ns",
        value=attrgetter("change.lost_ns"),
    ),
    Key("factor", NUMBER, "before over after; null where a side lacks it", "factor", value=attrgetter("change.factor")),
    Key("outcome", choice(*get_args(Outcome)), "beyond noise or not"),
    Key("kernels", items(KERNEL), "largest difference first", value=attrgetter("change.kernels")),
)

SIDE = fixed(
    Key("label", TEXT, "what the side is called"),
    Key("sources", TEXTS, "its timelines as given", value=lambda side: [one.source for one in side.programs]),
    Key("gpus", TEXTS, "their GPUs"),
    Key("steps", NUMBER, "of all of its timelines; null where whole programs are compared", "steps"),
    Key(
        "steps_by",
        TEXTS,
        "how they were found: ProfilerStep, ranges or repetition",
        value=lambda side: sorted({one.steps_by for one in side.programs if one.steps_by}),
    ),
    Key("wall_ns", NUMBER, "of a step, or of the program: a mean over ranks", "ns"),
    Key("launches", NUMBER, "of a step, or of the program", "launches"),
)

RANK = fixed(
    Key("rank", _RANK, "its number"),
    Key("base_ns", NUMBER, "its step, or the program, before", "ns"),
    Key("head_ns", NUMBER, "after", "ns"),
)

COMPARISON = fixed(
    Key(
        "schema_version",
        Shape({"const": SCHEMA_VERSION}),
        "raised when a key goes or means something else",
        value=lambda _: SCHEMA_VERSION,
    ),
    Key("unit", choice("step", "program"), "what all times are of", value=lambda one: _unit(one.comparison)),
    Key("base", SIDE, "before", value=attrgetter("comparison.base")),
    Key("head", SIDE, "after", value=attrgetter("comparison.head")),
    Key("lost_ns", SIGNED, "after minus before", "ns", value=attrgetter("comparison.lost_ns")),
    Key("factor", NUMBER, "before over after", "factor", value=attrgetter("comparison.factor")),
    Key("outcome", choice(*get_args(Outcome)), "beyond noise or not", value=attrgetter("comparison.outcome")),
    Key("threshold", NUMBER, "smaller changes count as none", "share", value=attrgetter("comparison.threshold")),
    Key(
        "common",
        fixed(
            Key("base", NUMBER, "before", "share", value=lambda common: common[0]),
            Key("head", NUMBER, "after", "share", value=lambda common: common[1]),
        ),
        "part of the kernels' time in operators, or functions, that the other side has",
        value=attrgetter("comparison.common"),
    ),
    Key(
        "changes",
        items(CHANGE),
        "largest difference first",
        value=lambda one: [_JudgedChange(change, one.comparison.threshold) for change in one.comparison.changes],
    ),
    Key("ranks", items(RANK), "of both sides; empty for one timeline each", value=attrgetter("comparison.ranks")),
    Key("warnings", TEXTS, "what to keep in mind", value=attrgetter("comparison.warnings")),
    Key("gate", nullable(GATE), "what it found; null without one", value=attrgetter("gated")),
    Key("options", items(GIVEN), "what the command was given, and by whom", value=attrgetter("given")),
)
"""Everything that is written of a comparison of timelines."""


def _unit(comparison: ProgramComparison) -> str:
    return "step" if comparison.is_per_step else "program"


def to_json(comparison: ProgramComparison, gated: Gated | None = None, given: Sequence[Given] = ()) -> str:
    """Write both sides with all rows and their kernels: SI base units, null for what is not known."""
    return json_text(COMPARISON.json(TraceComparisonAnswer(comparison, gated, given)))


def schema_text() -> str:
    """Write the JSON Schema as it ships."""
    return written_schema("rooflens compare TRACE TRACE --format json", COMPARISON.schema)
