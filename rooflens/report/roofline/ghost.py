"""Ghost dots: where each move of a kernel would put its dot, as far as its gain can be modelled.

The FLOPs stay those that were counted, so the dot rises by the gain. Where that would take it through the roof of the
level, the move must have saved bytes: then it goes right along the roof, by no more than it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import altair as alt
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import Analysis, Gain, MoveKind
from rooflens.model.summary import Launch, place_of
from rooflens.model.verdict.library import library_of
from rooflens.report.plane.marks import AT, QUIET
from rooflens.report.plane.plane import Plane
from rooflens.report.roofline.rows import rounded


class Choice(Struct, frozen=True):
    """One move that a reader can choose, with what it brings.

    Attributes:
        where: File and line of what it is about; empty where not known.
    """

    text: str
    kind: MoveKind
    gain: Gain | None
    where: str
    finding: str | None = None


def choices(analysis: Analysis) -> tuple[Choice, ...]:
    """List the moves of a kernel: those of its verdict, then those of other findings whose gain can be modelled.

    Nobody who calls a library can make the latter.
    """
    moves = [
        Choice(move.text, move.kind, move.gain, place_of(move.where), move.finding) for move in analysis.verdict.moves
    ]
    said = {move.finding for move in moves}
    more = (
        Choice(finding.move, finding.kind, finding.gain, place_of(finding.where), finding.id)
        for finding in analysis.findings
        if finding.gain and finding.id not in said and not library_of(analysis.kernel)
    )
    return (*moves, *more)


def ghost_rows(plane: Plane, launches: Iterable[str]) -> list[dict[str, Any]]:
    """Make one row per move with a gain and level of these launches: `m` is the move's place among the choices."""
    wanted = set(launches)
    slopes = {key: roof.peak for roof in plane.level_roofs for key in roof.keys}
    return [
        {
            "k": point.launch.key,
            "g": point.launch.group_key,
            "level": point.level,
            **({"near": 1} if point.nearest else {}),
            "m": at,
            "x": rounded(max(point.intensity_flop_per_byte, after / slope) if slope else point.intensity_flop_per_byte),
            "y": rounded(after),
            "x0": rounded(point.intensity_flop_per_byte),
            "y0": rounded(point.flop_per_s),
            "after": _after_words(gain),
        }
        for point in plane.points
        if point.launch.key in wanted
        for at, gain in _gains(point.launch)
        for after, slope in ((point.flop_per_s * gain.factor, slopes.get(point.level)),)
    ]


def _gains(launch: Launch) -> Iterator[tuple[int, Gain]]:
    return ((at, choice.gain) for at, choice in enumerate(choices(launch.analysis)) if choice.gain)


def _after_words(gain: Gain) -> str:
    """Say the time after a move: `about 4.73 ms`."""
    how = "at most" if gain.proven else "about"
    return f"{how} {fmt.duration(gain.time_after_ns)}" if gain.time_after_ns else f"{how} {fmt.factor(gain.factor)}"


def ghost_layers(shown: str, size: alt.ExprRef) -> Iterator[alt.Chart]:
    """Draw an arrow to the ghost of the chosen move, and the ghost as an empty dashed ring.

    Args:
        shown: The expression that holds for rows of the picked launch at the level shown.
        size: Area of the launch's dot.
    """
    rows = alt.Chart().transform_filter(f"{shown} && datum.m === move")
    yield rows.mark_rule(style="ghost", **QUIET).encode(x=alt.X("x0:Q"), y=alt.Y("y0:Q"), x2="x", y2="y")
    yield rows.mark_point(style="ghost", size=size, shape="circle", filled=False, clip=True, aria=False).encode(
        **AT, tooltip=alt.Tooltip("after:N", title="after the move")
    )
