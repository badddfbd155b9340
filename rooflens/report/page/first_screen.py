"""The first screen: the answer for a kernel, or the list of what to fix first, and the charts beside it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.compare.ladder import Ladder
from rooflens.model.records import Confidence
from rooflens.model.roofline.traffic import find_traffic
from rooflens.model.summary import Launch, best_move
from rooflens.model.verdict.sentences import (
    best_gain_words,
    gain_figure,
    limit_in_short,
    stage_full_words,
    without_move,
)
from rooflens.report.content import Content
from rooflens.report.overview.opportunities import opportunities
from rooflens.report.page.cards.hot_lines import hot_lines
from rooflens.report.page.cards.loops import loop_bars
from rooflens.report.page.cards.memory import memory, memory_chart
from rooflens.report.page.charts import RooflineFigure, charts, collecting, lacking_gpu
from rooflens.report.page.ladder import ladder_section, way_of
from rooflens.report.roofline.choices import Choice, choices
from rooflens.report.summary import brief_move, cannot_tell, segments
from rooflens.report.templates import render, write_blocks
from rooflens.report.words.findings import confidence_words, sureness
from rooflens.report.words.headline import after_move
from rooflens.report.words.program import program_lines


class ChosenMove(Struct, frozen=True):
    """One move of the only kernel, with what the headline says of it; empty if its gain is unknown."""

    text: str
    figure: str
    said: str
    where: str
    sure: str


def first_screen(content: Content, figures: Sequence[RooflineFigure]) -> Markup:
    """Answer which kernel to fix first, and how, beside its roofline.

    Args:
        content: The page.
        figures: The rooflines of the page.
    """
    texts = [best_move(group.analysis.verdict) for group in content.first[:1]]
    if content.ladder:
        answer, texts = versions(content.ladder, content.launches), []
    elif len(content.kernels) == 1:
        answer = verdict(content)
        texts = [move.text for move in content.kernels[0].analysis.verdict.moves] or texts
    else:
        answer = what_first(content)
    asks = any("`rooflens profile" in text or "ncu " in text for text in texts)
    lacking = None if asks else lacking_gpu(figures)
    return render(
        "report/first_screen",
        answer=answer,
        total_ns=content.total_ns,
        way=way_of(content.ladder, content) if content.ladder else "",
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
    traffic = find_traffic(analysis.kernel)
    moves = [
        _chosen(one, kernel.duration_ns, sureness(analysis.verdict, analysis.findings, one.finding))
        for one in choices(analysis)
    ]
    return render(
        "report/verdict",
        kernel=kernel,
        gain_words=best_gain_words(analysis.verdict, kernel.duration_ns),
        limit=limit_in_short(analysis),
        sentence=without_move(analysis.verdict) if content.is_judged else cannot_tell(len(content.runs), 1),
        stage_full=stage_full_words(analysis),
        moves=moves,
        chosen=0 if moves and moves[0].figure else -1,
        figures=[figure for figure in (loop_bars(analysis.loops, kernel.gpu), hot_lines(analysis.kernel)) if figure],
        memory=memory_chart(analysis, traffic, apart=not content.aggregated or analysis.launches == 1),
        facts=memory(analysis.levels.get("smem"), traffic, has_chart=True).facts,
        classes=segments(kernel.launches) if len(kernel.class_ns) > 1 else (),
    )


def _chosen(choice: Choice, time_ns: float | None, sure: Confidence) -> ChosenMove:
    after = after_move(choice.gain, time_ns, choice.kind, choice.finding)
    figure = gain_figure(choice.gain, time_ns).rpartition("\u2192 ")[2]
    said = f"{fmt.duration(time_ns)}, {after}" if after else ""
    return ChosenMove(brief_move(choice.text), figure, said, choice.where, confidence_words(sure))


def many(content: Content) -> Markup:
    """Say what is drawn of many launches, and how many kernels share the name `other`."""
    left_out = content.failed_count - len(content.failed)
    return render(
        "report/many",
        launches=sum(launch.analysis.launches for launch in content.timed),
        kernels=len({launch.group_key for launch in content.timed}),
        other=content.other,
        failed=f"{len(content.failed):,} of {content.failed_count:,}" if left_out else "",
    )
