"""The ladder of a program's versions in words: rows for texts and pages, its headline, and what to try next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct

from rooflens.format import cut_name, duration, percent, plain_name, significant, span
from rooflens.model.bounds import Bound
from rooflens.model.compare.causes import MOST_NAMED
from rooflens.model.compare.compare import DEFAULT_THRESHOLD
from rooflens.model.compare.gate import Compared
from rooflens.model.compare.ladder import Ladder, Rung, Series
from rooflens.model.compare.sentences import factor_words, other_work_words, spread_words
from rooflens.model.keys import short_names
from rooflens.model.records import Analysis
from rooflens.model.summary import first_move
from rooflens.model.verdict.sentences import gain_words, limit_factor_words, limiter_words

KERNELS_SHOWN = 30
"""Kernels of a program listed over its versions, those that take most time; JSON holds all."""

NAMES_SHOWN = 9
NAME_WIDTH = 48
BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = "_.-=+*#@"


class LadderRow(Struct, frozen=True):
    """One version in words.

    Attributes:
        time: Time of one launch, or of the whole program.
        against_first: How many times as fast as the first one; a dash where there is nothing to compare.
        part: Its time as a part of the longest one.
        changed: How it compares with the version before, and what changed.
    """

    label: str
    time: str
    against_first: str
    bound: Bound
    limiter: str
    changed: str
    part: float
    is_fastest: bool

    @property
    def marked(self) -> str:
        """The label, marked where it is the fastest."""
        return f"{self.label} (fastest)" if self.is_fastest else self.label


def ladder_rows(rungs: Sequence[Rung], threshold: float = DEFAULT_THRESHOLD) -> list[LadderRow]:
    """Say each version of a ladder in words."""
    longest = max((rung.time.median_ns or 0.0 for rung in rungs), default=0.0) or 1.0
    return [
        LadderRow(
            label=rung.label,
            time=spread_words(rung.time),
            against_first=times(rung.to_first.factor if rung.to_first else None),
            bound=rung.analysis.verdict.bound if rung.analysis else "unknown",
            limiter=limiter(rung.analysis) if rung.analysis else "-",
            changed=step_words(rungs, rung, threshold),
            part=(rung.time.median_ns or 0.0) / longest,
            is_fastest=rung.is_fastest,
        )
        for rung in rungs
    ]


def times(value: float | None) -> str:
    """Write a factor in three digits: `1.12x`; a dash where it is unknown."""
    return "-" if value is None else f"{significant(value)}x"


def step_words(rungs: Sequence[Rung], rung: Rung, threshold: float = DEFAULT_THRESHOLD) -> str:
    """Say what changed from the version before: `1.78x faster: 59 % fewer FLOPs`; empty for the first one."""
    why = ", ".join(cause.words for cause in rung.changed[:MOST_NAMED])
    if rung.apart == "GPU":
        gpu = rung.analysis.kernel.gpu if rung.analysis else None
        return ": ".join(filter(None, (f"not compared, ran on {gpu or 'an unknown GPU'}", why)))
    if rung.apart == "work":
        return f"not compared, {_other_work(rungs, rung)}"
    if rung.to_previous is None or rung.previous is None:
        return "" if rung.time.times_ns else "no time"
    skipped = rungs[rung.previous + 1 : rungs.index(rung)]
    beside = f" than {rungs[rung.previous].label}" if skipped else ""
    name = f"{cut_name(plain_name(rung.changed_kernel), NAME_WIDTH)}: " if rung.changed_kernel and why else ""
    words = factor_words(rung.to_previous, threshold)
    if not why and not words.startswith(("unchanged", "no ")):
        why = "no counter says why"
    return f"{words}{beside}" + (f": {name}{why}" if why else "")


def _other_work(rungs: Sequence[Rung], rung: Rung) -> str:
    """Say which other work a version did, and what it takes for a unit of it beside the others."""
    why = rung.work.why if rung.work else ""
    usual = next((one.per_work for one in rungs if one.per_work and not one.apart), None)
    return other_work_words(why, usual, rung.per_work)


def headline(ladder: Ladder) -> str:
    """Say which version is the fastest, and how much faster than the first: the whole ladder in a line."""
    fastest, count = ladder.fastest, f"{len(ladder.rungs)} versions"
    if fastest is None:
        return count
    if fastest.to_first is None:
        return f"{count}, the first is the fastest"
    first = next(rung for rung in ladder.rungs if not rung.apart and rung.time.times_ns)
    words = factor_words(fastest.to_first, ladder.threshold)
    runs = f" ({fastest.to_first.runs})" if fastest.to_first.runs else ""
    return (
        f"{count}, fastest {fastest.label}: {words} {'than' if 'x faster' in words else 'against'} {first.label}{runs}"
    )


def subject(ladder: Ladder) -> str:
    """Say what the times are of: the kernel, and where it changes its name, which one in which versions."""
    if ladder.followed is None:
        return "times of all kernels" + (", at one number of launches" if any(s.is_mean for s in ladder.series) else "")
    launches = max(point.launches for point in ladder.followed.points)
    kind = "mean launch of " if ladder.followed.is_mean else "median launch of " if launches > 1 else ""
    names = [point.analysis.kernel.name for point in ladder.followed.points]
    short = short_names(names)
    if len(short) == 1:
        return f"times: {kind}{cut_name(plain_name(names[0]), NAME_WIDTH)}"
    runs = [list(run) for _, run in groupby(ladder.followed.points, key=lambda point: point.analysis.kernel.name)]
    said = [
        f"{short[run[0].analysis.kernel.name]} ({span(ladder.labels[run[0].at], ladder.labels[run[-1].at])})"
        for run in runs
    ]
    more = f" and {len(said) - NAMES_SHOWN} more" if len(said) > NAMES_SHOWN else ""
    return f"times: {kind}{', '.join(said[:NAMES_SHOWN])}{more}"


def try_next(ladder: Ladder) -> str:
    """Say what to try next: the first move of the fastest version, with its gain and limit; empty without one."""
    fastest = ladder.fastest
    if fastest is None or fastest.analysis is None:
        return ""
    verdict = fastest.analysis.verdict
    gain = gain_words(verdict.gain, fastest.analysis.kernel.duration_ns)
    limit = limit_factor_words(verdict.limit).partition(" (")[0]
    said = (f"next, from {fastest.label}: {first_move(fastest.analysis)}", gain, limit)
    return "; ".join(filter(None, said))


def ladder_warnings(ladder: Ladder, compared: Iterable[Compared]) -> list[str]:
    """List what to keep in mind of the sides, each warning once, with the sides it is about where these are not all."""
    about: defaultdict[str, list[str]] = defaultdict(list)
    own = [one for one in compared if one.comparison.base.digests == ladder.rungs[0].side.digests]
    for one in own:
        for warning in one.warnings:
            about[warning].append(one.comparison.head.label)
    return [
        warning if len(labels) == len(own) else f"{', '.join(labels)}: {warning}" for warning, labels in about.items()
    ]


def series_cells(series: Series, blocks: str = BLOCKS) -> tuple[str, ...]:
    """Say a kernel over its versions: how many, first and last time, factor, the times drawn, and its limiters."""
    first, last = series.points[0], series.points[-1]
    return (
        str(len(series.points)),
        duration(first.time_ns) if first.time_ns is not None else "-",
        (duration(last.time_ns) if last.time_ns is not None else "-") + (" a launch" if series.is_mean else ""),
        times(series.factor),
        sparkline([point.time_ns for point in series.points], blocks),
        verdicts([point.analysis for point in series.points]),
    )


def sparkline(values: Sequence[float | None], blocks: str = BLOCKS) -> str:
    """Draw values as block characters from nothing to the largest; a space where one is missing."""
    most = max((value for value in values if value is not None), default=0.0)
    top = len(blocks) - 1
    return "".join(" " if value is None or not most else blocks[round(value / most * top)] for value in values)


def limiter(analysis: Analysis) -> str:
    """Say the class of a verdict, where its limiter is and how near it is: `memory at HBM2 81 %`."""
    verdict = analysis.verdict
    share = f" {percent(verdict.bottleneck.share)}" if verdict.bottleneck and verdict.resource else ""
    return f"{limiter_words(verdict.bound, verdict.resource, analysis.kernel.gpu)}{share}"


def verdicts(analyses: Sequence[Analysis]) -> str:
    """Say the last verdict, and the first one where it was another."""
    first, last = analyses[0].verdict, analyses[-1].verdict
    if (first.bound, first.resource) == (last.bound, last.resource):
        return limiter(analyses[-1])
    return f"{limiter(analyses[0])} -> {limiter(analyses[-1])}"
