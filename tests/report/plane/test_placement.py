"""Placement of text: overlapping boxes, widths of words, the first free spot."""

from __future__ import annotations

import pytest
from msgspec import Struct

from rooflens.report.plane.geometry import Box, Boxes, Edge, Line, crossed, text_px
from rooflens.report.plane.placement import Canvas, Spot, Text, around
from rooflens.report.plane.roofs import Roofs, named_slope
from rooflens.report.plane.viewport import Sheet


class Pixels(Struct, frozen=True):
    """A drawing of 200 by 100 pixels whose data are pixels."""

    width_px: float = 200
    height_px: float = 100

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place itself."""
        return x, y


def box(x: float, y: float, anchor: float | None = None) -> Box:
    """Make a box of 20 by 10 pixels."""
    return Box(x, y, 10, 5, x if anchor is None else anchor)


def make_canvas(*taken: Box, lines: tuple[Line, ...] = ()) -> Canvas:
    """Make a drawing."""
    return Canvas(Pixels(), Boxes(taken), list(lines))


def text(words: str, x: float = 100, *spots: Spot) -> Text:
    """Request a place for a text."""
    return Text((words,), x, 50, spots or [Spot(5, 0, 1), Spot(-5, 0, -1)])


@pytest.mark.parametrize(
    ("other", "overlap"), [(box(19, 0), True), (box(20, 0), False), (box(0, 9), True), (box(0, 10), False)]
)
def test_boxes_overlap(other: Box, *, overlap: bool) -> None:
    """Boxes overlap if they share area, in either order; boxes that only touch do not."""
    assert Boxes([box(0, 0)]).hits(other) is overlap
    assert Boxes([other]).hits(box(0, 0)) is overlap


def test_a_row_of_boxes_is_crossed_by_what_crosses_one_of_them() -> None:
    """Checking all boxes of some words at once gives the same as checking each."""
    rows = [[Box(x + 10 * i, 40 + rise * i, 6, 6 + i, x) for i in range(8)] for x in (0, 60) for rise in (-4, 0, 7)]
    lines = [Line(x, y, x + dx, y + dy) for x in (-30, 20, 90) for y in range(-20, 120, 9) for dx, dy in _WAYS]
    told = [crossed(row, [Edge.of(line)]) for row in rows for line in lines]
    assert told == [any(crossed([one], [Edge.of(line)]) for one in row) for row in rows for line in lines]
    assert {True, False} == set(told)
    assert crossed(rows[0], map(Edge.of, lines))
    assert not crossed(rows[0], [])


_WAYS = ((200, 0), (-200, 0), (0, 60), (30, -60), (-90, 35), (7, 7))


def test_boxes_are_found_in_whatever_band_they_reach_into() -> None:
    """Overlaps and crossings among many boxes, low and tall, are those found by checking each."""
    many = [Box(37 * i % 200, 53 * i % 211 - 5, 3 + i % 7, 2 + i % 41, 29 * i % 200) for i in range(60)]
    held = Boxes(many)
    assert list(held) == many
    tries = [Box(x, y, 4, 7, x) for x in range(0, 200, 9) for y in range(-40, 260, 7)]
    found = [held.hits(one) for one in tries]
    assert found == [any(Boxes([other]).hits(one) for other in many) for one in tries]
    assert {True, False} == set(found)
    lines = [Line(x, y, x + 11, y + dy) for x in range(0, 200, 13) for y in range(-40, 260, 11) for dy in (-60, 0, 45)]
    told = [held.crossed_by(line) for line in lines]
    assert told == [any(crossed([other], [Edge.of(line)]) for other in many) for line in lines]
    assert {True, False} == set(told)


def test_boxes_that_would_meet_in_a_wider_plane_overlap() -> None:
    """A text left of its right point and one right of its left point approach as the plane gets wider."""
    assert Boxes([box(0, 0, anchor=80)]).hits(box(25, 0, anchor=10))
    assert not Boxes([box(0, 0, anchor=10)]).hits(box(25, 0, anchor=80))
    assert not Boxes([box(0, 0, anchor=80)]).hits(box(60, 0, anchor=10))


@pytest.mark.parametrize(
    ("line", "crosses"),
    [
        (Line(-50, -50, 50, 50), True),
        (Line(-50, 0, 50, 0), True),
        (Line(0, 20, 50, 20), False),
        # The bounds of this line reach into the box, the line does not.
        (Line(-30, 0, 0, 30), False),
    ],
)
def test_lines_cross_boxes(line: Line, *, crosses: bool) -> None:
    """A line crosses the boxes that it passes through, and no others."""
    assert Boxes([box(0, 0)]).crossed_by(line) is crosses


def test_wide_letters_are_wider() -> None:
    """Capitals and other scripts are wider."""
    assert text_px("illi") < text_px("aaaa") < text_px("MMMM") < text_px("\u6838\u6838\u6838\u6838")


def test_text_takes_the_first_free_spot() -> None:
    """A text is placed at the best free spot, which is then taken."""
    canvas = make_canvas()
    places = [canvas.place(text("name")) for _ in range(3)]
    assert places == [["name", 5, 0, 1], ["name", -5, 0, -1], None]


def test_text_stays_inside() -> None:
    """A spot that extends beyond the drawing is not used."""
    assert make_canvas().place(text("a long name", 190, Spot(5, 0, 1))) is None


def test_shorter_words_come_after_longer_ones() -> None:
    """Words are cut if there is no room for the whole."""
    wish = Text(("a name that is far too long for this", "name"), 100, 50, [Spot(5, 0, 1)])
    assert make_canvas().place(wish) == ["name", 5, 0, 1]


def test_text_prefers_not_to_cross_lines() -> None:
    """A later spot that crosses no line is better than an earlier one that does, which is better than none."""
    line = Line(110, 0, 110, 100)
    assert make_canvas(lines=(line,)).place(text("name")) == ["name", -5, 0, -1]
    assert make_canvas(lines=(line,)).place(text("name", 100, Spot(5, 0, 1))) == ["name", 5, 0, 1]


def test_far_text_is_led_to() -> None:
    """Words away from their point have a line to it, which crosses nothing that is taken."""
    spots = [spot for spot in around(5) if spot.lead is not None]
    assert all(len(spot.row("n")) == 5 and 0 < spot.row("n")[4] < 1 for spot in spots)
    first = spots[0]
    between = Box(100 + first.dx / 2, 50 + first.dy / 2, 2, 2, 100)
    assert make_canvas().place(text("n", 100, first)) == first.row("n")
    assert make_canvas(between).place(text("n", 100, first)) is None
    led = make_canvas()
    led.place(text("n", 100, first))
    assert led.place(Text(("m",), between.x, between.y, [Spot(0, 0, 0)])) is None


def test_a_slope_is_named_where_no_other_line_crosses_its_words() -> None:
    """The name moves up its slope until no other line crosses it; its own line does not count."""
    view = Sheet((0.1, 1e3), (1e10, 1e14), 600, 600)
    roofs = Roofs((named_slope(("dram",), 1e12, "NVIDIA A100-SXM4-40GB"),), (), view.x_domain, view.y_domain)
    (own,) = roofs.lines(view)
    words, part, side = roofs.name(Canvas(view, lines=[own]), ())["dram"]
    same, moved, same_side = roofs.name(Canvas(view, lines=[own, Line(50, 0, 50, 600)]), ())["dram"]
    assert (same, same_side) == (words, side)
    assert own.x0 + part * (own.x1 - own.x0) < 50 < own.x0 + moved * (own.x1 - own.x0)
