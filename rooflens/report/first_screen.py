"""The first screen: what ran where, warnings, the share of time by verdict, and where the time is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.model.words import resource_label
from rooflens.report import format as fmt
from rooflens.report.html import render
from rooflens.report.roofline_rows import BAND_FROM_RATIO
from rooflens.report.rows import bound_times_ns, time_part
from rooflens.report.words import BOUND_LABELS, flag_label, flag_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

    from rooflens.model.records import Bound
    from rooflens.report.rows import Group, Launch, Page

LOSSES_SHOWN = 3
LOSS_FROM_SHARE = 0.01
"""A loss below this part of the biggest one is not worth a line."""

GPUS_NAMED = 3

FLAGS_NAMED = 2

FEW_SHARE = 0.05
"""Launches with less of the GPU time than this are short ones."""

CLOCK_WORDS = {"base": "locked to base by ncu", "none": "as found", "boost": "locked to boost by ncu"}


@dataclass(frozen=True, slots=True)
class Segment:
    """One verdict class in the bar of GPU time."""

    bound: Bound
    time_ns: float
    share: float
    kernels: int


@dataclass(frozen=True, slots=True)
class Loss:
    """One line of the list of losses.

    Attributes:
        wall: The verdict with its decisive share: `memory-bound: HBM 38.2 %`.
    """

    rank: int
    group: Group
    loss_ns: float
    headroom: float | None
    wall: str
    cause: str
    move: str


@dataclass(frozen=True, slots=True)
class Flagged:
    """What the header says of flags: the launches that have any, the most frequent ones, and what each means."""

    launches: int
    names: str
    meanings: str


def header(page: Page) -> Markup:
    """Say what ran, where, on which clock, and who measured it."""
    return render(
        "header", page=page, facts=_facts(page), counts=_counts(page), flagged=_flagged(page), noun=_noun(page)
    )


def banner(page: Page) -> Markup:
    """Warn of synthetic data before any number is read."""
    runs, synthetic = len(page.runs), sum(run.synthetic for run in page.runs)
    if not synthetic:
        subject = "Some of these kernels were"
    elif runs == 1:
        subject = "This report was"
    else:
        subject = f"All {runs} reports were" if synthetic == runs else f"{synthetic} of {runs} reports were"
    return render("banner", page=page, subject=subject, whole=runs > 0 and synthetic == runs)


def summary(page: Page) -> Markup:
    """Show the share of GPU time by verdict as one bar with words."""
    times = bound_times_ns(page.timed)
    segments = [
        Segment(
            bound,
            ns,
            ns / page.total_ns,
            sum(launch.analysis.launches for launch in page.timed if launch.bound == bound),
        )
        for bound, ns in sorted(times.items(), key=lambda item: -item[1])
    ]
    return render("summary", page=page, segments=segments)


def losses(page: Page) -> Markup:
    """Name the kernels where the most time is lost, the wall of each and the one move."""
    ranked = biggest_losses(page)
    named = {loss.group.worst.key for loss in ranked}
    at_roof = [g for g in page.groups if g.worst.analysis.verdict.at_roof and g.worst.key not in named]
    unranked = [group for group in page.groups if group.loss_ns is None]
    return render(
        "losses",
        page=page,
        losses=ranked,
        at_roof=at_roof[:LOSSES_SHOWN],
        more_at_roof=len(at_roof) > LOSSES_SHOWN,
        at_roof_share=time_part(at_roof),
        unranked=unranked,
        unranked_share=time_part(unranked),
        advice=next((move for group in unranked for move in group.worst.analysis.verdict.advice), ""),
    )


def biggest_losses(page: Page) -> list[Loss]:
    """Rank kernels by time x (1 - largest share): the time that reaching their nearest roof would give back.

    Kernels at their roof are ranked only where there are no others: little is to be gained there.
    """
    known = [(g, g.loss_ns) for g in page.groups if g.loss_ns]
    open_ended = [(g, loss_ns) for g, loss_ns in known if not g.worst.analysis.verdict.at_roof]
    losing = sorted(open_ended or known, key=lambda pair: -pair[1])
    worth = [pair for pair in losing[:LOSSES_SHOWN] if pair[1] >= LOSS_FROM_SHARE * losing[0][1]]
    return [_loss(rank, group, loss_ns) for rank, (group, loss_ns) in enumerate(worth, start=1)]


def _loss(rank: int, group: Group, loss_ns: float) -> Loss:
    total_ns = group.duration_ns or 0.0
    return Loss(
        rank=rank,
        group=group,
        loss_ns=loss_ns,
        headroom=total_ns / (total_ns - loss_ns) if total_ns > loss_ns else None,
        wall=wall(group.worst),
        cause=(group.worst.analysis.verdict.cause or "").replace("_", " "),
        move=next(iter(group.worst.analysis.verdict.advice), group.worst.analysis.verdict.sentence),
    )


def wall(launch: Launch) -> str:
    """Name the verdict with the resource nearest its peak."""
    label = BOUND_LABELS[launch.bound]
    if launch.leader is None:
        return label
    name, share = launch.leader
    near = "" if launch.bound in {"memory", "compute", "balanced"} else "nearest "
    roof = ", at the roof" if launch.analysis.verdict.at_roof else ""
    return f"{label}: {near}{resource_label(name)} {fmt.percent(share)}{roof}"


def _facts(page: Page) -> list[str]:
    """List GPU, compute capability, clock, ncu and date; what no report states is left out."""
    kernels = [launch.analysis.kernel for launch in page.launches]
    capabilities = sorted({k.compute_capability for k in kernels if k.compute_capability})
    passes = [round(k.counters["passes"]) for k in kernels if "passes" in k.counters]
    facts = [
        _listed(page.gpus, "GPUs"),
        f"CC {', '.join(capabilities)}" if len(page.gpus) == 1 and capabilities else "",
        _clock(page),
        _listed(sorted({f"ncu {run.ncu_version}" for run in page.runs if run.ncu_version}), "ncu versions"),
        _span(passes, "pass", "passes"),
        _recorded(page),
    ]
    return [fact for fact in facts if fact]


def _clock(page: Page) -> str:
    """Say the SM clock and who set it; on several GPUs their charts say it."""
    text = _clock_words(page.timed)
    if not text or len(page.gpus) > 1:
        return ""
    modes = {run.clock_control for run in page.runs}
    words = {CLOCK_WORDS.get(mode, mode) if mode else "clock control not stated" for mode in modes}
    how = words.pop() if len(words) == 1 else "clock control differs between reports"
    return f"SM {text} ({how})"


def _clock_words(launches: Sequence[Launch]) -> str:
    """Say the clock of the launch that takes most time first: a short one may run at an idle clock."""
    known = [(hz, launch) for launch in launches if (hz := launch.analysis.kernel.counters.get("sm_clock_hz"))]
    if not known:
        return ""
    main_hz = max(known, key=lambda pair: pair[1].duration_ns or 0.0)[0]
    low, high = min(hz for hz, _ in known), max(hz for hz, _ in known)
    moved = [
        f"{word} {fmt.si(hz, 'Hz')}"
        for word, hz in (("down to", low), ("up to", high))
        if max(hz / main_hz, main_hz / hz) >= BAND_FROM_RATIO
    ]
    if not moved:
        return fmt.si(main_hz, "Hz")
    others = [launch for hz, launch in known if max(hz / main_hz, main_hz / hz) >= BAND_FROM_RATIO]
    which = "short launches" if (time_part(others) or 0.0) < FEW_SHARE else "other launches"
    return f"{fmt.si(main_hz, 'Hz')}, {' and '.join(moved)} in {which}"


def _listed(names: Iterable[str], plural: str) -> str:
    """Join a few names, or count many."""
    known = list(names)
    return ", ".join(known) if len(known) <= GPUS_NAMED else f"{len(known)} {plural}"


def _span(values: list[int], one: str, several: str) -> str:
    """Write `7 passes` or `3 to 7 passes`."""
    if not values:
        return ""
    low, high = min(values), max(values)
    text = f"{high}" if low == high else f"{low} to {high}"
    return f"{text} {one if high == 1 else several}"


def _recorded(page: Page) -> str:
    dates = sorted(fmt.date(run.created_unix_s) for run in page.runs if run.created_unix_s)
    if not dates:
        return ""
    return f"recorded {dates[0]}" if dates[0] == dates[-1] else f"recorded {dates[0]} to {dates[-1]}"


def _counts(page: Page) -> list[str]:
    """Count kernels, launches and reports, and sum up the GPU time."""
    kernels, launches = len(page.groups), sum(group.launch_count for group in page.groups)
    counts = [fmt.count(kernels, "kernel")]
    if launches != kernels:
        counts.append(fmt.count(launches, "launch"))
    if len(page.runs) > 1:
        counts.append(fmt.count(len(page.runs), "report"))
    if page.total_ns:
        counts.append(f"{fmt.duration(page.total_ns)} of GPU time")
    return counts


def _noun(page: Page) -> str:
    """Call results launches where kernels ran more than once."""
    return "kernel" if len(page.groups) == len(page.timed) else "launch"


def _flagged(page: Page) -> Flagged | None:
    """Name the most frequent flags, and count the others."""
    flagged = [launch for launch in page.timed if launch.cautions]
    if not flagged:
        return None
    amounts = Counter(sorted(flag for launch in flagged for flag in launch.cautions))
    frequent = [flag for flag, _ in amounts.most_common()]
    others = len(frequent) - FLAGS_NAMED
    names = ", ".join(flag_name(flag) for flag in frequent[:FLAGS_NAMED])
    return Flagged(
        launches=len(flagged),
        names=f"{names} and {others} more" if others > 0 else names,
        meanings="\n".join(f"{fmt.count(amounts[flag], 'launch')}: {flag_label(flag)}" for flag in frequent),
    )
