"""The headline of a page: the kernel to look at first, its time, and what its best move brings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from rooflens.format import cut_name, duration, sentence_case, some
from rooflens.model.compare.ladder import Ladder
from rooflens.model.knowledge.items import after_words
from rooflens.model.ranking import failed_lead
from rooflens.model.records import Move, Verdict
from rooflens.model.summary import best_move
from rooflens.model.verdict.sentences import without_move
from rooflens.report.content import Content
from rooflens.report.roofline.choices import Choice
from rooflens.report.summary import brief_move, failed_words, group_sureness
from rooflens.report.words.findings import confidence_words
from rooflens.report.words.ladder import fastest_words
from rooflens.report.words.ladder import headline as ladder_headline
from rooflens.report.words.verdict import gain_how

NAME_WIDTH = 64
"""Of a kernel's name in the headline: two lines of it on a telephone."""

PROGRAMS_SAID = 2

HEAD_WORDS = 16
"""Of a move that has no figure: what to do, without its numbers."""

_ASIDE = re.compile(r" \([^()]*\)")

NO_TIME = "no time in the report"


class Headline(Struct, frozen=True):
    """The answer in one sentence.

    Attributes:
        name: The kernel that it is about; empty if it is about none.
        said: What is said of it.
        key: Of the launch that it links to; empty if there is none.
        sure: How sure it is, as `Ranked.sure` has it.
    """

    name: str
    said: str
    key: str = ""
    sure: str = ""

    @property
    def text(self) -> str:
        """The whole sentence."""
        return f"{self.name}: {self.said}" if self.name else self.said


def headline(content: Content) -> Headline:
    """Say which kernel, how long, and what to do first; of versions which one is the fastest, and what comes next.

    A time after the move stands only where the move's gain is known.
    """
    if content.ladder:
        return Headline("", _of_versions(content.ladder))
    if content.ladders_lead:
        return Headline("", _of_programs(content.ladders))
    if failed_lead([*content.kernels, *content.failed_kernels]):
        lost = [one for one in content.failed_kernels if one.analysis.role in {"kernel", "library"}]
        return Headline("", f"{some(cut_name(one.shown, NAME_WIDTH) for one in lost)} could not be profiled")
    if not content.first:
        failed = failed_words(content.failed_kernels, content.noun)
        return Headline("", f"Nothing to judge: {failed}" if failed else "No kernels in this report")
    first = content.first[0]
    said = said_of(first.analysis.verdict, first.duration_ns, is_of_many=bool(first.members))
    sure = confidence_words(group_sureness(first))
    return Headline(cut_name(first.shown, NAME_WIDTH), said, first.representative.key, sure)


def _of_programs(ladders: Sequence[Ladder]) -> str:
    """Say of the first programs which version is the fastest."""
    said = [f"{one.program}: {words}" for one in ladders if (words := fastest_words(one))]
    more = f". {len(said) - PROGRAMS_SAID} more below" if len(said) > PROGRAMS_SAID else ""
    return ". ".join(said[:PROGRAMS_SAID]) + more


def said_of(verdict: Verdict, time_ns: float | None, *, is_of_many: bool) -> str:
    """Say time and first move of a kernel, or of several that one move is for."""
    time = NO_TIME if time_ns is None else duration(time_ns)
    after = after_move(verdict.best, time_ns) if verdict.best else ""
    if after:
        return f"{time}, {after}"
    doubt = "" if is_of_many else _doubt(verdict)
    return f"{time}. {sentence_case(doubt + move_head(best_move(verdict)))}"


def after_move(move: Move | Choice, time_ns: float | None) -> str:
    """Say the time after a move and what it changes: `about 4.73 ms with more blocks`; empty where unknown."""
    if move.gain is None or time_ns is None:
        return ""
    figure = f"{gain_how(move.gain)} {duration(time_ns / move.gain.factor)}"
    return f"{figure} {after_words(move.kind, move.finding) or f'if you {move_head(move.text)}'}"


def move_head(move: str) -> str:
    """Shorten a move to what to do: neither why, nor numbers, nor a command."""
    said = _ASIDE.sub("", move.partition(": ")[0]).partition(", as ")[0]
    before, tick, _ = said.partition("`")
    return brief_move((before.rpartition(",")[0] or before if tick else said).rstrip(" :"), HEAD_WORDS)


def _doubt(verdict: Verdict) -> str:
    """Say that a side which was not measured may turn the verdict over; empty if the verdict is sure."""
    return f"{without_move(verdict).partition(':')[0]}: " if verdict.or_bound else ""


def _of_versions(ladder: Ladder) -> str:
    said, fastest = sentence_case(ladder_headline(ladder)), ladder.fastest
    if fastest is None or fastest.analysis is None:
        return said
    return f"{said}. Next: {move_head(best_move(fastest.analysis.verdict))}"
