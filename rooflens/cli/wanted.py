"""What a command was asked; apart from the options, so that help needs none of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.model.selecting import Selection


class Wanted(Struct, frozen=True, kw_only=True):
    """What a command was asked: of which reports, which of their kernels, and how these are judged.

    Attributes:
        paths: Reports, or folders of them.
        store: A store instead of paths.
        digits: First digits of the wanted reports' digests in a store; empty for all reports.
        reading: How to read the reports; for a store, `gpu` selects kernels.
        selection: Which launches are wanted; all without a pattern. No verdict depends on it.
        thresholds: File of thresholds that override the shipped ones.
        timeline: File with figures without ncu, which replace the stored ones.
        without_nvidia: Ignore the results of NVIDIA's own rules.
        predict: What the program should do; a text, or a TOML file.
        source: Folder with the kernels' source files.
    """

    paths: tuple[str, ...] = ()
    store: str | None = None
    digits: str = ""
    reading: ReadOptions
    selection: Selection
    thresholds: Path | None = None
    timeline: Path | None = None
    without_nvidia: bool = False
    predict: str | None = None
    source: Path | None = None
