"""What stands below the tables of a report: another type, and what makes verdicts uncertain."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from rooflens import format as fmt
from rooflens.model.predict.other_gpu import type_answer
from rooflens.model.ranking import worth_a_line
from rooflens.model.summary import KernelSummary
from rooflens.report.content import Content
from rooflens.report.document import Span, Words, code, few
from rooflens.report.summary import caveats, failure_counts
from rooflens.report.words.labels import label_of_move
from rooflens.report.words.worth import worth_words

MOST_LINES = 3
MAX_NAMED = 5
"""Failed kernels, unread reports and caveats that are named; of more, only the count is told."""

NAME_WIDTH, TEXT_WIDTH = 48, 200

_MOST_PLACES = 3
"""Paths that a command is written with; more are on the command line above it."""


def type_lines(content: Content) -> list[Words]:
    """Say for the first kernels of the ranking whether fp16 is worth it, joining those with the same answer."""
    said: dict[str, list[str]] = {}
    for kernel in worth_a_line(content.rows)[:MOST_LINES]:
        answer = type_answer(kernel.analysis)
        if answer is not None and (words := worth_words(answer)):
            said.setdefault(words, []).append(fmt.cut_name(kernel.shown, NAME_WIDTH))
    return [(*few([*map(code, names)], MOST_LINES), f": {words}") for words, names in said.items()]


def command_line(first: Sequence[KernelSummary], place: Sequence[str]) -> str:
    """Name the command that shows where a kernel spends its time, if its first move has no place; else the page."""
    given = " ".join(shlex.quote(text) for text in place) if len(place) <= _MOST_PLACES else "PATH..."
    if any(kernel.analysis.kernel.hotspots and not label_of_move(kernel.analysis) for kernel in first):
        return f"`rooflens hotspots {given}` shows the lines or instructions that take their time"
    return f"`rooflens report {given} -o page.html` draws each of them, with its findings and what they stand on"


def caveat_lines(content: Content, most: int = MAX_NAMED) -> list[Words]:
    """Say why launches were not analyzed, then what changes verdicts, the most frequent first; name what is left.

    Args:
        content: The report.
        most: Explain this many of the traps.
    """
    ordered = caveats(content)
    lines: list[Words] = [*failed_lines(content)]
    lines += [f"{fmt.count(one.launches, 'launch')}: {one.meaning}" for one in ordered[:most]]
    others = ", ".join(f"{one.name} ({one.launches:,})" for one in ordered[most:])
    return [*lines, f"Also, with the launches of each: {others}."] if others else lines


def failed_lines(content: Content) -> Iterator[Words]:
    """Name the kernels whose launches failed, and say why; nothing if none did."""
    if not content.failed_count:
        return
    shown = dict.fromkeys(name_words(launch.shown) for launch in content.failed)
    names = few(
        [*map(code, shown)], MAX_NAMED, max(content.failed_count - len(content.failed) + len(shown), len(shown))
    )
    why = [f"{fmt.count(amount, 'launch')}: {cut(reason)}" for reason, amount in failure_counts(content.analyses)]
    what = "failed" if why else "failed while being profiled"
    yield f"{fmt.count(content.failed_count, 'launch')} {what}, in no number here: ", *names, "."
    yield from why[:MOST_LINES]


def unread_lines(content: Content) -> Iterator[Words]:
    """Name the reports that could not be read, each with its reason; nothing if all were."""
    if not content.unread:
        return
    files: list[Words] = [(file_words(source), f" ({cut(str(error))})") for source, error in content.unread]
    total = fmt.count(content.unread_count + len(content.runs), "report")
    yield f"{content.unread_count} of {total} could not be read: ", *few(files, MAX_NAMED), "."


def file_words(path: str) -> Span:
    """Name a file without its folders, which belong to one machine and tell others nothing."""
    return code(cut(PurePath(path.replace("\\", "/")).name))


def name_words(name: str) -> str:
    """Cut a kernel's name to what a line has room for; never empty."""
    return fmt.cut_name(name.strip() or "(no name)", NAME_WIDTH)


def cut(text: str) -> str:
    """Cut a text of a report to what a line has room for."""
    return fmt.cut_middle(text, TEXT_WIDTH)
