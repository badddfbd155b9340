"""The rooflines as a picture for slides and papers: SVG, PNG and PDF without a browser and without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from rooflens.errors import InputError, lacking_package
from rooflens.format import cut_middle
from rooflens.report.content import Content
from rooflens.report.html import theme
from rooflens.report.html.embed import VEGA_LITE
from rooflens.report.plane.plane import Plane
from rooflens.report.roofline.chart import roofline_spec
from rooflens.report.roofline.figure import FigureLook, figure
from rooflens.report.roofline.launches import plane
from rooflens.report.roofline.rows import clock_text

MAX_GPUS = 6
"""Rooflines in one picture, one below the other; a taller one fits no document."""

PNG_SCALE = 2.0
"""Pixels of a PNG for each of the SVG: sharp on a dense screen, and legible scaled down to a column of text."""

SLIDE, COLUMN = FigureLook(640, 420, 11), FigureLook(249.4, 187, 7)
"""As a slide or a page holds it, and the column of a paper: 88 mm wide, no word under 7 points."""

GAP_PX = 16
TITLE_WIDTH = 60
FONT = '"Liberation Sans", Arial, Helvetica, sans-serif'
"""vl-convert carries the first, and the others are as wide: a picture looks the same wherever it is made."""

_SVG_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
_CLIP = re.compile(r'(?<=\bid=")clip\d+|(?<=url\(#)clip\d+')
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class RenderedPicture(Struct, frozen=True):
    """A drawing.

    Attributes:
        notes: What it does not show, in words.
    """

    svg: str
    notes: tuple[str, ...] = ()

    def png(self) -> bytes:
        """Draw it as pixels."""
        pixels: bytes = _renderer().svg_to_png(self.svg, scale=PNG_SCALE)
        return pixels

    def pdf(self) -> bytes:
        """Draw it as a page of its own, a point for each pixel."""
        page: bytes = _renderer().svg_to_pdf(self.svg)
        return page


def draw_rooflines(page: Content, look: FigureLook = SLIDE) -> RenderedPicture:
    """Draw the roofline of each GPU, one below the other, the GPU with the longest launch first.

    Raises:
        InputError: No kernel can be placed in a roofline.
    """
    placed = placed_planes(page)
    drawn = {roofline.gpu for roofline in placed}
    notes = [f"no kernel of {gpu} can be placed: it is not in the picture" for gpu in page.gpus if gpu not in drawn]
    if len(placed) > MAX_GPUS:
        notes.append(f"the picture shows {MAX_GPUS} of {len(placed)} GPUs: give fewer reports to see the others")
    drawings = [_renamed(_draw(roofline, page, look), f"gpu{i}") for i, roofline in enumerate(placed[:MAX_GPUS])]
    return RenderedPicture(drawings[0] if len(drawings) == 1 else _stacked(drawings, look.inks.page), tuple(notes))


def placed_planes(page: Content) -> list[Plane]:
    """List the planes in which a kernel can be placed, that of the GPU with the longest launch first.

    Raises:
        InputError: There is none.
    """
    placed = [roofline for gpu in page.gpus if (roofline := plane(page, gpu)).placed]
    if not placed:
        raise InputError(
            "no kernel can be placed in a roofline: these reports hold neither FLOPs with bytes, nor bandwidth shares",
            "collect them with `ncu --set full`; Markdown and the page show what the reports do hold",
        )
    return placed


def _draw(plane: Plane, page: Content, look: FigureLook) -> str:
    """Draw a plane, or as the page does the bars of kernels of which none has a place in it."""
    title = title_of(plane, page)
    if plane.points:
        spec, config = figure(plane, look, title=title).to_dict(validate=False), {"background": look.inks.page}
    else:
        spec, config = roofline_spec(plane, title=title, picked=""), theme.vega_config(look.inks, dark=look.dark)
    svg: str = _renderer().vegalite_to_svg(
        _drawable(spec), vl_version=VEGA_LITE.rpartition(".")[0], config=config | {"font": FONT}, allowed_base_urls=[]
    )
    return svg


def _renderer() -> Any:
    """Return vl-convert.

    Raises:
        EnvironmentMissingError: It is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 - an extra, `pictures`
    except ImportError as error:
        raise lacking_package(error) or error from None
    return vl_convert


def title_of(plane: Plane, page: Content) -> str:
    """Name what ran and where; that data is synthetic comes first, where no title is too long for it."""
    clock = clock_text(plane.roofs.clocks_hz)
    where = f"{plane.gpu}, SM {clock}" if clock else plane.gpu
    synthetic = "Synthetic data: " if page.synthetic else ""
    return f"{synthetic}{cut_middle(page.title, TITLE_WIDTH)}, {where}" if page.title else f"{synthetic}{where}"


def _drawable(value: Any) -> Any:
    """Replace, in all texts of a specification, the characters that no XML holds: the renderer aborts at them."""
    if isinstance(value, str):
        return _NO_XML.sub("?", value)
    if isinstance(value, dict):
        return {key: _drawable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_drawable(part) for part in value]
    return value


def _renamed(svg: str, prefix: str) -> str:
    """Number clip paths from 1 in each drawing: Vega's counter runs on, so a chart would depend on those before it."""
    names = {name: f"{prefix}-clip{i}" for i, name in enumerate(dict.fromkeys(_CLIP.findall(svg)), 1)}
    return _CLIP.sub(lambda found: names[found[0]], svg)


def _stacked(drawings: Sequence[str], background: str) -> str:
    parts, top, width = [], 0.0, 0.0
    for svg in drawings:
        size = _SVG_SIZE.match(svg)
        if size is None:
            raise ValueError("a drawing without a size")
        parts.append(svg.replace("<svg ", f'<svg y="{top:g}" ', 1))
        width, top = max(width, float(size[1])), top + float(size[2]) + GAP_PX
    box = f'width="{width:g}" height="{top - GAP_PX:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} viewBox="0 0 {width:g} {top - GAP_PX:g}">'
    return f'{head}<rect {box} fill="{background}"/>{"".join(parts)}</svg>'
