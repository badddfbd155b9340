from __future__ import annotations

import struct
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.errors import InputError
from rooflens.model.records import Analysis
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.roofline import picture as picture_module
from rooflens.report.roofline.picture import SLIDE, RenderedPicture, draw_rooflines

SVG = "{http://www.w3.org/2000/svg}"


def draw(analyses: Sequence[Analysis], *, title: str = "attention", dark: bool = False) -> RenderedPicture:
    """Draw the rooflines of a page."""
    return draw_rooflines(
        build_content([samples.report(analyses)], title, default_thresholds()), replace(SLIDE, dark=dark)
    )


@pytest.fixture(scope="module")
def picture() -> RenderedPicture:
    """Draw one kernel of each verdict, once for all tests that need it."""
    return draw(samples.every_verdict())


def words(svg: str) -> list[str]:
    """Return the texts of a drawing, which must be XML, with plain spaces."""
    root = ET.fromstring(svg)  # noqa: S314 - our own drawing
    return [" ".join("".join(text.itertext()).split()) for text in root.iter(f"{SVG}text")]


def on_gpu(analysis: Analysis, gpu: str) -> Analysis:
    """Move a kernel to another GPU."""
    return replace(analysis, kernel=replace(analysis.kernel, gpu=gpu))


def test_it_shows_what_ran_where_its_roofs_and_its_kernels(picture: RenderedPicture) -> None:
    """The drawing has a title with GPU and clock, axes, roofs with values, and a legend of the verdicts."""
    texts = words(picture.svg)
    assert texts.count("attention, NVIDIA A100-SXM4-40GB, SM 1.41 GHz") == 1
    assert any(text.startswith("HBM2 1.56 TB/s") for text in texts)
    assert any(text.startswith("tensor bf16 312 TFLOP/s") for text in texts)
    assert {"memory-bound", "compute-bound", "latency-bound", "overhead-bound", "balanced"} <= set(texts)


def test_synthetic_data_is_written_into_the_picture_first() -> None:
    """The title begins with it, and no long title can displace it."""
    synthetic = [replace(one, kernel=replace(one.kernel, synthetic=True)) for one in samples.every_verdict()]
    assert any(text.startswith("Synthetic data: long") for text in words(draw(synthetic, title="long" * 100).svg))


def test_the_same_data_make_the_same_drawing(picture: RenderedPicture) -> None:
    """A drawing does not depend on earlier drawings, so that it can be kept under version control."""
    assert draw(samples.every_verdict()).svg == picture.svg


def test_a_png_is_twice_as_large_as_its_svg(picture: RenderedPicture) -> None:
    """The PNG has two pixels for each of the drawing, for dense screens."""
    root = ET.fromstring(picture.svg)  # noqa: S314 - our own drawing
    pixels = picture.png()
    assert pixels.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", pixels[16:24])
    assert (width, height) == (2 * int(root.attrib["width"]), 2 * int(root.attrib["height"]))


def test_several_gpus_stand_below_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each GPU has its roofline with its own clip paths; those beyond the limit are named."""
    monkeypatch.setattr(picture_module, "MAX_GPUS", 2)
    one = samples.every_verdict()[0]
    stack = draw([on_gpu(one, f"GPU {i}") for i in range(3)])
    root = ET.fromstring(stack.svg)  # noqa: S314 - our own drawing
    parts = root.findall(f"{SVG}svg")
    tops = [float(part.attrib["y"]) for part in parts]
    bottoms = [top + float(part.attrib["height"]) for top, part in zip(tops, parts, strict=True)]
    clips = [clip.attrib["id"] for clip in root.iter(f"{SVG}clipPath")]
    assert len(parts) == 2
    assert all(bottom < top for bottom, top in zip(bottoms, tops[1:], strict=False))
    assert bottoms[-1] == float(root.attrib["height"])
    assert len(set(clips)) == len(clips)
    assert stack.notes == ("the picture shows 2 of 3 GPUs: give fewer reports to see the others",)
    assert RenderedPicture(stack.svg).png().startswith(b"\x89PNG")


def test_a_gpu_without_a_place_is_named() -> None:
    """A GPU without placeable kernels is left out of the picture and named."""
    known, unknown = samples.every_verdict()[0], on_gpu(samples.every_verdict()[5], "Tesla T4")
    assert draw([known, unknown]).notes == ("no kernel of Tesla T4 can be placed: it is not in the picture",)


@pytest.mark.parametrize("analyses", [[], [samples.failed()], samples.every_verdict()[5:]])
def test_nothing_to_place_is_an_error(analyses: list[Analysis]) -> None:
    """If no kernel can be placed, there is no picture, and the hint says what is needed."""
    with pytest.raises(InputError, match="no kernel can be placed in a roofline") as caught:
        draw(analyses)
    assert "--set full" in caught.value.hint


def test_hostile_names_leave_the_drawing_whole() -> None:
    """XML syntax, control characters and half characters in names, GPUs and titles do not break the drawing."""
    evil = "</text><script>alert(1)</script>&amp;\x1b[31m\x00\ud800"
    hostile = [replace(one, kernel=replace(one.kernel, name=evil, gpu=evil)) for one in samples.every_verdict()[:3]]
    drawn = draw(hostile, title=evil)
    root = ET.fromstring(drawn.svg)  # noqa: S314 - our own drawing
    assert not list(root.iter(f"{SVG}script"))
    assert drawn.png().startswith(b"\x89PNG")
