"""The moves that a reader can choose, with what each brings, and the words at its ghost dot."""

from __future__ import annotations

from rooflens import format as fmt
from rooflens.model.records import Analysis, Gain, Move
from rooflens.model.verdict.pipelined import each_once
from rooflens.report.plane.plane import Point


def choices(analysis: Analysis) -> tuple[Move, ...]:
    """List the moves of a kernel: those of its verdict, then those of other findings whose gain can be modelled.

    Nobody who calls a library can make the latter. What a move says already is no further choice.
    """
    moves = analysis.verdict.moves
    said = {move.finding for move in moves}
    more = (
        Move(finding.move, finding.kind, finding.id, finding.where, finding.gain)
        for finding in analysis.findings
        if finding.gain and finding.id not in said and not analysis.library
    )
    return tuple(each_once((*moves, *more)))


def ghost_at(point: Point, gain: Gain, slope: float | None) -> tuple[float, float]:
    """Return where a move puts a point: FLOP per byte, and FLOP/s.

    Most moves keep the FLOPs that were counted, so the dot rises by the gain. Where that would take it through the roof
    of the level, the move must have saved bytes: then it goes right along the roof, by no more than it takes. A move
    that saves instructions of the pipe that limits saves FLOPs in the part in which it saves time: the dot goes left.

    Args:
        point: The kernel at one level.
        gain: What the move brings.
        slope: Bytes per second of the roof of that level; None if unknown.
    """
    intensity, after = point.intensity, point.per_s * gain.factor
    if gain.changes == "instructions" and point.launch.counts_limiter:
        intensity, after = intensity / gain.factor, point.per_s
    return max(intensity, after / slope) if slope else intensity, after


def ghost_labels(at: int, gain: Gain, *, each: bool) -> tuple[str, str]:
    """Say what a ghost stands for: `after move 1: about 4.73 ms`, of one launch where the kernel has several; short."""
    short = f"after move {at + 1}"
    return f"{short}: {after_words(gain)}{' a launch' if each and gain.time_after_ns else ''}", short


def after_words(gain: Gain) -> str:
    """Say the time after a move: `about 4.73 ms`."""
    how = "at most" if gain.proven else "about"
    return f"{how} {fmt.duration(gain.time_after_ns)}" if gain.time_after_ns else f"{how} {fmt.factor(gain.factor)}"
