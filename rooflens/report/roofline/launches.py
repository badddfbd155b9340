"""The launches of one GPU as its roofline draws them: here alone an analysis becomes points.

Axes, names, boxes, rows and layers take the records of `report/plane/plane.py`, and know no analysis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType

from msgspec.structs import asdict

from rooflens import format as fmt
from rooflens.model.records import Analysis, Verdict
from rooflens.model.roofline.roofs import RoofSet
from rooflens.model.roofline.standing import Standing, judged, standings
from rooflens.model.roofline.unit_names import bottleneck_words, resource_label
from rooflens.model.roofline.work import main_work
from rooflens.model.summary import Launch, cautions, median_launch
from rooflens.report.content import Content
from rooflens.report.plane.plane import BarredLaunch, DrawnLaunch, LevelShare, LoopPoint, Plane, Point
from rooflens.report.roofline.bars import NO_BYTES, NONE, UNCOUNTED, UNIT, UNPLACED
from rooflens.report.roofline.choices import choices
from rooflens.report.roofline.course import phase_points
from rooflens.report.words.inside import loop_labels, shown_loops
from rooflens.report.words.labels import BOUND_LABELS, LEAST_SHARE, flag_name, loop_place, stall_label
from rooflens.report.words.verdict import unmeasured_words

LOOP_WIDTH = 30

Names = Mapping[tuple[str, str], str]
"""By digest of the report and name of the kernel."""


def plane(
    content: Content, gpu: str, ranks: Mapping[str, int] = MappingProxyType({}), climbers: Names = MappingProxyType({})
) -> Plane:
    """Place the launches of one GPU.

    Args:
        content: Everything there is to draw.
        gpu: Its name.
        ranks: Numbers of the ranking that stand in points, by key of launch.
        climbers: What versions are called that the page follows, the fastest first.
    """
    launches = [launch for launch in content.timed if launch.gpu == gpu]
    labels, lines = content.report_labels if len(content.report_labels) > 1 else {}, content.lines
    found = {launch.key: standings(launch.analysis) for launch in launches}
    medians = _medians(launch for launch in launches if not found[launch.key])
    points: list[Point] = []
    loops: list[LoopPoint] = []
    shares: list[LevelShare] = []
    for launch in launches:
        analysis, name = launch.analysis, (launch.analysis.kernel.digest, launch.name)
        line = lines.get(name, launch.name)
        drawn = _drawn_launch(launch, labels.get(name[0], ""), line, climbers.get(name, ""), ranks.get(launch.key))
        if own := found[launch.key]:
            points += _points(drawn, analysis, own)
            loops += _loops(drawn, analysis)
        else:
            shares += _shares(drawn, analysis, is_median=launch.key in medians)
    placed = {one.key: one for one in (*(p.launch for p in points), *(p.launch for p in shares))}
    return Plane(
        gpu=gpu,
        points=tuple(points),
        shares=tuple(shares),
        roofs=content.roofs.get(gpu, RoofSet()),
        unplaced=len(launches) - len(placed),
        drawn=len(placed),
        longest_share=max((one.time_share for one in placed.values()), default=0.0) or 1.0,
        reports=tuple(labels.values()),
        climbers=tuple(dict.fromkeys(climbers.values())),
        loops=tuple(loops),
    )


def _medians(launches: Iterable[Launch]) -> set[str]:
    """Return the keys of the median launches of kernels, of those that have bars."""
    kernels: defaultdict[str, list[Launch]] = defaultdict(list)
    for launch in launches:
        if any(level.share is not None for level in launch.analysis.levels.values()):
            kernels[launch.group_key].append(launch)
    medians = {id(median_launch([launch.analysis for launch in own])) for own in kernels.values()}
    return {launch.key for own in kernels.values() for launch in own if id(launch.analysis) in medians}


def _drawn_launch(launch: Launch, report: str, line: str, called: str, rank: int | None) -> DrawnLaunch:
    analysis, verdict = launch.analysis, launch.analysis.verdict
    return DrawnLaunch(
        key=launch.key,
        group_key=launch.group_key,
        name=launch.name,
        shown=launch.shown,
        report=report,
        line=line,
        called=called,
        rank=rank,
        shown_class=launch.shown_class,
        estimated=launch.estimated,
        time_share=launch.time_share or 0.0,
        launches=analysis.launches,
        work=main_work(analysis).total,
        gains=tuple((at, choice.gain) for at, choice in enumerate(choices(analysis)) if choice.gain),
        counts_limiter=(pipe := analysis.pipes.get(verdict.resource or "")) is not None and pipe.is_arithmetic,
        phases=phase_points(analysis),
        time_words=_time_words(launch),
        verdict_words=_verdict_words(verdict, launch.gpu),
        limiter_words=bottleneck_words(verdict.bottleneck, launch.gpu),
        confidence=verdict.confidence,
        flag_words=", ".join(map(flag_name, cautions(analysis))),
    )


def _time_words(launch: Launch) -> str:
    if launch.duration_ns is None:
        return "not in the report"
    time = f"{fmt.duration(launch.duration_ns)}, {fmt.percent(launch.time_share)} of GPU time"
    launches = launch.analysis.launches
    return f"{time}, {fmt.count(launches, 'launch')}" if launches > 1 else time


def _verdict_words(verdict: Verdict, gpu: str) -> str:
    """Say class, resource and cause of a verdict in a few words."""
    resource = f": {resource_label(verdict.resource, gpu)}" if verdict.resource else ""
    cause = f", {stall_label(verdict.cause)}" if verdict.cause else ""
    lacks = f", {unmeasured_words(verdict)}" if verdict.or_bound else ""
    return f"{BOUND_LABELS[verdict.shown_class]}{resource}{cause}{', at the roof' if verdict.at_roof else ''}{lacks}"


def _points(launch: DrawnLaunch, analysis: Analysis, standings: Sequence[Standing]) -> Iterator[Point]:
    own, peak = judged(standings), main_work(analysis).peak_per_s
    for one in standings:
        yield Point(**asdict(one), launch=launch, nearest=one is own, peak_per_s=peak)


def _loops(launch: DrawnLaunch, analysis: Analysis) -> Iterator[LoopPoint]:
    """Place the loops of a launch that are shown: at L2, and at shared memory where they read that.

    Loops count FLOPs: they have no place where the launch is placed by its integer operations.
    """
    if main_work(analysis).unit != "FLOP":
        return
    labels = loop_labels(shown_loops(analysis.loops))
    for one in analysis.loops:
        if one.loop.kind != "loop" or not one.flop_per_s or (one.share or 0.0) < LEAST_SHARE:
            continue
        name = fmt.cut_middle(labels.get(one.loop.id) or loop_place(one), LOOP_WIDTH)
        for level, moved in (("l2", one.l2_bytes), ("smem", one.smem_bytes)):
            if moved and (intensity := (one.flop or 0.0) / moved):
                known = analysis.levels.get(level)
                slope = intensity * (known.peak_bytes_per_s or inf) if known else inf
                roof = min(slope, analysis.flop_peak_per_s or inf)
                is_full, rate = one.flop_per_s >= roof, min(one.flop_per_s, roof)
                yield LoopPoint(launch, one.loop.id, name, level, is_full, intensity, rate)


def _shares(drawn: DrawnLaunch, analysis: Analysis, *, is_median: bool) -> Iterator[LevelShare]:
    """Keep a launch that has no place in the roofline by its bandwidth shares."""
    launch = BarredLaunch(
        **asdict(drawn),
        why=_why(analysis),
        is_median=is_median,
        bottleneck=analysis.verdict.bottleneck,
        leading=_leading(analysis),
    )
    for name, level in analysis.levels.items():
        if level.share is not None:
            yield LevelShare(launch, name, level.share, level.bytes_per_s)


def _leading(analysis: Analysis) -> str | None:
    """Return the bar of the unit that a verdict goes by: a level's, or that of a unit which is none of these."""
    found = analysis.verdict.bottleneck
    if found is None:
        return None
    busy = found.unit or found.resource
    level = analysis.levels.get(busy or "")
    return UNIT if level is None or level.share is None else busy


def _why(analysis: Analysis) -> str:
    """Say why a launch has no place in the roofline: FLOPs that were not counted are not the same as none."""
    total = main_work(analysis).total
    if not total:
        return UNCOUNTED if total is None else NONE
    return UNPLACED if any(level.amount_bytes for level in analysis.levels.values()) else NO_BYTES
