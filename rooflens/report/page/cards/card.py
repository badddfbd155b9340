"""One card per kernel: verdict, findings, loops, hot lines, course, shares, stalls, occupancy, rules, sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.knowledge.families import TITLES, family_page, named_page
from rooflens.model.knowledge.items import names_of
from rooflens.model.records import Analysis, Finding, Verdict
from rooflens.model.roofline.occupancy import block_smem_bytes, find_occupancy, occupancy_curves
from rooflens.model.roofline.traffic import find_traffic
from rooflens.model.summary import Launch, cautions, notes
from rooflens.model.unprofiled import InProgram
from rooflens.model.verdict.sentences import NOT_MEASURED, limiter_words, unmeasured_words, without_move
from rooflens.model.verdict_classes import Bound, ShownClass
from rooflens.report.content import Content
from rooflens.report.page.cards.bars import Bars, level_bars, opcode_mix, pipe_bars, stall_bars
from rooflens.report.page.cards.course import Course, course
from rooflens.report.page.cards.expectation import checked_for, predicted_panel
from rooflens.report.page.cards.hot_lines import HotLines, hot_lines
from rooflens.report.page.cards.loops import loop_bars
from rooflens.report.page.cards.memory import Memory, MemoryChart, memory, memory_chart
from rooflens.report.page.cards.nvidia import Opinion, opinion, shared_texts
from rooflens.report.page.cards.occupancy import OccupancyCurve, Resident, occupancy_curve, resident
from rooflens.report.page.cards.sources import Rows, common_rows, merged, source_rows
from rooflens.report.roofline.choices import choices
from rooflens.report.templates import render
from rooflens.report.words.findings import ShownFinding, confidence_words, shown
from rooflens.report.words.how_it_runs import occupancy_facts
from rooflens.report.words.labels import BOUND_LABELS
from rooflens.report.words.program import in_program_lines
from rooflens.report.words.verdict import limit_factor_words

_CAUSE = "cause: "
"""How the model begins a line of evidence that names a cause of latency."""

LONG_CARDS = 8
"""Number of the longest launches whose cards give notes in full, and occupancy curves even without a useful step."""


class Findings(Struct, frozen=True):
    """Findings that cost time, the costliest first, then notes; a note may cost time if a side was not measured."""

    costing: tuple[ShownFinding, ...]
    notes: tuple[ShownFinding, ...]
    is_one_side_only: bool


class Card(Struct, frozen=True):
    """What one card shows.

    Attributes:
        key: Of its launch; `from_run_to_run` is what the launch is called on a command line.
        shown: Short name of its kernel, with how many launches it stands for; `name` is the full one.
        duration_ns: GPU time of what it stands for; None if it failed, or its report holds no duration.
        bound: Class of its verdict; `shown_class` tells open ones apart.
        index: Of the result in its report, `source`.
        gpu: Where it ran; empty on a page of one GPU.
        limiter: Class and resource of the verdict in a few words.
        sentence: The verdict without its move, which follows below: its class, and the rest.
        facts: Confidence, limit and launch shape.
        long: It gives notes at length, and not their titles only, and all occupancy curves.
        said: Moves that the first screen of a page of a kernel says.
        moves: What can help kernels of its class, where no finding says what helps this one.
        family: Page of the documentation on kernels of its family; None if its name tells none.
        evidence: Lines behind the verdict that neither a finding nor a bar of the card shows.
        mix: What the shares of opcodes are of, and the groups.
        cautions: Flags that change its verdict.
        remarks: Flags that say how its numbers were made.
        sums: What the numbers are where the launch stands for several; empty for a single one.
        predicted: Predicted against measured; empty without a prediction.
        sources: Numbers -> the stored metrics that gave them, without those that are usual on this page.
    """

    key: str
    from_run_to_run: str
    shown: str
    name: str
    failed: bool
    duration_ns: float | None
    time_share: float | None
    bound: Bound
    shown_class: ShownClass
    index: int
    source: str
    gpu: str
    nvtx_range: str | None
    process: str | None
    limiter: str
    sentence: tuple[str, str]
    facts: tuple[str, ...]
    long: bool
    findings: Findings
    loops: HotLines | None
    hot_lines: HotLines | None
    course: Course | None
    said: tuple[str, ...]
    moves: tuple[str, ...]
    family: str | None
    evidence: tuple[str, ...]
    cautions: tuple[str, ...]
    remarks: tuple[str, ...]
    sums: str
    levels: Bars
    pipes: Bars
    stalls: Bars
    mix: tuple[str, Bars]
    memory_chart: MemoryChart | None
    memory: Memory
    resident: Resident | None
    curves: tuple[OccupancyCurve, ...]
    predicted: Markup
    nvidia: Opinion | None
    sources: Rows


class Cards(Struct, frozen=True):
    """The cards of a page.

    Attributes:
        by_launch: Card by the key of its launch, in order of falling time.
        has_gains: A finding on one of them says how much faster its kernel gets.
        common: Numbers -> the stored metrics that gave them on most of the cards.
        texts: Texts of NVIDIA's rules that several cards link to, and their numbers.
    """

    by_launch: Mapping[str, Markup]
    has_gains: bool
    common: Rows
    texts: Mapping[str, int]


def cards(content: Content) -> Cards:
    """Write the cards of a page."""
    shown = content.carded
    sources = [source_rows(launch.analysis) for launch in shown]
    common = frozenset(usual := common_rows(sources))
    written = [
        _card(content, launch, merged(row for row in rows if row not in common), long=i < LONG_CARDS)
        for i, (launch, rows) in enumerate(zip(shown, sources, strict=True))
    ]
    texts = shared_texts([card.nvidia for card in written if card.nvidia])
    alone = content.listed[0].representative.key if len(content.listed) == 1 else ""
    shared = {"common": bool(usual), "shared_texts": texts, "alone": alone, "explained": names_of("flags")}
    return Cards(
        by_launch={card.key: render("report/cards", card=card, **shared) for card in written},
        has_gains=any(finding.gain for card in written for finding in card.findings.costing),
        common=merged(usual),
        texts=texts,
    )


def findings(told: Iterable[Finding], flags: Collection[str]) -> Findings:
    """Put the findings of a kernel into words."""
    costing: list[ShownFinding] = []
    costless: list[ShownFinding] = []
    for finding in told:
        (costless if finding.severity == "note" else costing).append(shown(finding))
    return Findings(tuple(costing), tuple(costless), "one_side_only" in flags)


def _card(content: Content, launch: Launch, sources: Rows, *, long: bool) -> Card:
    analysis, kernel, verdict = launch.analysis, launch.analysis.kernel, launch.analysis.verdict
    traffic = find_traffic(kernel)
    chart = memory_chart(analysis, traffic, apart=not content.aggregated or analysis.launches == 1)
    told = findings(analysis.findings, analysis.flags)
    drawn = any(level.share is not None for level in analysis.levels.values()) or bool(analysis.pipes)
    checked = None
    if not (launch.failed or content.aggregated):
        checked = checked_for(kernel.digest, launch.name, content.predictions)
    is_whole = checked is not None and sum(one.kernel.digest == kernel.digest for one in content.analyses) == 1
    return Card(
        key=launch.key,
        from_run_to_run=analysis.key,
        shown=launch.shown,
        name=launch.name,
        failed=launch.failed,
        duration_ns=launch.duration_ns,
        time_share=launch.time_share,
        bound=verdict.bound,
        shown_class=launch.shown_class,
        index=kernel.index,
        source=kernel.source,
        gpu=launch.gpu if len(content.gpus) > 1 else "",
        nvtx_range=kernel.nvtx_range,
        process=kernel.process,
        limiter="failed" if launch.failed else _limiter(verdict, launch.gpu),
        sentence=_sentence(verdict),
        facts=_facts(analysis),
        long=long,
        findings=told,
        loops=loop_bars(analysis.loops, kernel.gpu),
        hot_lines=hot_lines(kernel),
        course=None if kernel.series is None else course(kernel.series, analysis),
        said=tuple(choice.text for choice in choices(analysis)),
        moves=_moves(verdict, has_costing=bool(told.costing)),
        family=named_page(page, TITLES) if (page := family_page(kernel.function_name)) else None,
        evidence=_evidence(verdict.evidence, drawn=drawn, has_costing=bool(told.costing)),
        cautions=cautions(analysis),
        remarks=notes(analysis),
        sums=_sums(analysis.launches, analysis.in_program, aggregated=content.aggregated),
        levels=level_bars(analysis),
        pipes=pipe_bars(analysis.pipes),
        stalls=stall_bars(kernel.stalls),
        mix=opcode_mix(kernel.warp_opcodes, kernel.thread_opcodes),
        memory_chart=chart,
        memory=memory(analysis.levels.get("smem"), traffic, has_chart=chart is not None),
        resident=resident(find_occupancy(kernel), occupancy_facts(kernel)),
        curves=tuple(occupancy_curve(curve) for curve in occupancy_curves(kernel) if long or curve.better),
        predicted=predicted_panel(checked, analysis, is_whole=is_whole) if checked else Markup(),
        nvidia=opinion(analysis),
        sources=sources,
    )


def _sentence(verdict: Verdict) -> tuple[str, str]:
    head, colon, rest = without_move(verdict).partition(": ")
    return (head, f"{colon}{rest}")


def _moves(verdict: Verdict, *, has_costing: bool) -> tuple[str, ...]:
    """Leave out the moves that findings say, but not how to learn why a kernel waits."""
    if not has_costing:
        return verdict.advice
    asked = (move.text for move in verdict.moves if move.kind == "collect")
    return tuple(asked) if verdict.cause == NOT_MEASURED else ()


def _limiter(verdict: Verdict, gpu: str) -> str:
    words = limiter_words(BOUND_LABELS[verdict.shown_class], verdict.resource, gpu)
    return f"{words}, {unmeasured_words(verdict.unmeasured)}" if verdict.or_bound else words


def _facts(analysis: Analysis) -> tuple[str, ...]:
    """Write confidence, limit, and how it was launched."""
    kernel, verdict = analysis.kernel, analysis.verdict
    sizes = (("grid", kernel.grid), ("block", kernel.block))
    registers, shared = kernel.counters.get("registers_per_thread"), block_smem_bytes(kernel.counters)
    return (
        f"class: {confidence_words(verdict.confidence)}",
        *in_program_lines(analysis),
        *([limit] if (limit := limit_factor_words(verdict)) else []),
        *(["some counters of this kernel are missing"] if kernel.status == "partial" else []),
        *(f"{word} {'x'.join(map(str, size))}" for word, size in sizes if size),
        *([f"{registers:.0f} registers per thread"] if registers else []),
        *([f"{fmt.si(shared, 'B')} of shared memory per block"] if shared else []),
    )


def _evidence(lines: Iterable[str], *, drawn: bool, has_costing: bool) -> tuple[str, ...]:
    """Leave out the lines that the bars draw, and the causes of latency where findings say them with their moves."""
    if drawn and has_costing:
        return ()
    return tuple(line.removeprefix(_CAUSE) for line in lines if not drawn or line.startswith(_CAUSE))


def _sums(launches: int, in_program: InProgram | None, *, aggregated: bool) -> str:
    """Say which of several launches it is that the numbers belong to."""
    if launches <= 1:
        return ""
    if in_program is not None and in_program.total_ns is not None:
        return f"The time is that of {launches:,} launches without ncu; everything else is of one launch under it."
    if not aggregated:
        return f"One profile represents {launches:,} equal launches: their time is its time x {launches:,}."
    return f"The median one of {launches:,} launches: their time is the sum; everything else is this launch's own."
