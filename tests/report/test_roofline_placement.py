"""How text finds its place: boxes that overlap or not, widths of words, the first free spot."""

from __future__ import annotations

from math import pi

import pytest

from rooflens.report.plane.geometry import Box, segment, text_px
from rooflens.report.plane.placement import Canvas, Spot, Wish, place, spots_around

PLAIN = Box(0, 0, 10, 5)


@pytest.mark.parametrize(
    ("other", "overlap"),
    [
        (Box(19, 0, 10, 5), True),
        (Box(20, 0, 10, 5), False),
        (Box(0, 10.5, 10, 5), False),
        (Box(0, 14, 10, 5, pi / 2), True),
        (Box(0, 16, 10, 5, pi / 2), False),
        # Upright boxes around these two overlap; the boxes themselves do not.
        (Box(13, 13, 14, 2, -pi / 4), False),
        (Box(9, 7, 14, 2, -pi / 4), True),
    ],
)
def test_boxes_overlap(other: Box, *, overlap: bool) -> None:
    """Turned boxes overlap only where they share a point, whichever is asked."""
    assert PLAIN.hits(other) is overlap
    assert other.hits(PLAIN) is overlap


def test_a_line_is_a_thin_box() -> None:
    """A straight line hits what lies on it and nothing beside it."""
    line = segment((0, 0), (100, 100))
    assert line.hits(Box(50, 50, 3, 3))
    assert not line.hits(Box(50, 60, 3, 3))


def test_boxes_inside() -> None:
    """A turned box is inside only with all of its corners."""
    assert Box(10, 10, 9, 3).inside(20, 20)
    assert not Box(10, 10, 15, 3, pi / 4).inside(20, 20)


def test_wide_letters_are_wider() -> None:
    """Widths follow the letters: capitals and other scripts take more room, bold more again."""
    assert text_px("illi") < text_px("aaaa") < text_px("MMMM") < text_px("\u6838\u6838\u6838\u6838")
    assert text_px("12") < text_px("12", bold=True)


def make_canvas(*taken: Box, lines: tuple[Box, ...] = ()) -> Canvas:
    """Make a drawing of 200 by 100 pixels whose data are pixels."""
    return Canvas(lambda x, y: (x, y), 200, 100, list(taken), list(lines))


def test_text_takes_the_first_free_spot() -> None:
    """A text stands at the best of its spots that nothing takes, and takes it from the next one."""
    spots = [Spot(5, 0, 1), Spot(-5, 0, -1)]
    canvas = make_canvas()
    wish = Wish("name", 100, 50, spots)
    assert [place(wish, [canvas]) for _ in range(3)] == [*spots, None]


def test_text_stays_inside() -> None:
    """A spot that leaves the drawing is none."""
    assert place(Wish("a long name", 190, 50, [Spot(5, 0, 1)]), [make_canvas()]) is None


def test_text_prefers_not_to_cross_lines() -> None:
    """A later spot that crosses no line is better than an earlier one that does; a crossing one is better than none."""
    line = segment((110, 0), (110, 100))
    spots = [Spot(5, 0, 1), Spot(-5, 0, -1)]
    assert place(Wish("name", 100, 50, spots), [make_canvas(lines=(line,))]) == spots[1]
    assert place(Wish("name", 100, 50, spots[:1]), [make_canvas(lines=(line,))]) == spots[0]


def test_text_is_free_at_every_size() -> None:
    """A spot counts only where it is free in all drawings of a class of sizes."""
    wide = Canvas(lambda x, y: (2 * x, y), 400, 100)
    taken = Box(230, 50, 20, 10)
    assert place(Wish("name", 100, 50, [Spot(5, 0, 1)]), [make_canvas(), wide])
    wide = Canvas(lambda x, y: (2 * x, y), 400, 100, [taken])
    assert place(Wish("name", 100, 50, [Spot(5, 0, 1)]), [make_canvas(), wide]) is None


def test_far_text_is_led_to() -> None:
    """Words that stand away from their point have a line to them, which keeps clear of what is taken too."""
    spots = [spot for spot in spots_around(5) if spot.lead is not None]
    assert all(len(spot.row) == 4 and 0 < spot.row[3] < 1 for spot in spots)
    first = spots[0]
    between = Box(100 + first.dx / 2, 50 + first.dy / 2, 2, 2)
    assert place(Wish("n", 100, 50, [first]), [make_canvas()]) == first
    assert place(Wish("n", 100, 50, [first]), [make_canvas(between)]) is None
