"""The first screen: the answer for a kernel, or the list of what to fix first, and the charts beside it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rooflens import format as fmt
from rooflens.model.records import Move
from rooflens.model.summary import KernelSummary
from rooflens.report.content import Content
from rooflens.report.document import Document, Option, Paragraph, Span, joined
from rooflens.report.kernel.document import KernelView, answer, numbers, reasons, seen, sentence
from rooflens.report.overview.headline import of_move
from rooflens.report.overview.opportunities import opportunities
from rooflens.report.page.cards import inside, view_of
from rooflens.report.page.charts import RooflineFigure, charts, collecting, lacking_gpu
from rooflens.report.page.ladder import ladder_section, way_of
from rooflens.report.roofline.choices import choices
from rooflens.report.summary import brief_move, cannot_tell, segments
from rooflens.report.templates import render, write_blocks
from rooflens.report.words.findings import confidence_words, sureness
from rooflens.report.words.gain_and_limit import gain_figure, why_no_gain
from rooflens.report.words.labels import BOUND_LABELS, label_of_first
from rooflens.report.words.program import program_lines
from rooflens.report.words.verdict import best_move


def first_screen(content: Content, figures: Sequence[RooflineFigure]) -> Markup:
    """Answer which kernel to fix first, and how, beside its roofline.

    Args:
        content: The page.
        figures: The rooflines of the page.
    """
    texts = [best_move(group.analysis) for group in content.first[:1]]
    beside: tuple[Document, ...] = ()
    if content.ladder:
        answer, texts = ladder_section(content.ladder, content.launches), []
    elif content.only:
        view = _view(content, content.only)
        answer = verdict(content, content.only, view)
        beside = (seen(view), reasons(view) if content.is_of_one else ())  # else its card has them
        texts = [move.text for move in content.only.analysis.verdict.moves] or texts
    else:
        answer = what_first(content)
    asks = any("`rooflens profile" in text or "ncu " in text for text in texts)
    lacking = None if asks else lacking_gpu(figures)
    return render(
        "report/page#first_screen",
        answer=answer,
        beside=[*map(inside, filter(None, beside))],
        has_plane=any(figure.plane.points for figure in figures),
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


def what_first(content: Content) -> Markup:
    """List what can be done, by the time that it wins."""
    block = opportunities(content)
    return write_blocks((block,)) if block else Markup()


def _view(content: Content, kernel: KernelSummary) -> KernelView:
    """View a kernel with the moves that a reader can choose."""
    return view_of(content, kernel.representative, tuple(_option(one, kernel) for one in choices(kernel.analysis)))


def verdict(content: Content, kernel: KernelSummary, view: KernelView) -> Markup:
    """Answer for a page of a kernel: its sentence and floors, where its time goes, and what to try first."""
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


def _option(choice: Move, kernel: KernelSummary) -> Option:
    analysis, gain = kernel.analysis, choice.gain
    figure = gain_figure(gain, kernel.duration_ns, kernel.launch_count).rpartition("\u2192 ")[2]
    note = f"changes the {gain.changes}" if gain and gain.changes else why_no_gain(choice, analysis)
    said = of_move(kernel, gain, choice.kind, choice.finding)
    sure = confidence_words(sureness(analysis.verdict, analysis.findings, choice.finding), "class and move")
    where = label_of_first(choice.where, analysis.kernel.inside)
    return Option(brief_move(choice.text), figure, said, sure, fmt.cut_middle(where, 60), note)


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
