"""Where the panels of a card stand: each in the column that is shorter so far, so that both end at about one height."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflens.report.findings import ShownFinding
    from rooflens.report.page.cards.bars import Bar
    from rooflens.report.page.cards.findings import Findings

LINE, SMALL_LINE = 20, 16
"""Heights in pixels, as the style sheet has them: no panel stands wrong for a height that is off by some lines."""
HOT_LINE, COURSE, CHART_WORDS, CURVES, TIMES, PREDICTED = 56, 360, 90, 150, 220, 44
_HEAD, _ROW, _SPACE = 60, 8, 16
_LINE_CHARS, _CELL_CHARS = 84, 30
"""About how many characters a line of a panel holds, and one of the words beside a bar."""


def in_columns(heights: Iterable[tuple[str, int]]) -> tuple[tuple[str, bool], ...]:
    """Give each panel with a height its column, in order: left, or right (True) where that is shorter so far."""
    left = right = 0
    places = []
    for name, height in heights:
        if not height:
            continue
        is_right = right < left
        places.append((name, is_right))
        left, right = (left, right + height) if is_right else (left + height, right)
    return tuple(places)


def bars_height(bars: Sequence[Bar], more_lines: int = 0) -> int:
    """Return how high a table of bars is, with some lines of small words below it; 0 without either."""
    if not bars and not more_lines:
        return 0
    return _HEAD + sum(map(_bar_height, bars)) + SMALL_LINE * more_lines + (_SPACE if more_lines else 0)


def _bar_height(bar: Bar) -> int:
    words = _lines(bar.rate, _CELL_CHARS) + _lines(bar.amount, _CELL_CHARS)
    return _ROW + max(LINE, SMALL_LINE * words, LINE + SMALL_LINE * bool(bar.part))


def findings_height(findings: Findings, moves: Sequence[str]) -> int:
    """Return how high findings are, with the moves in their place where there are none and with a line of notes."""
    heads = _HEAD * (bool(findings.costing) + bool(findings.notes))
    return heads + sum(map(_finding_height, findings.costing)) + words_height(moves)


def _finding_height(finding: ShownFinding) -> int:
    numbers = sum(map(len, finding.numbers)) + 3 * len(finding.numbers)
    small = _lines("x" * numbers) + len(finding.places)
    return LINE * (1 + _lines(finding.move)) + SMALL_LINE * small + _SPACE


def words_height(lines: Sequence[str]) -> int:
    """Return how high a list of sentences is; 0 without any."""
    return _HEAD + sum(LINE * _lines(line) + 4 for line in lines) if lines else 0


def _lines(text: str, chars: int = _LINE_CHARS) -> int:
    return -(-len(text) // chars)
