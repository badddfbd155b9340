"""The ladder of a program's versions in words: rows for texts and pages, its headline, and what to try next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import log

from msgspec import Struct

from rooflens.format import count, cut_name, duration, percent, plain_name, span
from rooflens.model.compare.causes import reasons
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Timing
from rooflens.model.compare.ladder import Ladder, Rung, tied
from rooflens.model.keys import short_names
from rooflens.model.records import Analysis, ratio
from rooflens.model.roofline.unit_names import limiter_words
from rooflens.model.summary import asks_first
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.document import Bar, Bars, Column, Span, Table, Words, code
from rooflens.report.words.change import (
    NO_CAUSE,
    assumed_words,
    factor_words,
    not_compared,
    other_work_words,
    speed_words,
)
from rooflens.report.words.gain_and_limit import A_LAUNCH, gain_words, limit_in_short, share_words
from rooflens.report.words.headline import Plain, fitting, name_of, some_names
from rooflens.report.words.verdict import best_move

KERNELS_SHOWN = 30
"""Kernels of a program listed over its versions, those that take most time; JSON holds all."""

NAMES_SHOWN = 9
LABEL_WIDTH = 80

LOG_FROM = 10.0
LOG_AIR = 2.0
"""From this range of times on bars are by decades, and begin at the shortest time over `LOG_AIR`."""

NO_BAR = "not compared"

AGAINST = "against first"
"""Head of the column that says how much faster or slower each version is than the first."""

AS_FAST_WORDS = "as fast"

NAME_WIDTH = 48
BLOCKS = "▁▂▃▄▅▆▇█"


class LadderRow(Struct, frozen=True):
    """One version in words.

    Attributes:
        time: Time of a launch, or of the whole program.
        against_first: How much faster or slower than the first; a dash if it is not compared.
        part: Length of its bar relative to the longest compared one; 0 if it is not compared.
        changed: How it compares with the version before, and what changed.
    """

    label: str
    time: str
    against_first: str
    bound: ShownClass
    limiter: str
    changed: str
    part: float
    is_fastest: bool

    @property
    def marked(self) -> str:
        """The label, marked if it is the fastest."""
        return f"{self.label} (fastest)" if self.is_fastest else self.label


def ladder_rows(rungs: Sequence[Rung], threshold: float = DEFAULT_THRESHOLD) -> list[LadderRow]:
    """Describe each version of a ladder."""
    scale, leading = scale_of(rungs), tied(rungs, threshold)
    several = sum(bool(rung.time.times_ns) and not rung.apart and not rung.library for rung in rungs) > 1
    return [
        LadderRow(
            label=rung.label,
            time=rung.time.words,
            against_first=_against_first(rung, threshold),
            bound=rung.analysis.verdict.shown_class if rung.analysis else "unknown",
            limiter=limiter(rung.analysis) if rung.analysis else "-",
            changed=step_words(rungs, rung, threshold),
            part=scale.part(rung.time.median_ns) if rung.time.median_ns and not rung.apart else 0.0,
            is_fastest=rung.is_fastest and several and len(leading) == 1,
        )
        for rung in rungs
    ]


class Scale(Struct, frozen=True):
    """The scale for bars of times: from zero, or logarithmic if the times differ by more than ten times.

    Attributes:
        low_ns: The beginning of logarithmic bars.
    """

    low_ns: float
    high_ns: float
    is_log: bool

    def part(self, time_ns: float) -> float:
        """Return the length of a bar, 0 to 1."""
        if self.is_log:
            return log(time_ns / self.low_ns) / log(self.high_ns / self.low_ns)
        return time_ns / self.high_ns


def scale_of(rungs: Sequence[Rung]) -> Scale:
    """Choose the scale of all that is compared, since a time of other work might shrink all other bars to dots."""
    known = [rung.time.median_ns for rung in rungs if rung.time.median_ns and not rung.apart] or [1.0]
    return Scale(min(known) / LOG_AIR, max(known), is_log=max(known) > LOG_FROM * min(known))


def ladder_bars(ladder: Ladder, links: Sequence[str] = ()) -> Bars:
    """Compare the versions of a ladder as bars.

    Args:
        ladder: The versions.
        links: The target in the page for each; empty for none.
    """
    rows, scale = ladder_rows(ladder.shown, ladder.threshold), scale_of(ladder.shown)
    reference, keys = ladder.reference, [*links, ""] if links else [""] * len(rows)
    return Bars(
        ("version", "time (log scale)" if scale.is_log else "time", AGAINST),
        tuple(
            Bar(
                cut_name(row.label, LABEL_WIDTH),
                "" if rung.library else str(place),
                row.time,
                row.against_first,
                row.part,
                row.bound,
                ((*((row.changed, " ") if row.changed else ()), Span(row.limiter, row.bound)),),
                row.is_fastest,
                link,
                NO_BAR if rung.apart else "",
            )
            for place, (rung, row, link) in enumerate(zip(ladder.shown, rows, keys, strict=False), 1)
        ),
        ladder_table(ladder),
        "fastest",
        scale.part(reference.time.median_ns) if reference and reference.time.median_ns else 0.0,
        f"Mark across the bars: the time of {reference.library}." if reference else "",
    )


def ladder_table(ladder: Ladder) -> Table:
    """Tabulate the versions of a ladder, one below the other."""
    columns = (
        Column("version", fit="name", most=NAME_WIDTH),
        Column("time", right=True, worth=8),
        Column(AGAINST, right=True, worth=7),
        Column("limited by", fit="wrap", worth=4),
        Column("what changed", fit="prose", least=36),
    )
    rows = ladder_rows(ladder.shown, ladder.threshold)
    return Table(
        columns,
        tuple((row.marked, row.time, row.against_first, Span(row.limiter, row.bound), row.changed) for row in rows),
    )


def _against_first(rung: Rung, threshold: float) -> str:
    """Say how much faster or slower a version is than the first: `1.28x slower`; a dash for the first itself."""
    timing = rung.to_first
    if timing is None or timing.factor is None:
        return "-"
    return AS_FAST_WORDS if timing.is_unchanged(threshold) else speed_words(timing.factor)


def step_words(rungs: Sequence[Rung], rung: Rung, threshold: float = DEFAULT_THRESHOLD) -> str:
    """Say what changed from the version before: `1.78x faster: 59 % fewer FLOPs`; empty for the first."""
    factor = rung.to_previous.factor if rung.to_previous else None
    why = reasons(rung.changed, is_faster=(factor or 1.0) >= 1)
    if rung.library and not rung.apart:
        return f"{rung.library}, beside which the others stand"
    if rung.apart == "GPU":
        return ": ".join(filter(None, (not_compared(why_words(rung)), why)))
    if rung.apart == "work":
        return not_compared(_other_work(rungs, rung))
    if rung.to_previous is None or rung.previous is None:
        return "" if rung.time.times_ns else "no time"
    skipped = rungs[rung.previous + 1 : rungs.index(rung)]
    beside = f" than {rungs[rung.previous].label}" if skipped else ""
    name = f"{cut_name(plain_name(rung.changed_kernel), NAME_WIDTH)}: " if rung.changed_kernel and why else ""
    words = factor_words(rung.to_previous, threshold)
    if words.startswith(("unchanged", "no ")):
        return f"{words}{beside}"
    return f"{words}{beside}: {name}{why or NO_CAUSE}"


def why_words(rung: Rung) -> str:
    """Say why a version did the same work, or why it is not compared."""
    if rung.apart == "GPU":
        return f"ran on {(rung.analysis and rung.analysis.kernel.gpu) or 'an unknown GPU'}"
    return rung.work.why if rung.work else "no kernel was timed"


def _other_work(rungs: Sequence[Rung], rung: Rung) -> str:
    """Say which other work a version did, its time per unit of work, and the version it is compared with."""
    usual = next((one for one in rungs if one.analysis and not one.apart), None)
    said = other_work_words(why_words(rung), usual.per_work if usual else None, rung.per_work)
    return f"{said} ({usual.label})" if usual else said


def headline(ladder: Ladder) -> str:
    """Name the fastest version and how much faster it is than the first, or say that they are as fast: in a line."""
    return fitting(Plain(tuple(_heads(ladder))))


def program_headline(ladder: Ladder) -> str:
    """Say the same with the name of the program before it."""
    name = name_of(ladder.program)
    return f"{name}: {fitting(Plain(tuple(_heads(ladder))), name)}"


def _heads(ladder: Ladder) -> Iterator[str]:
    """Yield what can be said of a whole ladder in a line, in falling length."""
    fastest, own = ladder.fastest, ladder.versions
    amount = count(len(own), "version")
    if fastest is None:
        yield count(sum(not rung.library for rung in ladder.rungs), "version")
        return
    time, leading = duration(fastest.time.median_ns), ladder.tied
    timed = [rung for rung in own if rung.time.times_ns]
    if len(timed) < 2:
        best = ladder.reference
        alone = (
            f"{best.library} does the same in {duration(best.time.median_ns)}"
            if best
            else "no other version to compare"
        )
        yield f"{name_of(fastest.label)}: {time}; {alone}"
        return
    if len(leading) == len(timed):
        yield f"{amount}, no difference: {time}{_beside(ladder, fastest)}"
        yield f"{amount}, no difference: {time}"
        return
    first = timed[0]
    if len(leading) > 1:
        who = f"{some_names([rung.label for rung in leading])} are as fast"
    else:
        who = f"{name_of(fastest.label)} is the fastest of {len(timed)}"
    against = "" if first in leading or fastest.to_first is None else _against(fastest.to_first, first)
    last = timed[-1]
    factor = last.to_first.factor if last.to_first and last not in leading else None
    later = f"; {name_of(last.label)} is {speed_words(factor)}" if factor and factor < 1 else ""
    for beside in dict.fromkeys((_beside(ladder, fastest), "")):
        yield from (f"{who}: {time}{against}{beside}{end}" for end in dict.fromkeys((later, "")))
    yield f"{who}: {time}"


def _against(timing: Timing, first: Rung) -> str:
    """Say how much faster a version is than the first: `, 1.78x faster than v1`."""
    return f", {speed_words(timing.factor)} than {name_of(first.label)}" if timing.factor else ""


def _beside(ladder: Ladder, fastest: Rung) -> str:
    """Say how close the fastest version comes to the library of the comparison: `, 87 % of cuBLAS`."""
    best = ladder.reference
    share = ratio(best.time.median_ns, fastest.time.median_ns) if best else None
    return f", {percent(share)} of {best.library}" if best and share else ""


def held_against(ladder: Ladder) -> str:
    """Name the version with which speed-ups and changes of a ladder are compared."""
    first = next((rung.label for rung in ladder.rungs if not rung.apart and rung.time.times_ns), "")
    what = f"first: {first}; " if first else ""
    return f"{what}changes against the version before, unless another is named"


def subject(ladder: Ladder) -> str:
    """Name what the times are of: the kernel and, if its name changes, its name in each version."""
    followed = ladder.followed
    if followed is None:
        evened = any(kernel.is_mean for kernel in ladder.kernels)
        return "times of all kernels" + (", at one number of launches" if evened else "")
    if len({digest for rung in ladder.rungs for digest in rung.side.digests}) < len(ladder.rungs):
        return "times of one launch of each kernel, which do the same work in one report"
    at = [(place, rung.analysis.kernel.name) for place, rung in enumerate(followed.rungs) if rung.analysis]
    kind = (
        "mean launch of " if followed.is_mean else "median launch of " if followed.rungs[at[0][0]].launches > 1 else ""
    )
    short = short_names(name for _, name in at)
    if len(short) == 1:
        return f"times: {kind}{cut_name(plain_name(at[0][1]), NAME_WIDTH)}"
    runs = [list(run) for _, run in groupby(at, key=lambda one: one[1])]
    said = [f"{short[run[0][1]]} ({span(ladder.labels[run[0][0]], ladder.labels[run[-1][0]])})" for run in runs]
    more = f" and {len(said) - NAMES_SHOWN} more" if len(said) > NAMES_SHOWN else ""
    return f"times: {kind}{', '.join(said[:NAMES_SHOWN])}{more}"


def try_next(ladder: Ladder) -> str:
    """Say what to try next: the first move of the fastest version, with its gain and limit; empty without one."""
    fastest = ladder.fastest
    if fastest is None or fastest.analysis is None:
        return ""
    verdict = fastest.analysis.verdict
    span = A_LAUNCH if fastest.launches > 1 else ""
    gain = gain_words(verdict.gain, fastest.analysis.kernel.duration_ns, span)
    limit = limit_in_short(fastest.analysis)
    said = (f"Next, from {fastest.label}: {best_move(fastest.analysis)}", gain, limit)
    return f"{'; '.join(filter(None, said))}."


def ladder_asks(ladder: Ladder) -> bool:
    """Return whether what comes next is to collect more, which a page says once."""
    fastest = ladder.fastest
    return fastest is not None and fastest.analysis is not None and asks_first(fastest.analysis.verdict)


def ladder_warnings(ladder: Ladder) -> list[str]:
    """List the warnings about the sides, each once, with the sides it concerns unless these are all."""
    about: defaultdict[str, list[str]] = defaultdict(list)
    for pair in ladder.each:
        for warning in pair.warnings:
            about[warning].append(pair.head.label)
    for rung in ladder.rungs if ladder.pairs else ():
        if rung.work and rung.work.assumed:
            about[assumed_words(rung.work)].append(rung.label)
    return [
        warning if len(labels) == len(ladder.each) else f"{', '.join(labels)}: {warning}"
        for warning, labels in about.items()
    ]


def kernel_cells(kernel: Ladder, blocks: str = BLOCKS) -> tuple[str, ...]:
    """Describe a kernel over its versions: how many, first and last time, factor, a drawing of times, and limiters.

    Only compared versions count, if any two are, as a version that did other work has no comparable time.
    """
    own = _shown_positions(kernel)
    known = [kernel.time_of(rung).median_ns if at in own else None for at, rung in enumerate(kernel.rungs)]
    analyses = [one for at in own if (one := kernel.rungs[at].analysis)]
    first, last = known[own[0]], known[own[-1]]
    return (
        str(len(own)),
        duration(first) if first is not None else "-",
        (duration(last) if last is not None else "-") + (" a launch" if kernel.is_mean else ""),
        _first_to_last(kernel, len(own)),
        sparkline(known, blocks),
        verdicts(analyses),
    )


def _shown_positions(kernel: Ladder) -> list[int]:
    """Return the positions of the versions in its row: those that are compared, or all if fewer than two are."""
    present = [at for at, rung in enumerate(kernel.rungs) if rung.analysis]
    compared = [at for at in present if not kernel.rungs[at].apart]
    return compared if len(compared) > 1 else present


def kernel_title(kernel: Ladder, names: Mapping[str, str]) -> Words:
    """Name a kernel as in its last version, and as in the first if that is another function."""
    analyses = [one for at in _shown_positions(kernel) if (one := kernel.rungs[at].analysis)]
    was, now = analyses[0].kernel, analyses[-1].kernel
    if was.function_name == now.function_name:
        return code(names[now.name])
    return (code(names[was.name]), " -> ", code(names[now.name]))


def _first_to_last(kernel: Ladder, compared: int) -> str:
    """Say how much faster the last version is than the first; a dash if they are not compared."""
    factor = kernel.factor if compared > 1 else None
    if factor is not None and abs(1 / factor - 1) <= kernel.threshold:
        return "unchanged"
    return speed_words(factor) if factor is not None else "-"


def sparkline(values: Sequence[float | None], blocks: str = BLOCKS) -> str:
    """Draw values as block characters from zero to the largest; a space for a missing value."""
    most = max((value for value in values if value is not None), default=0.0)
    top = len(blocks) - 1
    return "".join(" " if value is None or not most else blocks[round(value / most * top)] for value in values)


def limiter(analysis: Analysis) -> str:
    """Name the class of a verdict, its limiter and its share: `memory at HBM2 81 %`."""
    verdict = analysis.verdict
    if verdict.bottleneck is None or verdict.resource is None:
        return limiter_words(verdict.shown_class, verdict.resource, analysis.kernel.gpu)
    name, share = share_words(verdict.bottleneck)
    words = limiter_words(verdict.shown_class, name, analysis.kernel.gpu)
    return f"{words} ({share})" if share[0].isalpha() else f"{words} {share}"


def verdicts(analyses: Sequence[Analysis]) -> str:
    """Give the last verdict, and the first if it was different."""
    first, last = analyses[0].verdict, analyses[-1].verdict
    if (first.shown_class, first.resource) == (last.shown_class, last.resource):
        return limiter(analyses[-1])
    return f"{limiter(analyses[0])} -> {limiter(analyses[-1])}"
