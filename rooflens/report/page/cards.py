"""The cards of a page: a line with name, limiter and time over the document of each kernel."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup
from msgspec import Struct

from rooflens.model.records import Verdict
from rooflens.model.roofline.unit_names import limiter_words
from rooflens.model.summary import Launch
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.content import Content
from rooflens.report.document import Document, Option
from rooflens.report.html.blocks import Room
from rooflens.report.kernel.document import KernelView, below_answer, on_card
from rooflens.report.kernel.predicted import checked_for, predicted
from rooflens.report.templates import write_blocks
from rooflens.report.words.labels import BOUND_LABELS
from rooflens.report.words.verdict import unmeasured_words

_INSIDE = -1
"""Headings of a document are those of a part of the page."""


class Card(Struct, frozen=True):
    """One card.

    Attributes:
        key: Of its launch.
        shown: Short name of its kernel, with how many launches it stands for.
        limiter: Class and resource of the verdict in a few words.
        duration_ns: GPU time of what it stands for; None if it failed, or its report holds no duration.
        body: Its document.
    """

    key: str
    shown: str
    shown_class: ShownClass
    limiter: str
    failed: bool
    duration_ns: float | None
    time_share: float | None
    body: Markup


def cards(content: Content) -> Mapping[str, Card]:
    """Write the cards of a page, by the key of their launch, in order of falling time."""
    alone = content.listed[0].representative.key if content.is_of_one else ""
    return {launch.key: _card(content, launch, is_alone=launch.key == alone) for launch in content.carded}


def _card(content: Content, launch: Launch, *, is_alone: bool) -> Card:
    view = view_of(content, launch)
    return Card(
        key=launch.key,
        shown=launch.shown,
        shown_class=launch.shown_class,
        limiter="failed" if launch.failed else _limiter(launch.analysis.verdict, launch.gpu),
        failed=launch.failed,
        duration_ns=launch.duration_ns,
        time_share=launch.time_share,
        body=inside(below_answer(view, has_reasons=content.only is not None) if is_alone else on_card(view)),
    )


def inside(document: Document) -> Markup:
    """Write blocks as a part of a page, whose headings stand above theirs."""
    return write_blocks(document, Room(lift=_INSIDE))


def view_of(content: Content, launch: Launch, options: tuple[Option, ...] = ()) -> KernelView:
    """View a launch as the page shows it."""
    kernel = launch.analysis.kernel
    report = next((one for one in content.reports if one.run.digest == kernel.digest), content.reports[0])
    launches = next((one.launch_count for one in content.kernels if one.key == launch.group_key), 0)
    return KernelView(report, launch.analysis, options, content.aggregated, _predicted(content, launch), launches)


def _predicted(content: Content, launch: Launch) -> Document:
    kernel = launch.analysis.kernel
    if launch.failed or content.aggregated:
        return ()
    checked = checked_for(kernel.digest, launch.name, content.predictions)
    is_whole = sum(one.kernel.digest == kernel.digest for one in content.analyses) == 1
    return predicted(checked, launch.analysis, is_whole=is_whole) if checked else ()


def _limiter(verdict: Verdict, gpu: str) -> str:
    words = limiter_words(BOUND_LABELS[verdict.shown_class], verdict.resource, gpu)
    return f"{words}, {unmeasured_words(verdict)}" if verdict.or_bound else words
