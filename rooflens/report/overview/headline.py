"""Which headline a report has: that of its versions, of what failed, or of the kernel with most at stake."""

from __future__ import annotations

from collections.abc import Sequence

from rooflens.model.compare.ladder import Ladder
from rooflens.model.knowledge.items import after_words
from rooflens.model.ranking import failed_lead
from rooflens.model.records import Gain, MoveKind
from rooflens.model.summary import KernelSummary
from rooflens.report.content import Content
from rooflens.report.summary import group_sureness, several_launches
from rooflens.report.words.findings import confidence_words, sureness
from rooflens.report.words.gain_and_limit import roof_words_at_dram
from rooflens.report.words.headline import (
    Done,
    Form,
    Headline,
    Limited,
    Plain,
    Unlimited,
    Wins,
    fitting,
    gain_words,
    name_of,
    some_names,
    time_words,
    walls_of,
)
from rooflens.report.words.ladder import headline as ladder_headline
from rooflens.report.words.ladder import program_headline
from rooflens.report.words.verdict import done_lead, done_words

ONLY_FILLS = "Only kernels that fill inputs: yours is not in this report"


def headline(content: Content) -> Headline:
    """Say which kernel, how long, and what its best move brings; of versions which one is the fastest."""
    if content.ladder:
        return Headline("", ladder_headline(content.ladder), sure=_next_sureness(content.ladder))
    if content.ladders_lead:
        return Headline("", _of_programs(content), sure=_next_sureness(content.ladders[0]))
    if failed_lead([*content.kernels, *content.failed_kernels]):
        lost = [one for one in content.failed_kernels if one.analysis.role in {"kernel", "library"}]
        return _not_profiled(lost)
    if not content.first:
        return _not_profiled(content.failed_kernels) if content.failed_kernels else Headline("", "No kernels here")
    if all(kernel.analysis.role == "fill" for kernel in content.kernels):
        return Headline("", ONLY_FILLS)
    return of_kernel(content.first[0])


def of_kernel(kernel: KernelSummary) -> Headline:
    """Say of a kernel, or of the kernels that one move is for, how long they take and what their best move brings."""
    name, verdict = name_of(kernel.shown), kernel.analysis.verdict
    sure = confidence_words(group_sureness(kernel), "class and move")
    done = verdict.done and verdict.gain is None
    lead, joint = (done_lead(verdict), " at ") if done else ("", ": ")
    said = fitting(_form(kernel), lead, name, joint.strip(": "))
    return Headline(name, said, kernel.representative.key, sure, lead, joint)


def of_move(kernel: KernelSummary, gain: Gain | None, kind: MoveKind, finding: str | None) -> str:
    """Say what the headline says of a kernel where another move is chosen; empty where its gain is unknown."""
    form = _wins(kernel, gain, after_words(kind, finding))
    return fitting(form, name_of(kernel.shown)) if form else ""


def _form(kernel: KernelSummary) -> Form:
    analysis, best = kernel.analysis, kernel.analysis.verdict.best
    after = after_words(best.kind, best.finding) if best else ""
    if wins := _wins(kernel, best.gain if best else None, after):
        return wins
    if analysis.verdict.done:
        return Done(done_words(analysis), _headline_time(kernel))
    if analysis.verdict.bound == "unknown":
        return Unlimited(_headline_time(kernel), "" if kernel.duration_ns else roof_words_at_dram(analysis))
    return Limited(_headline_time(kernel), walls_of(analysis), after)


def _wins(kernel: KernelSummary, gain: Gain | None, after: str) -> Wins | None:
    if gain is None or kernel.duration_ns is None:
        return None
    return Wins(_headline_time(kernel), gain_words(gain, kernel.duration_ns), after)


def _headline_time(kernel: KernelSummary) -> str:
    return time_words(kernel.duration_ns, several_launches(kernel))


def _not_profiled(kernels: Sequence[KernelSummary]) -> Headline:
    names = [one.shown for one in kernels]
    return Headline("", f"{some_names(names)} could not be profiled")


def _next_sureness(ladder: Ladder) -> str:
    """Say how sure what comes next is: class and best move of the fastest version."""
    analysis = ladder.fastest.analysis if ladder.fastest else None
    if analysis is None or analysis.verdict.bound == "unknown":
        return ""
    verdict = analysis.verdict
    finding = verdict.best.finding if verdict.best else None
    return confidence_words(sureness(verdict, analysis.findings, finding), "class and move")


def _of_programs(content: Content) -> str:
    """Say of the first program which of its versions is the fastest, and how many more programs there are."""
    first, *others = content.ladders
    said = program_headline(first) if len(content.runs) > 1 else ladder_headline(first)
    return fitting(Plain((f"{said}; {len(others)} more below", said))) if others else said
