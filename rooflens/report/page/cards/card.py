"""One card per kernel: verdict, findings, hot lines, course, times, shares, stalls, occupancy, rules, sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens import format as fmt
from rooflens.model.launches import time_part
from rooflens.model.verdict.sentences import distance_words, wall_words, without_move
from rooflens.report.html.templates import render
from rooflens.report.labels import BOUND_LABELS
from rooflens.report.page.cards.bars import level_bars, pipe_bars, stall_bars
from rooflens.report.page.cards.course import course
from rooflens.report.page.cards.expectation import predicted_rows
from rooflens.report.page.cards.findings import findings, has_costing
from rooflens.report.page.cards.hot_lines import hot_lines
from rooflens.report.page.cards.memory import memory
from rooflens.report.page.cards.nvidia import opinion
from rooflens.report.page.cards.occupancy import resident
from rooflens.report.page.cards.sources import common_rows, merged, source_rows
from rooflens.report.page.cards.times import times

if TYPE_CHECKING:
    from markupsafe import Markup

    from rooflens.model.launches import Launch
    from rooflens.model.records import Analysis
    from rooflens.report.content import Content
    from rooflens.report.page.cards.bars import Bars
    from rooflens.report.page.cards.course import Course
    from rooflens.report.page.cards.expectation import PredictedRow
    from rooflens.report.page.cards.findings import Findings
    from rooflens.report.page.cards.hot_lines import HotLines
    from rooflens.report.page.cards.memory import Memory
    from rooflens.report.page.cards.nvidia import Opinion
    from rooflens.report.page.cards.occupancy import Resident
    from rooflens.report.page.cards.sources import Rows
    from rooflens.report.page.cards.times import Times

MAX_CARDS = 100
"""Cards written: the worst launch of every kernel first, then the longest launches."""

_CAUSE = "cause: "
"""How the model begins a line of evidence that names a cause of latency."""

LONG_CARDS = 8
"""Cards of so many of the longest launches give notes and NVIDIA's messages at length."""


@dataclass(frozen=True, slots=True)
class Card:
    """What one card shows beside the record itself.

    Attributes:
        wall: Class and resource of the verdict in a few words.
        sentence: The verdict without its move, which stands below it.
        facts: Confidence, distances and launch shape.
        long: It gives notes and NVIDIA's messages at length, and not their titles only.
        moves: What can help kernels of its class, where no finding says what helps this one.
        evidence: Lines behind the verdict that neither a finding nor a bar of the card shows.
        sums: What the numbers are where the launch stands for several; empty for a single one.
        predicted: Rows of predicted against measured work; empty without a prediction.
        sources: Numbers -> the stored metrics that gave them, without those that are usual on this page.
    """

    launch: Launch
    wall: str
    sentence: str
    facts: tuple[str, ...]
    long: bool
    findings: Findings
    hot_lines: HotLines | None
    course: Course | None
    moves: tuple[str, ...]
    evidence: tuple[str, ...]
    sums: str
    times: Times | None
    levels: Bars
    pipes: Bars
    stalls: Bars
    memory: Memory
    resident: Resident | None
    predicted: tuple[PredictedRow, ...]
    nvidia: Opinion | None
    sources: Rows


def cards(content: Content) -> Markup:
    """Write the cards in order of time, and say how many launches have none."""
    shown = carded(content)
    left_out = len(content.launches) - len(shown)
    sources = [source_rows(launch.analysis) for launch in shown]
    common = frozenset(usual := common_rows(sources))
    written = [
        _card(content, launch, merged(row for row in rows if row not in common), long=i < LONG_CARDS)
        for i, (launch, rows) in enumerate(zip(shown, sources, strict=True))
    ]
    return render(
        "report/cards",
        cards=written,
        has_gains=any(finding.gain for card in written for finding in card.findings.costing),
        common=merged(usual),
        left_out=left_out,
        covered=time_part(shown),
        long_cards=LONG_CARDS,
        content=content,
    )


def carded(content: Content) -> tuple[Launch, ...]:
    """Choose the launches that get a card."""
    wanted = dict.fromkeys(group.worst.key for group in content.groups)
    wanted |= dict.fromkeys(launch.key for launch in content.launches)
    chosen = set(list(wanted)[:MAX_CARDS])
    return tuple(launch for launch in content.launches if launch.key in chosen)


def _card(content: Content, launch: Launch, sources: Rows, *, long: bool) -> Card:
    analysis = launch.analysis
    return Card(
        launch=launch,
        wall=_wall(launch),
        sentence=without_move(analysis.verdict),
        facts=_facts(launch),
        long=long,
        findings=findings(analysis),
        hot_lines=hot_lines(analysis.kernel),
        course=course(analysis),
        moves=() if has_costing(analysis) else analysis.verdict.advice,
        evidence=_evidence(analysis),
        sums=_sums(content, launch),
        times=times(content, launch),
        levels=level_bars(analysis),
        pipes=pipe_bars(analysis),
        stalls=stall_bars(analysis),
        memory=memory(analysis),
        resident=resident(analysis.kernel),
        predicted=predicted_rows(content, launch),
        nvidia=opinion(launch),
        sources=sources,
    )


def _wall(launch: Launch) -> str:
    verdict = launch.analysis.verdict
    if launch.failed:
        return "failed"
    return wall_words(BOUND_LABELS[verdict.bound], verdict.resource, launch.gpu)


def _facts(launch: Launch) -> tuple[str, ...]:
    """Write confidence, distances, and how it was launched."""
    analysis = launch.analysis
    kernel, verdict = analysis.kernel, analysis.verdict
    sizes = (("grid", kernel.grid), ("block", kernel.block))
    registers, shared = kernel.counters.get("registers_per_thread"), kernel.counters.get("smem_per_block_bytes")
    return (
        f"confidence {verdict.confidence}",
        *([distances] if (distances := distance_words(verdict, launch.gpu)) else []),
        *(["some counters of this kernel are missing"] if kernel.status == "partial" else []),
        *(f"{word} {'x'.join(map(str, size))}" for word, size in sizes if size),
        *([f"{registers:.0f} registers a thread"] if registers else []),
        *([f"{fmt.si(shared, 'B')} of shared memory a block"] if shared else []),
    )


def _evidence(analysis: Analysis) -> tuple[str, ...]:
    """Leave out the lines that the bars draw, and the causes of latency where findings say them with their moves."""
    lines = analysis.verdict.evidence
    drawn = any(level.share is not None for level in analysis.levels.values()) or bool(analysis.pipes)
    if drawn and has_costing(analysis):
        return ()
    return tuple(line.removeprefix(_CAUSE) for line in lines if not drawn or line.startswith(_CAUSE))


def _sums(content: Content, launch: Launch) -> str:
    """Say what the numbers of several launches are: sums over sums, and whose the counters are."""
    launches = launch.analysis.launches
    if launches <= 1:
        return ""
    if not content.aggregated:
        return f"One profile stands for {launches:,} equal launches: their time is its time x {launches:,}."
    return (
        f"Stands for {launches:,} launches: times, bytes, FLOPs and shares are sums over them, for the mean launch. "
        "Evidence, stalls, occupancy, useful bytes and NVIDIA's rules are those of a representative one, the longest."
    )
