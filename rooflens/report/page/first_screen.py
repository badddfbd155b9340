"""The first screen: the answer for a kernel, or the list of what to fix first, and the charts beside it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rooflens import format as fmt
from rooflens.model.compare.ladder import Ladder
from rooflens.model.ranking import failed_lead
from rooflens.model.records import Confidence
from rooflens.model.summary import KernelSummary, Launch
from rooflens.report.content import Content
from rooflens.report.document import Option, Paragraph, Span, joined
from rooflens.report.kernel.document import answer, numbers, sentence
from rooflens.report.overview.headline import of_move
from rooflens.report.overview.opportunities import opportunities
from rooflens.report.page.cards import inside, view_of
from rooflens.report.page.charts import RooflineFigure, charts, collecting, lacking_gpu
from rooflens.report.page.ladder import ladder_section, way_of
from rooflens.report.roofline.choices import MoveChoice, choices
from rooflens.report.summary import brief_move, cannot_tell, segments
from rooflens.report.templates import render, write_blocks
from rooflens.report.words.findings import confidence_words, sureness
from rooflens.report.words.gain_and_limit import gain_figure
from rooflens.report.words.labels import BOUND_LABELS
from rooflens.report.words.program import program_lines
from rooflens.report.words.verdict import best_move


def first_screen(content: Content, figures: Sequence[RooflineFigure]) -> Markup:
    """Answer which kernel to fix first, and how, beside its roofline.

    Args:
        content: The page.
        figures: The rooflines of the page.
    """
    texts = [best_move(group.analysis) for group in content.first[:1]]
    if content.ladder:
        answer, texts = versions(content.ladder, content.launches), []
    elif len(content.kernels) == 1 and not failed_lead([*content.kernels, *content.failed_kernels]):
        answer = verdict(content)
        texts = [move.text for move in content.kernels[0].analysis.verdict.moves] or texts
    else:
        answer = what_first(content)
    asks = any("`rooflens profile" in text or "ncu " in text for text in texts)
    lacking = None if asks else lacking_gpu(figures)
    return render(
        "report/page#first_screen",
        answer=answer,
        total_ns=content.total_ns,
        way=write_blocks(way_of(content.ladder, content)) if content.ladder else "",
        charts=charts(
            figures,
            collects=collecting(content, lacking) if lacking else "",
            aggregated=content.aggregated,
            failed_count=content.failed_count,
        ),
        programs=program_lines(content.unprofiled, named=len(content.runs) > 1),
        many=many(content) if content.aggregated else "",
    )


def versions(ladder: Ladder, launches: Sequence[Launch]) -> Markup:
    """Show reports that are versions of a program one below the other, and what to try next on the fastest."""
    keys = {(launch.analysis.kernel.digest, launch.name): launch.key for launch in reversed(launches)}
    links = [
        keys.get((rung.analysis.kernel.digest, rung.analysis.kernel.name), "") if rung.analysis else ""
        for rung in ladder.rungs
    ]
    return ladder_section(ladder, links)


def what_first(content: Content) -> Markup:
    """List what can be done, by the time that it wins."""
    block = opportunities(content)
    return write_blocks((block,)) if block else Markup()


def verdict(content: Content) -> Markup:
    """Answer for a page of a kernel: its sentence and limit, what to try first, loops and hottest lines."""
    (kernel,) = content.kernels
    analysis = kernel.analysis
    options = tuple(
        _option(one, kernel, sureness(analysis.verdict, analysis.findings, one.finding)) for one in choices(analysis)
    )
    view = view_of(content, kernel.representative, options)
    classes = tuple(
        Span(f"{fmt.percent(one.share)} {BOUND_LABELS[one.bound]}, {fmt.duration(one.time_ns)}", one.bound)
        for one in segments(kernel.launches)
    )
    facts = (f"{fmt.count(kernel.launch_count, 'launch')}" if kernel.launch_count > 1 else "", kernel.spread)
    said = ", ".join(filter(None, facts))
    document = (
        *numbers(view),
        *((Paragraph((said,), "note"),) if said else ()),
        *((Paragraph((joined("; ", [*classes]),), "note"),) if len(kernel.class_ns) > 1 else ()),
        *answer(view),
    )
    return render(
        "report/page#verdict",
        bound=kernel.representative.shown_class,
        sentence=sentence(view) if content.is_judged else cannot_tell(len(content.runs), 1),
        body=inside(document),
    )


def _option(choice: MoveChoice, kernel: KernelSummary, sure: Confidence) -> Option:
    figure = gain_figure(choice.gain, kernel.duration_ns, kernel.launch_count).rpartition("\u2192 ")[2]
    said = of_move(kernel, choice.gain, choice.kind, choice.finding)
    return Option(
        brief_move(choice.text), figure, said, confidence_words(sure, "move"), fmt.cut_middle(choice.where, 60)
    )


def many(content: Content) -> Markup:
    """Say what is drawn of many launches, and how many kernels share the name `other`."""
    left_out = content.failed_count - len(content.failed)
    return render(
        "report/page#many",
        launches=sum(launch.analysis.launches for launch in content.timed),
        kernels=len({launch.group_key for launch in content.timed}),
        other=content.other,
        failed=f"{len(content.failed):,} of {content.failed_count:,}" if left_out else "",
    )
