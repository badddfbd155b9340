"""SASS text of the hottest instructions: which ones to ask a disassembler for, and where its text goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooflens.ingest.metrics.code import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.ingest.metrics.code import Code


def addresses(codes: Mapping[int, Code]) -> dict[int, list[int]]:
    """Return the addresses of the hottest instructions, hottest first, by index of the result."""
    return {index: found for index, code in codes.items() if (found := _addresses(code))}


def with_sass(codes: Mapping[int, Code], texts: Mapping[int, Mapping[int, str]]) -> dict[int, Code]:
    """Add the text of the hottest instructions.

    Args:
        codes: Code without text, by index of the result.
        texts: The disassembler's text by address, by index of the result.
    """
    return {index: _with_sass(code, texts[index]) if index in texts else code for index, code in codes.items()}


def _addresses(code: Code) -> list[int]:
    return [code.start + spot.pc for spot in code.hotspots if spot.by == "sass" and spot.pc is not None]


def _with_sass(code: Code, texts: Mapping[int, str]) -> Code:
    spots = (
        replace(spot, sass=clean_text(texts.get(code.start + spot.pc)))
        if spot.by == "sass" and spot.pc is not None
        else spot
        for spot in code.hotspots
    )
    return replace(code, hotspots=tuple(spots))
