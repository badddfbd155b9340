"""The description of a kernel in a digest: a few lines, or a single line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from itertools import islice

from rooflens import format as fmt
from rooflens.model.hotspots import hottest
from rooflens.model.records import Analysis, Finding, ratio
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.summary import KernelSummary, cautions
from rooflens.report.content import Content
from rooflens.report.document import Document, Heading, Span, Words, bullets, code, joined, paragraph
from rooflens.report.words.findings import code_of, confidence_words, costing, shown
from rooflens.report.words.gain_and_limit import best_gain_words, in_launches, limit_factor_words
from rooflens.report.words.inside import inside_line
from rooflens.report.words.kernel import NAME_WIDTH, file_of, plain, shares, short_name
from rooflens.report.words.labels import flag_label, flag_name, place_label
from rooflens.report.words.verdict import best_move, summary_head
from rooflens.report.words.verdicts import verdict_words

SENTENCE_WIDTH = 220
MOVE_WIDTH = 280
LOOPS_WIDTH = 220
_ONE_JOB = 2 / 3
"""Of a kernel that spends more of its time on one job, the verdict and the hot line say what its loops would."""
FINDING_WIDTH = 120
FLAG_WIDTH = 160
SOURCE_WIDTH = 56

HOT_SHOWN = 2
FINDINGS_SHOWN = 2
NUMBERS_SHOWN = 2


def block(place: int, group: KernelSummary, page: Content) -> Document:
    """Describe a kernel: what limits it, how far it is from its limits, why, one move, and the hottest lines."""
    verdict = group.analysis.verdict
    sure = confidence_words(verdict.confidence, "class")
    on = (" on ", code(fmt.cut_end(group.gpu, NAME_WIDTH))) if len(page.gpus) > 1 else ()
    return (
        Heading(
            (f"{place}. ", code(short_name(group.shown)), *on, *in_report(group, page.runs), f": {plain(takes(group))}")
        ),
        paragraph(f"{plain(summary_head(group), SENTENCE_WIDTH)} {fmt.sentence_case(sure)}."),
        bullets([*_kernel_lines(group)]),
    )


def row(place: int, group: KernelSummary, page: Content) -> Document:
    """Describe a kernel in a line: its time, what limits it as in `analyze`, and how much faster it could be."""
    more = _two_numbers(group)
    more = f"; {more}" if more else ""
    words = plain(f"{takes(group)}; {verdict_words(group.analysis)}{more}", SENTENCE_WIDTH)
    return (paragraph((f"{place}. ", code(short_name(group.shown)), *in_report(group, page.runs), f": {words}")),)


def in_report(group: KernelSummary, reports: Sized) -> tuple[str | Span, ...]:
    """Name the report of a kernel if there are several."""
    return (" in ", code(file_of(group.analysis.kernel.source))) if len(reports) > 1 else ()


def _kernel_lines(group: KernelSummary) -> Iterator[Words]:
    analysis = group.analysis
    if numbers := _two_numbers(group):
        yield plain(numbers)
    if busy := shares_words(analysis):
        yield f"shares: {plain(busy)}"
    if why := [_finding_digest(finding, analysis) for finding in islice(costing(analysis), FINDINGS_SHOWN)]:
        yield f"why: {'; '.join(why)}"
    if analysis.verdict.advice:
        yield f"try: {fitted(best_move(analysis), MOVE_WIDTH)}"
    if loops := inside_line(analysis, _ONE_JOB):
        yield f"loops: {plain(loops, LOOPS_WIDTH)}"
    if hot := hot_words(analysis):
        yield "hot: ", *hot
    if flags := cautions(analysis):
        yield f"careful: {careful(flags)}"
    yield "key: ", code(analysis.key)


def _two_numbers(group: KernelSummary) -> str:
    """Give the effect of the first move on all launches, and the limit."""
    gain = best_gain_words(group.analysis, group.duration_ns, in_launches(group.launch_count))
    both = gain, limit_factor_words(group.analysis)
    return ", ".join(filter(None, both))


def careful(flags: Sequence[str]) -> str:
    """Say why a verdict needs care: a single trap in a sentence, several by name."""
    if len(flags) == 1:
        return plain(flag_label(flags[0]), FLAG_WIDTH)
    return plain(", ".join(map(flag_name, flags)), FLAG_WIDTH)


def takes(group: KernelSummary) -> str:
    """Give the time of all launches of a kernel, and its share of the GPU time."""
    part = group.time_share
    share = "" if part is None or part == 1 else f", {fmt.percent(part)} of GPU time"
    return f"{fmt.duration(group.duration_ns)}{in_launches(group.launch_count)}{share}"


def shares_words(analysis: Analysis) -> str:
    """List how busy the memory levels and the busiest pipes are, the busiest first, then occupancy."""
    words = [f"{resource_label(name, analysis.kernel.gpu)} {fmt.percent(share)}" for name, share in shares(analysis)]
    occupancy = analysis.kernel.counters.get("achieved_occupancy")
    return ", ".join([*words, *([f"occupancy {fmt.percent(min(1.0, occupancy))}"] if occupancy is not None else [])])


def _finding_digest(finding: Finding, analysis: Analysis) -> str:
    """Name a finding with its gain and the numbers that fit whole; the first move gives its own numbers."""
    said = shown(finding, analysis.kernel.inside)
    if finding.move == best_move(analysis):
        return plain(said.title, FINDING_WIDTH)
    briefs = [said.brief(numbers) for numbers in range(NUMBERS_SHOWN, -1, -1)]
    return plain(next((brief for brief in briefs if len(brief) <= FINDING_WIDTH), briefs[-1]), FINDING_WIDTH)


def hot_words(analysis: Analysis) -> tuple[str | Span, ...]:
    """Name the hottest lines, or instructions if lines are unknown, each with its share of the samples and its code.

    A second line of the same file is named by its number, also where a library's was inlined there.
    """
    spots = hottest(analysis.kernel.hotspots, "samples", HOT_SHOWN)
    total, inside = analysis.kernel.code_totals.get("samples"), analysis.kernel.inside
    words: list[Words] = []
    before = ""
    for spot in spots:
        label = place_label(spot, inside)
        file = label.partition(":")[0]
        if file == before and spot.by == "line":
            label = label.removeprefix(file)
        before = file
        share = plain(fmt.percent(ratio(spot.measures.get("samples"), total)))
        text = code_of(spot, SOURCE_WIDTH)
        words.append((code(label), " " if label else "", share, *((" ", code(text)) if text else ())))
    return joined("; ", words)


def fitted(move: str, width: int) -> str:
    """Write a move; if it is too long, a command in it is shortened so that it can still be run."""
    said, tick, command = move.partition("`")
    inner, closed, rest = command.rpartition("`")
    if len(move) <= width or not tick or not closed or "`" in inner:
        return plain(move, width)
    return plain(f"{said}`{fmt.cut_end(inner, max(width - len(said) - len(rest), 0))}`{rest}")
