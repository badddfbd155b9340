from __future__ import annotations

import importlib.util

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.errors import EnvironmentMissingError
from rooflens.report.text.plot import ASCII, MIN_WIDTH, UNICODE, Paper, check_library, to_plot


def lines(columns: int = 100, encoding: str = "utf-8") -> list[str]:
    """Draw one kernel of each verdict on a terminal."""
    return [line.plain for line in to_plot(samples.every_verdict(), Paper.of(columns, encoding))]


def test_each_kernel_has_the_sign_of_its_verdict_and_the_number_of_its_row() -> None:
    """Every kernel that has a place is drawn once, with its row's number beside it, and the signs are explained."""
    drawing = "\n".join(lines())
    field = drawing.partition("FLOP/s over")[0]
    assert [field.count(sign) for sign in ("●1", "■2", "▲3", "◆4", "✚5")] == [1] * 5
    assert "● memory, ■ compute, ▲ latency, ◆ overhead, ✚ balanced; digits: rows of the table" in drawing
    assert "not placed for lack of FLOPs or bytes: 1 of 6" in drawing


def test_signs_are_coloured_like_the_table() -> None:
    """The sign of a verdict carries a colour, which a terminal without colours leaves out."""
    row = next(line for line in to_plot(samples.every_verdict(), Paper.of(100, "utf-8")) if "●" in line.plain)
    assert [row.plain[span.start : span.end] for span in row.spans if span.style] == ["●"]


def test_the_axes_are_decades_and_the_roofs_are_named_below() -> None:
    """Both axes are labelled at powers of ten; the roofs have names and values below the drawing, and none in it."""
    drawing = "\n".join(lines())
    assert all(label in drawing for label in ("100 GFLOP/s", "1 TFLOP/s", "100 TFLOP/s", " 1 ", " 1000"))
    assert "at DRAM; roofs: DRAM 1.56 TB/s, L2 4.62 TB/s, L1 and SMEM 19.5 TB/s, FP32 19.5 TFLOP/s" in drawing
    field = drawing.partition("FLOP/s over")[0]
    assert not any(name in field for name in ("DRAM", "SMEM", "FP32", "tensor"))


def test_points_stand_where_their_numbers_say() -> None:
    """The kernel with more FLOP per byte stands to the right, and the faster one above."""
    drawing = lines()
    place = {sign: next((i, line.index(sign)) for i, line in enumerate(drawing) if sign in line) for sign in "●■"}
    assert place["■"][0] < place["●"][0]
    assert place["■"][1] > place["●"][1]


@pytest.mark.parametrize("columns", [MIN_WIDTH, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    """The drawing keeps to the width, and its signs survive at every one."""
    drawing = [line for line in lines(columns) if "│" in line or "┤" in line]
    assert max(map(len, drawing)) <= min(columns, 100)
    assert all(any(sign in line for line in drawing) for sign in "●■▲◆")


def test_a_terminal_that_is_too_narrow_gets_a_sentence() -> None:
    """Below the least width nothing is drawn, and why is said."""
    assert lines(30) == [f"A roofline needs {MIN_WIDTH} columns; this terminal has 30."]


def test_a_terminal_without_utf8_gets_ascii() -> None:
    """Frame, lines and signs are ASCII where the terminal shows nothing else; letters stand for verdicts."""
    drawing = "\n".join(lines(encoding="ascii"))
    assert drawing.isascii()
    assert all(sign in drawing for sign in ("m1", "c2", "l3", "o4", "b5", "m memory, c compute"))
    assert Paper.of(100, "UTF-8").signs is UNICODE
    assert Paper.of(100, "cp1252").signs is ASCII


def test_a_drawing_leaves_nothing_for_the_next() -> None:
    """The library keeps one figure for all: two drawings in a row are the same as one."""
    assert lines() == lines()


@pytest.mark.parametrize("analyses", [[], [samples.failed()], samples.without_flops()])
def test_nothing_to_place_is_said(analyses: list[object]) -> None:
    """Without FLOPs and bytes there is a sentence in the drawing's place."""
    (line,) = to_plot(analyses, Paper.of(100, "utf-8"))  # type: ignore[arg-type]
    assert line.plain.startswith("No kernel of this GPU has both FLOPs and bytes")


def test_synthetic_data_is_said_below_the_drawing() -> None:
    """The words under the drawing begin with it."""
    synthetic = [replace(one, kernel=replace(one.kernel, synthetic=True)) for one in samples.every_verdict()]
    assert any(line.plain.startswith("synthetic data; ") for line in to_plot(synthetic, Paper.of(100, "utf-8")))


def test_a_missing_library_is_an_error_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without plotext the option ends with exit code 3 and the command that installs it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EnvironmentMissingError, match="plotext") as caught:
        check_library()
    assert caught.value.hint == "pip install 'rooflens[plot]'"
