"""Panels stand in two columns that end at about one height."""

from __future__ import annotations

from rooflens.report.page.cards.bars import Bar
from rooflens.report.page.cards.layout import LINE, bars_height, in_columns, words_height


def test_a_panel_stands_in_the_shorter_column() -> None:
    """Left first; then where there is room; what has nothing to show has no place."""
    heights = [("a", 300), ("b", 100), ("c", 0), ("d", 150), ("e", 100), ("f", 10)]
    assert in_columns(heights) == (("a", False), ("b", True), ("d", True), ("e", True), ("f", False))


def test_words_make_rows_higher() -> None:
    """A bar with two lines of words is higher than one without; no bars are no panel."""
    one = bars_height([Bar("x", 0.5)])
    assert bars_height([Bar("x", 0.5, rate="r" * 40, amount="a" * 20)]) > one
    assert bars_height([Bar("x", 0.5, part="data stage")]) > one
    assert bars_height([]) == words_height([]) == 0
    assert words_height(["w" * 200]) - words_height(["w"]) == 2 * LINE
